"""Context parallel: in which order the tokens of several ranks make up a prompt, whatever the padding and the number of ranks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sharding
from dump_analysis.mapping.ranks.context import Piece, same_tokens, token_pieces
from dump_analysis.mapping.recorded.nodes import Recorded, Spot
from dump_analysis.mapping.tokens.token_vectors import Integers, Vector
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.errors import DumpError
from networks import TOKENS, Network, engine, trainer, weights_of
from test_ranks import compare, said

Array = np.ndarray[Any, Any]
PLAIN = Network(stale="o_proj")
_NOWHERE: Any = Recorded(Spot(0.0, "e", "input", "0", True), None, None)  # type: ignore[arg-type]


def integers(ids: Array, positions: Array | None = None, starts: tuple[int, ...] = (0,)) -> Integers:
    made = [Vector(_NOWHERE, np.asarray(each), 1, np.array(starts)) for each in ([ids] if positions is None else [ids, positions])]
    return Integers(made, made[:1])


def zigzag(count: int, length: int) -> list[Array]:
    """The tokens of each rank, by Megatron's get_batch_on_this_cp_rank: view [2n, length / 2n], take rows r and 2n - 1 - r."""
    chunks = np.arange(length).reshape(2 * count, -1)
    return [chunks[[rank, 2 * count - 1 - rank]].reshape(-1) for rank in range(count)]


def together(order: list[Piece], ids: list[Array]) -> Array:
    return np.concatenate([ids[piece.group][piece.start : piece.stop] for piece in order])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(2, 5), st.booleans(), st.integers(0, 2**32 - 1), st.booleans())
def test_both_orders_of_trainers_are_found(count: int, width: int, crossed: bool, seed: int, few_words: bool) -> None:
    """Catches zigzag known for two ranks only, and ids that repeat taken at another place."""
    rng = np.random.default_rng(seed)
    length = 2 * count * width
    prompt = rng.integers(0, 5 if few_words else 1000, length)
    held = zigzag(count, length) if crossed else list(np.arange(length).reshape(count, -1))
    ids = [prompt[tokens] for tokens in held]
    if len({each.tobytes() for each in ids}) < count:
        return
    found = token_pieces([integers(each) for each in ids], [integers(prompt)])
    assert found is not None
    assert (together(found.order, ids) == prompt).all()
    assert (found.first, found.matches) == (0, length)
    if not few_words:
        assert found.layout == ("zigzag" if crossed else "plain")


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_any_order_is_read_from_the_positions(count: int, seed: int) -> None:
    """Catches tokens dealt out in an order of no trainer that is known, joined as if it were one of theirs."""
    rng = np.random.default_rng(seed)
    chunks = np.arange(8 * count).reshape(2 * count, 4)[rng.permutation(2 * count)]
    held = [np.sort(each.reshape(-1)) for each in np.split(chunks, count)]
    prompt = rng.integers(0, 9, 8 * count)
    found = token_pieces([integers(prompt[tokens], tokens) for tokens in held], [integers(prompt)])
    assert found is not None
    assert (together(found.order, [prompt[tokens] for tokens in held]) == prompt).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_any_order_of_runs_is_read_from_ids_alone(count: int, seed: int, changed: bool) -> None:
    """Catches an order that only the ids tell given up; one id that differs between the sides is no reason to."""
    rng = np.random.default_rng(seed)
    chunks = np.arange(20 * count).reshape(2 * count, 10)[rng.permutation(2 * count)]
    prompt = rng.permutation(5000)[: 20 * count]
    held = [each.reshape(-1) for each in np.split(chunks, count)]
    ids = [prompt[tokens].copy() for tokens in held]
    if changed:
        ids[0][4] = 6000
    found = token_pieces([integers(each) for each in ids], [integers(prompt)])
    assert found is not None
    assert [int(token) for token in together(found.order, held)] == list(range(20 * count))
    assert found.matches == 20 * count - changed


