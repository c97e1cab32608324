"""Names and texts that mean something to HTML, Markdown, URLs and terminals stay text; the page can fetch nothing."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from dump_analysis.report.markup import anchor, html_prose, markdown_prose, markdown_text, pieces
from dump_analysis.report.people import html_of_people
from dump_analysis.report.said import LONGEST_NAME, short, visible
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import CASES, LANGUAGES, hostile, large

HOSTILE_TEXT = st.text(alphabet=st.sampled_from("<>&\"'`|*_[]()#-+!\\~$x1. \n\u202e\u0000\u2028\ue000{}=/:"), max_size=60)
OURS = {
    "html", "head", "meta", "title", "style", "body", "svg", "defs", "symbol", "circle", "path", "a", "div", "nav", "p", "ol", "li",
    "button",
    "main", "section", "span", "h1", "h2", "h3", "h4", "b", "dl", "dt", "dd", "figure", "figcaption", "rect", "text", "g", "use", "ul",
    "article", "details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td", "i", "form", "label", "input", "code", "wbr",
    "strong", "script", "br", "em",
}  # fmt: skip


class Seen(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self._in: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]
        self._in.append(tag)

    def handle_data(self, data: str) -> None:
        if self._in and self._in[-1] == "script":
            self.scripts.append(data)
        else:
            self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in.append(f"/{tag}")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """HTML and Markdown of every case, and of the hostile one."""
    found = []
    for name, make in {**CASES, "hostile": hostile}.items():
        for language in LANGUAGES:
            limits = [
                "<b>x</b> `a<b`",
                "![i](http://e.org/x.png) [l](javascript:alert(1))",
                "| a | b |\n| - | - |\n| <i> | 2 |",
                "x" * 30_000,
            ]
            made = make().rendered(tmp_path_factory.mktemp(name), language, limitations=limits)
            found.append((made.html, made.markdown))
    return found


def test_nothing_in_a_page_is_a_tag_an_attribute_or_a_script_of_a_name(pages: list[tuple[str, str]]) -> None:
    for page, _ in pages:
        seen = Seen(page)
        assert seen.tags <= OURS, seen.tags - OURS
        assert not any(name.startswith("on") or name in ("src", "srcset", "style") for name in seen.attributes - {"style"})
        assert len([text for text in seen.scripts if text]) == 2
        assert all(link.startswith("#") for link in seen.links)


def test_a_page_fetches_nothing_and_runs_only_its_own_script(pages: list[tuple[str, str]]) -> None:
    for page, _ in pages:
        own = "".join(re.findall(r"(?s)<(?:style|script)>(.*?)</(?:style|script)>", page))
        assert not re.search(r"@import|url\(|https?:|//[a-z]|xmlns", own)
        tags = "".join(re.findall(r"<[a-z][^>]*>", page))
        assert not re.search(r"\s(?:src|srcset|action|data|xmlns\S*)\s*=", re.sub(r'"[^"]*"', '""', tags))
        declared = re.search(r"script-src 'sha256-([^']+)'", page)
        script = page.rsplit("<script>", 1)[1].split("</script>")[0]
        assert declared is not None
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == declared[1]
        assert "default-src 'none'" in page


def test_only_the_style_of_a_bar_is_set_inline(pages: list[tuple[str, str]]) -> None:
    for page, _ in pages:
        assert all(re.fullmatch(r"width:\d{1,3}%", style) for style in re.findall(r'style="([^"]*)"', page))


def test_ids_are_unique_and_harmless(pages: list[tuple[str, str]]) -> None:
    for page, _ in pages:
        ids = Seen(page).ids
        assert len(ids) == len(set(ids))
        assert all(re.fullmatch(r"[A-Za-z0-9._-]+", id_) for id_ in ids)


def test_every_link_leads_somewhere(pages: list[tuple[str, str]]) -> None:
    for page, _ in pages:
        seen = Seen(page)
        assert {link[1:].split("?")[0] for link in seen.links} <= set(seen.ids)


def test_hostile_names_are_read_as_they_are_written(tmp_path: Path) -> None:
    page = hostile().rendered(tmp_path, "en").html
    text = html.unescape("".join(Seen(page).text))
    assert "</script><script>alert(1)</script>" in text
    assert '"><img src=x onerror=alert(1)>' in text
    assert "\\u202Egnissim\\u202C" in text
    assert "\u202e" not in page
    assert "x" * (LONGEST_NAME + 1) not in re.sub(r'data-copy="[^"]*"', "", page)
    assert f'data-copy="{"x" * 10_000}"' in page  # whole only where it is copied from


def test_the_rows_for_the_script_are_json_that_no_tag_can_end(tmp_path: Path) -> None:
    page = hostile().rendered(tmp_path, "zh-CN").html
    island = page.split('id="rows">')[1].split("</script>")[0]
    assert not set(island) & set("<>&\u2028\u2029")
    data = json.loads(island)
    assert "</script><script>alert(1)</script>" in data["p"]


def test_markdown_holds_no_tag_link_or_broken_table(pages: list[tuple[str, str]]) -> None:
    for _, text in pages:
        fenced = re.sub(r"(?s)```text.*?```", "", text)
        bare = re.sub(r"(?<!\\)`[^`]*`", "", fenced)
        assert not re.search(r"(?<!\\)<", bare)
        assert not re.search(r"(?<!\\)\]\(", bare)
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
        for table in re.findall(r"(?:^\|.*\n)+", fenced, re.MULTILINE):
            cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert len(cells) == 1, table[:400]


def test_text_of_people_keeps_its_emphasis_and_loses_the_rest() -> None:
    made = str(
        html_of_people("**a** *b* `c<d`\n\n- one\n- two\n\n<script>x</script> [in](#F1) [out](http://e.org) ![i](http://e.org/x.png)")
    )
    assert "<strong>a</strong> <em>b</em> <code>c&lt;d</code>" in made
    assert "<li>one</li>" in made
    assert "&lt;script&gt;x&lt;/script&gt;" in made
    assert '<a href="#F1">in</a> out' in made
    assert "http" not in made
    assert "<img" not in made


def test_no_text_of_people_makes_any_other_tag() -> None:
    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(HOSTILE_TEXT)
    def judge(text: str) -> None:
        made = str(html_of_people(text))
        tags = set(re.findall(r"</?([a-zA-Z0-9]*)", made))
        assert tags <= {"p", "em", "strong", "code", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "br", "a"}
        assert not re.search(r'<[a-z]+ (?!href="#)', made)

    judge()


def test_no_sentence_makes_a_tag_or_loses_a_sign() -> None:
    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(HOSTILE_TEXT)
    def judge(text: str) -> None:
        assert "".join(piece.text for piece in pieces(text, {"F1"})) == text
        made = str(html_prose(text, {"F1"}))
        assert set(re.findall(r"</?([a-z]*)", made)) <= {"code", "wbr", "a"}
        assert html.unescape(re.sub(r"</?(?:code|wbr|a)[^>]*>", "", made)) == visible(text)
        for shown in (markdown_text(text), markdown_prose(text, {"F1"})):
            assert "\n" not in shown
            assert not re.search(r"(?<!\\)(?:\\\\)*[<|\[]", re.sub(r"`[^`]*`", "", shown))

    judge()


def test_a_name_is_cut_in_the_middle_and_never_grows() -> None:
    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(st.text(max_size=600), st.integers(5, 300))
    def judge(text: str, room: int) -> None:
        made = short(text, room)
        assert len(made) <= room
        assert made == visible(text) or ("…" in made and visible(text).startswith(made.split("…")[0]))
        assert re.fullmatch(r"[A-Za-z0-9-]{1,12}", anchor(text))

    judge()


def test_findings_of_other_names_are_told_apart() -> None:
    """Names that differ only in signs that an id cannot hold, and one that is a section's."""
    anchors = [anchor(name) for name in ("F1", "F<", "F>", "table", "x" * 500, "x" * 501)]
    assert anchors[0] == "F1"
    assert len(set(anchors)) == 6
    assert "table" not in anchors


def test_a_large_page_is_still_whole(tmp_path: Path) -> None:
    seen = Seen(large(12, 4).rendered(tmp_path, "en").html)
    assert len(seen.ids) == len(set(seen.ids))
