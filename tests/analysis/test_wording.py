"""The table of sentences: every kind that the code uses is there, complete in both languages."""

import ast
import string
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from dump_analysis import wording
from dump_analysis.artefacts.common import Worded
from dump_analysis.wording import TABLE, Language, render, text_of, word
from hypothesis import given, settings
from hypothesis import strategies as st
from running import SCRIPTS

LANGUAGES = get_args(Language)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def sources() -> list[ast.Module]:
    """Every module of the skill but the table itself; causes stay, whose kinds `causes.table` puts together from their names."""
    table = {SCRIPTS / "dump_analysis/wording.py", *(SCRIPTS / "dump_analysis/words").glob("*.py")} - {
        SCRIPTS / "dump_analysis/words/causes.py"
    }
    paths = [path for path in SCRIPTS.rglob("*.py") if path not in table and "msprobe_files" not in path.parts]
    assert len(paths) > 10
    return [ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in paths]


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Each call of ``word`` with each kind that its first argument states."""
    for tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "word":
                for kind in kinds_stated(node.args[0]):
                    yield kind, node


def kinds_stated(argument: ast.expr) -> set[str]:
    """The kinds of a literal, or of either branch of a choice."""
    if isinstance(argument, ast.IfExp):
        return kinds_stated(argument.body) | kinds_stated(argument.orelse)
    return {argument.value} if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else set()


def test_every_kind_in_the_code_is_in_the_table_with_its_values() -> None:
    """Catches a KeyError that only a rare dump would meet."""
    found = list(calls())
    assert len(found) > 40
    for kind, call in found:
        assert kind in TABLE, kind
        given = {keyword.arg for keyword in call.keywords}
        if None not in given:  # no ** among them
            assert placeholders(TABLE[kind][0]) <= given, kind


def test_every_kind_in_the_table_is_used() -> None:
    """Catches sentences that nothing says any more."""
    texts = {node.value for tree in sources() for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert set(TABLE) - texts == set()


@pytest.mark.parametrize("kind", TABLE)
def test_both_languages_use_the_same_values(kind: str) -> None:
    english, chinese = TABLE[kind]
    assert placeholders(english) == placeholders(chinese)
    assert english.strip() == english
    assert not any("\u3000" <= sign <= "\u9fff" for sign in english)


VALUES: list[Any] = [
    "layers.0.q.out", "{0} {x} }{", "", 0, -1, 2.5, float("inf"), float("nan"), None, True,
    ["a"], [], list(range(100)), ("a", "b"), [word("both"), "a"], word("both"), {"kind": "both", "values": {}, "text": "both sides"},
    {"kind": "of a later release", "values": {}, "text": "Later."}, {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("kind", TABLE)
def test_a_sentence_never_raises_whatever_its_values(kind: str) -> None:
    """Names with braces, lists, numbers that JSON lacks, sentences inside sentences, as objects or as parsed JSON."""
    names = placeholders(TABLE[kind][0])
    for value in VALUES:
        made = word(kind, **dict.fromkeys(names, value))
        assert (made.kind, made.values) == (kind, dict.fromkeys(names, value))
        assert made.text == text_of(made, "en")
        for language in LANGUAGES:
            assert isinstance(render(kind, made.values, language), str)


def test_text_of_people_is_not_taken_for_a_pattern() -> None:
    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(st.text())
    def judge(name: str) -> None:
        assert word("tensor_missing", side="train", name=name).text == f"train records no tensor {name}"

    judge()


def test_a_sentence_inside_a_sentence_is_in_the_same_language() -> None:
    """As made, and as read back from a file."""
    outer = word("sum_not_run", why=word("no_rows"))
    assert outer.text == "Nothing was compared: the mapping has no rows."
    for sentence in (outer, msgspec.json.decode(msgspec.json.encode(outer), type=Worded)):
        assert text_of(sentence, "en") == outer.text
        assert text_of(sentence, "zh-CN") == "没有进行任何比较：映射没有任何行。"


def test_a_long_list_is_cut_in_the_text_and_whole_in_the_values() -> None:
    names = [f"layers.{at}.q.out" for at in range(100)]
    made = word("decide_gap", names=names)
    assert made.values["names"] == names
    assert names[0] in made.text
    assert names[99] not in made.text
    assert "100" in made.text
    assert "100" in text_of(made, "zh-CN")


def test_a_short_list_is_shown_whole() -> None:
    assert word("decide_gap", names=["a", "b"]).text == "recording or mapping a, b"
    assert text_of(word("decide_gap", names=["a", "b"]), "zh-CN") == "记录或映射 a、b"


def test_a_kind_of_a_later_release_keeps_its_text() -> None:
    later = Worded("of a later release", {"n": 1}, "Something new.")
    assert [text_of(later, language) for language in LANGUAGES] == ["Something new."] * 2
    assert "Something new." in text_of(word("sum_not_run", why=later), "zh-CN")


def test_a_kind_or_a_value_that_is_not_there_is_a_fault_at_once() -> None:
    with pytest.raises(KeyError):
        word("no such kind")
    with pytest.raises(KeyError):
        word("tensor_missing", side="train")


def test_numbers_are_short() -> None:
    assert "0.3333" in word("tensor_missing", side="x", name=1 / 3).text
    assert wording.word("tensor_missing", side="x", name=1e-30).text.endswith("1e-30")