def test_packed_prompts_each_in_zigzag_give_the_one_that_the_engine_ran() -> None:
    """Catches a pack of prompts (THD), each cut into its own pieces, halved as one: rank 0 holds ends of both prompts."""
    rng = np.random.default_rng(4)
    one, other = rng.integers(0, 500, 16), rng.integers(0, 500, 24)
    ids = [np.concatenate([one[a], other[b]]) for a, b in zip(zigzag(2, 16), zigzag(2, 24), strict=True)]
    found = token_pieces([integers(each) for each in ids], [integers(other)])
    assert found is not None
    assert (together(found.order, ids) == other).all()
    assert found.layout == "other"


def test_padding_that_makes_tokens_divide_is_no_other_prompt() -> None:
    """Catches a prompt of 22 tokens, padded to 24 for two ranks, not recognised: the engine pads nothing."""
    prompt = np.random.default_rng(6).integers(3, 1000, 22)
    padded = np.concatenate([prompt, [0, 0]])
    ids = [padded[tokens] for tokens in zigzag(2, 24)]
    found = token_pieces([integers(each) for each in ids], [integers(prompt)])
    assert found is not None
    assert found.layout == "zigzag"
    assert (together(found.order, ids) == padded).all()


def test_other_prompts_are_no_pieces() -> None:
    """Catches data-parallel ranks with a prompt each, also where the engine ran both in one batch, joined as one prompt."""
    rng = np.random.default_rng(9)
    one, other = rng.integers(0, 500, 12), rng.integers(0, 500, 12)
    both = integers(np.concatenate([one, other]), np.concatenate([np.arange(12)] * 2), (0, 12))
    assert token_pieces([integers(one), integers(other)], [both]) is None
    assert token_pieces([integers(one), integers(other)], [integers(one)]) is None
    assert not same_tokens([integers(one), integers(other)], [both])


def test_an_order_that_nothing_makes_is_the_message(tmp_path: Path) -> None:
    """Catches tokens dealt out one by one and no positions to tell (case C07, neither order): half a prompt compared without a word."""
    weights = weights_of(PLAIN)

    def dealt(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
        places = [0, 3, 4, 7, 8, 11] if rank == 0 else [1, 2, 5, 6, 9, 10]
        return values if slot == "weight" or values.shape[0] != TOKENS else values[places][::-1]

    left = sharding.write_ranks(tmp_path / "train", trainer(PLAIN, weights), dealt)
    right = engine(PLAIN, weights).write(tmp_path / "infer")
    ids = [integers(np.array([5, 1, 3, 2])), integers(np.array([4, 6, 8, 7]))]
    assert same_tokens(ids, [integers(np.arange(1, 9))])
    assert token_pieces(ids, [integers(np.arange(1, 9))]) is None
    with pytest.raises(DumpError, match="order of the tokens itself differs"):
        compare(tmp_path, left, right)


def test_another_order_of_whole_pieces_is_joined_and_said(tmp_path: Path) -> None:
    """Catches the third possible order of two ranks passed over: it is no zigzag and no plain one, so people must look."""
    weights = weights_of(PLAIN)
    quarter = TOKENS // 4

    def dealt(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
        parts = np.split(values, 4) if slot != "weight" and values.shape[0] == 4 * quarter else None
        return values if parts is None else np.concatenate([parts[rank], parts[rank + 2]])

    train, infer = trainer(PLAIN, weights), engine(PLAIN, weights)
    left = sharding.write_ranks(tmp_path / "train", train, dealt)
    right = infer.write(tmp_path / "infer")
    _, truth, _ = compare(tmp_path, train.write(tmp_path / "one"), right)
    mapping, results, told = compare(tmp_path, left, right)
    assert said(results) == said(truth)
    assert any("neither rank after rank nor zigzag: rank0 0:3, rank1 0:3, rank0 3:6, rank1 3:6" in line for line in told)
    assert mapping.ranks is not None
    assert mapping.ranks.train is not None
    assert mapping.ranks.train.parallel.cp == 2
