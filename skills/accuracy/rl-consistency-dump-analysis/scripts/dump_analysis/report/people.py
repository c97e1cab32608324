"""Text that people wrote in Markdown, as HTML of a few harmless tags; nothing in it is ever a tag, a picture or a foreign link."""

from html.parser import HTMLParser

from markupsafe import Markup, escape

from dump_analysis.report.said import visible

_TAGS = frozenset(("p", "em", "strong", "code", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "br"))
# The signs of HTML are taken out of the text before Markdown sees it, and put back escaped: code spans escape nothing twice.
_HELD = {"<": "\ue000", ">": "\ue001", "&": "\ue002"}
_BACK = {"\ue000": "&lt;", "\ue001": "&gt;", "\ue002": "&amp;"}
_HOLD, _RELEASE = str.maketrans(_HELD), str.maketrans(_BACK)
_LONGEST = 20_000


class _Kept(HTMLParser):
    """Tags that are allowed, without attributes; links only within the page; all else is text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.links: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            target = dict(attrs).get("href") or ""
            self.links.append(target.startswith("#"))
            if self.links[-1]:
                self.parts.append(str(Markup('<a href="{}">').format(target)))
        elif tag in _TAGS:
            self.parts.append(f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.parts += ["</a>"] if self.links and self.links.pop() else []
        elif tag in _TAGS and tag != "br":
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.parts.append(str(escape(data)))


def html_of_people(text: str) -> Markup:
    """The text as HTML; one that is longer than any note is cut, and says so by the dots at its end."""
    import markdown

    lines = "\n".join(visible(line) for line in text.split("\n"))
    cut = lines if len(lines) <= _LONGEST else lines[:_LONGEST] + " …"
    kept = _Kept()
    kept.feed(markdown.markdown(cut.translate(_HOLD), extensions=["tables"]))
    kept.close()
    inner = "".join(kept.parts).translate(_RELEASE)
    only = inner.startswith("<p>") and inner.endswith("</p>") and inner.count("<p>") == 1
    return Markup(inner[3:-4] if only else inner)
