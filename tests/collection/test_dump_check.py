"""Which tokens of two sides are the same, and what is left over: properties over made-up ids, and the words of the checks."""

from __future__ import annotations

import string
from types import SimpleNamespace
from typing import Any

from dump_collection.dump_check import embedding, matching, pieces
from dump_collection.dump_check.integers import Forward, Vector
from dump_collection.wording import TABLE, word
from hypothesis import given
from hypothesis import strategies as st
from msprobe_files.units import Record

IDS = st.lists(st.integers(1, 1000), min_size=2, max_size=40).map(tuple)
Ids = tuple  # of int; Python 3.8 runs this file


def forward(ids: Ids, positions: Ids | None, rows: int = 1, step: int = 0) -> Forward:
    """One forward of a unit that only has its step."""
    unit: Any = SimpleNamespace(place=SimpleNamespace(step=step, rank=0))
    record = Record("ids", "entry", "input", "0", "int64", (len(ids),), None, {}, None, None)
    counted = Vector(record, positions, rows) if positions is not None else None
    return Forward(unit, Vector(record, ids, rows), counted, record, 0)


def count(length: int, first: int = 0) -> Ids:
    return tuple(range(first, first + length))


def cut(ids: Ids, first: int = 0) -> pieces.Cut:
    return pieces.cut(forward(ids, count(len(ids), first)))


# --- a forward as its sequences ---


@given(st.lists(IDS, min_size=1, max_size=4), st.integers(0, 5))
def test_packed_sequences_come_apart_where_positions_begin_again(prompts: list[Ids], padding: int) -> None:
    """And rows of one repeated id at one position, as a mask leaves them, belong to none."""
    ids = tuple(one for prompt in prompts for one in prompt) + (0,) * padding
    positions = tuple(at for prompt in prompts for at in count(len(prompt))) + (1,) * padding
    made = pieces.cut(forward(ids, positions))
    assert [piece.ids for piece in made.pieces] == list(prompts)
    assert made.padding == padding


@given(IDS, st.integers(1, 8))
def test_padding_before_the_prompt_is_no_sequence(prompt: Ids, padding: int) -> None:
    made = pieces.cut(forward((0,) * padding + prompt, (1,) * padding + count(len(prompt))))
    assert [piece.ids for piece in made.pieces] == [prompt]
    assert made.padding == padding


@given(IDS, st.integers(2, 4))
def test_each_row_of_a_batch_is_a_sequence(prompt: Ids, rows: int) -> None:
    made = pieces.cut(forward(prompt * rows, None, rows=rows))
    assert [piece.ids for piece in made.pieces] == [prompt] * rows


def test_decoded_tokens_of_other_requests_are_sequences() -> None:
    """An engine mixes a prefill with single tokens of requests that decode."""
    made = pieces.cut(forward((5, 6, 7, 91, 92), (0, 1, 2, 30, 12)))
    assert [piece.ids for piece in made.pieces] == [(5, 6, 7), (91,), (92,)]


def test_parts_of_a_context_parallel_rank_are_put_together() -> None:
    """Rank 0 has the first and the last quarter, rank 1 those between."""
    prompt = tuple(range(100, 116))
    ranks = [(0, 1, 2, 3, 12, 13, 14, 15), (4, 5, 6, 7, 8, 9, 10, 11)]
    found = matching.match([pieces.cut(forward(tuple(prompt[at] for at in rank), rank)) for rank in ranks], [cut(prompt)])
    assert found is not None
    assert found.train.ids == prompt
    assert found.fit.unequal == ()


# --- two sequences ---


@given(IDS, IDS, IDS)
def test_a_sequence_is_found_inside_another(before: Ids, prompt: Ids, after: Ids) -> None:
    long = before + prompt + after
    fit = matching.fit_of(long, prompt)
    assert fit.unequal == ()
    assert fit.length == len(prompt)
    assert long[fit.train : fit.train + fit.length] == prompt
    assert matching.fit_of(prompt, long) == matching.Fit(0, fit.train, fit.length, ())


@given(IDS, st.data())
def test_the_places_that_differ_are_named(prompt: Ids, data: st.DataObject) -> None:
    places = data.draw(st.sets(st.integers(0, len(prompt) - 1)))
    other = tuple(one + 1000 if at in places else one for at, one in enumerate(prompt))
    assert matching.fit_of(prompt, other).unequal == tuple(sorted(places))


@given(IDS, st.data())
def test_chunks_are_put_together_by_their_positions(prompt: Ids, data: st.DataObject) -> None:
    """In whatever order the steps are read; chunks of one token are taken for decode steps, so there are none here."""
    at = data.draw(st.integers(2, max(2, len(prompt) - 2)))
    chunks = [cut(prompt[:at]), cut(prompt[at:], at)] if len(prompt) >= at + 2 else [cut(prompt)]
    found = matching.match([cut(prompt)], data.draw(st.permutations(chunks)))
    assert found is not None
    assert found.infer.ids == prompt
    assert found.infer.positions == count(len(prompt))
    assert found.fit.unequal == ()


def test_a_response_that_was_decoded_is_no_chunk() -> None:
    """The trainer kept prompt and response, the engine made the response one token a step."""
    steps = [cut((5, 6, 7, 8)), cut((9,), 4), cut((10,), 5)]
    found = matching.match([cut((5, 6, 7, 8, 9, 10))], steps)
    assert found is not None
    assert [len(part.ids) for part in found.infer.parts] == [4]


def test_the_forward_with_the_same_tokens_is_chosen() -> None:
    """Not the first, and not the longest."""
    steps = [cut((1,) * 16), cut((4, 5, 6, 7, 8)), cut((20, 21, 22)), cut((23,), 3)]
    found = matching.match([cut((20, 21, 22))], steps)
    assert found is not None
    assert found.infer.ids == (20, 21, 22)


# --- what counts ---


@given(st.integers(0, 50), st.integers(2, 50))
def test_positions_count_up_and_ids_do_not(first: int, length: int) -> None:
    assert embedding.counts_up(count(length, first))
    assert not embedding.counts_up((7,) * length)
    assert not embedding.counts_up(tuple(97 * at % 31 for at in range(length + 8)))


# --- words ---


def test_every_sentence_has_the_same_values_in_both_languages() -> None:
    for kind, (english, chinese) in TABLE.items():
        values = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (english, chinese)]
        assert values[0] == values[1], kind


def test_a_list_of_sentences_is_a_sentence() -> None:
    both = word("each_side", found=[word("no_slack", side="train"), word("no_slack", side="infer")])
    assert both["text"] == "train: files hold their tensors and nothing else, infer: files hold their tensors and nothing else"
