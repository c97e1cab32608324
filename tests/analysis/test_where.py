"""Where a difference lies: patterns and hints on planted structures, the pitfalls of other tools, the facts about directions."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from dump_analysis import gate, wording
from dump_analysis.artefacts.boundary_results import BoundaryResult, Touched, Where
from dump_analysis.measure import where
from dumping import Tensor, compared, compared_all, cut, of, of_bits, output_of, outputs, row_of, side_of

Array = np.ndarray[Any, np.dtype[Any]]

T, H = 256, 512


def bf16(values: Array) -> Array:
    """Codes of the nearest bfloat16, ties to even."""
    bits = np.asarray(values, "<f4").view("<u4").astype("<u8")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def near(values: Array) -> Tensor:
    """A bfloat16 tensor of the nearest values."""
    return of_bits(bf16(values), "bfloat16")


def wide(codes: Array) -> Array:
    return (codes.astype("<u4") << 16).view("<f4")


def activations(tokens: int = T, width: int = H, seed: int = 0) -> Array:
    """Values that bfloat16 holds, none of them zero."""
    return wide(bf16(np.random.default_rng(seed).standard_normal((tokens, width)) + 3e-3))


def place(result: BoundaryResult) -> Where:
    assert result.where is not None
    return result.where


def hints(result: BoundaryResult) -> dict[str, Mapping[str, Any]]:
    """Kind -> values."""
    return {hint.kind: hint.values for hint in place(result).hints}


# --- patterns ---


def planted(shape: tuple[int, int], rows: Any, columns: Any, share: float = 1.0, seed: int = 1) -> Array:
    """A mask of the elements that differ."""
    mask = np.zeros(shape, bool)
    mask[np.ix_(np.arange(shape[0])[rows], np.arange(shape[1])[columns])] = True
    return mask & (np.random.default_rng(seed).random(shape) < share)


def differing(root: Path, masks: Mapping[str, Array], *, head: int | None = None) -> list[BoundaryResult]:
    """Tensors that differ where the masks say. ``head``: recorded as (tokens, heads, head)."""
    train, infer = {}, {}
    for name, mask in masks.items():
        a = activations(*mask.shape)
        shape = mask.shape if head is None else (len(mask), -1, head)
        train[name], infer[name] = of(a.reshape(shape)), of(np.where(mask, -a * 1.5, a).reshape(shape))
    return compared_all(root, train, infer)


ALL = slice(None)
PATTERNS = {
    "dense": (ALL, ALL, 0.3, "dense"),
    "all of it": (ALL, ALL, 1.0, "dense"),
    "scattered": (ALL, ALL, 0.004, "scattered"),
    "one token": ([17], ALL, 1.0, "tokens"),
    "a third of one token": ([17], ALL, 0.3, "tokens"),
    "the last four tokens": (slice(-4, None), ALL, 1.0, "tokens"),
    "one column": (ALL, [5], 1.0, "columns"),
    "three columns, here and there": (ALL, [5, 40, 41], 0.4, "columns"),
    "a block": (slice(20, 26), slice(30, 50), 1.0, "block"),
    "most of the tokens": (slice(10, None), ALL, 1.0, "dense"),
}


@pytest.mark.parametrize("size", [(T, H), (32, 64), (48, 1000)])
def test_patterns_of_planted_structures(tmp_path: Path, size: tuple[int, int]) -> None:
    """Each pattern at three sizes, whole and in part; what is touched is counted."""
    masks = {name: planted(size, *plan[:3]) for name, plan in PATTERNS.items()}
    for (name, mask), result in zip(masks.items(), differing(tmp_path, masks), strict=True):
        found = place(result)
        assert found.pattern == PATTERNS[name][3], name
        assert found.tokens == Touched(int(mask.any(axis=1).sum()), size[0])
        assert found.columns == Touched(int(mask.any(axis=0).sum()), size[1])
        assert found.onset_token == np.argmax(mask.any(axis=1))


def test_whole_heads(tmp_path: Path) -> None:
    """Heads 3 and 5 of 16 of width 32: told by the recorded shape; a part of one is no head; one of a few tokens is a block."""
    masks = {
        "layers.0.q.out": planted((T, H), ALL, np.r_[96:128, 160:192]),
        "layers.1.q.out": planted((T, H), ALL, slice(100, 114)),
        "layers.2.q.out": planted((T, H), slice(3, 8), slice(96, 128)),
        "layers.3.q.out": planted((T, H), ALL, slice(96, 352)),
    }
    heads, part, block, eight = differing(tmp_path, masks, head=32)
    assert [place(result).pattern for result in (heads, part, block)] == ["heads", "columns", "block"]
    assert hints(heads)["only_heads"] == {"heads": [3, 5], "of": 16}
    assert [head for head, _ in place(heads).worst.heads or []] == [3, 5]
    assert "only_heads" not in hints(part) | hints(block)
    assert [head for head, _ in place(eight).worst.heads or []] != []


def test_elements_at_random_are_no_structure(tmp_path: Path) -> None:
    """2000 draws of 1 to 50 single elements in five grids: a pattern of tokens, columns or a block would be invented."""
    draw = np.random.default_rng(11)
    grids = [(16, 16), (64, 8), (8, 64), (40, 200), (300, 30)]
    called: list[str] = []
    for shape in grids:
        for start in range(0, 400, 100):
            masks = {}
            for at in range(start, start + 100):
                mask = np.zeros(shape[0] * shape[1], bool)
                mask[draw.choice(mask.size, draw.integers(1, 51), replace=False)] = True
                masks[f"m{at}"] = mask.reshape(shape)
            called += [place(result).pattern for result in differing(tmp_path, masks)]
    assert len(called) == 2000
    assert sum(pattern not in ("dense", "scattered") for pattern in called) <= 3


def test_the_rows_and_columns_of_a_weight(tmp_path: Path) -> None:
    """A weight has no tokens: one matrix row, one column, one element of a bias."""
    row, column = planted((64, 96), [7], ALL), planted((64, 96), ALL, [9])
    found = differing(tmp_path, {"layers.0.q.weight": row, "layers.1.q.weight": column})
    assert [(place(result).tokens, place(result).onset_token, place(result).worst.tokens) for result in found] == [(None, None, None)] * 2
    assert (place(found[0]).rows, place(found[1]).rows) == (Touched(1, 64), Touched(64, 64))
    assert place(found[1]).pattern == "columns"
    assert hints(found[0])["only_rows"] == {"at": [7], "of": 64}
    assert hints(found[1])["only_columns"] == {"columns": [9], "of": 96}
    bias = compared_all(tmp_path, {"layers.0.q.bias": of([1.0] * 8)}, {"layers.0.q.bias": of([1.0] * 3 + [2.0] + [1.0] * 4)})[0]
    assert hints(bias)["only_columns"] == {"columns": [3], "of": 8}


# --- hints are true ---


def structured(draw: np.random.Generator) -> tuple[Array, Array]:
    """A random structure on random values: tokens, columns, runs, scales, offsets, zeros, moved rows, sometimes two of them."""
    a = activations(int(draw.integers(2, 12)), int(draw.integers(2, 12)), int(draw.integers(1 << 30)))
    b, (tokens, width) = a.copy(), a.shape
    for _ in range(draw.integers(1, 3)):
        low, left = int(draw.integers(tokens)), int(draw.integers(width))
        high, right = int(draw.integers(low, tokens)) + 1, int(draw.integers(left, width)) + 1
        kind = draw.integers(9)
        if kind == 0:
            b[low:high] *= 1.5
        elif kind == 1:
            b[:, left:right] *= 2
        elif kind == 2:
            b = b * np.float32(draw.choice([2, 1.04, 0.5, -1]))
        elif kind == 3:
            b = b + np.float32(draw.choice([8, -0.5, 100]))
        elif kind == 4:
            b[low] = 0
        elif kind == 5:
            b[low:high] = np.roll(a, int(draw.integers(1, 4)), axis=0)[low:high]
        elif kind == 6:
            a[low], b[low] = 3, draw.choice([3, 6])
        elif kind == 7:
            b[draw.random(a.shape) < 0.1] *= -1.25
        else:
            b[low, left] = draw.choice([np.nan, np.inf, 0])
    return a.astype("<f4"), b.astype("<f4")


def check_hints(result: BoundaryResult, a: Array, b: Array) -> None:
    """Each hint's claim, from the two arrays alone."""
    unequal = (a != b) & ~(np.isnan(a) & np.isnan(b))
    rows, columns = np.flatnonzero(unequal.any(axis=1)).tolist(), np.flatnonzero(unequal.any(axis=0)).tolist()
    finite = np.isfinite(a) & np.isfinite(b)
    for kind, told in ((hint.kind, hint.values) for hint in place(result).hints):
        if kind == "first_tokens_equal":
            assert rows[0] == told["onset"]
        elif kind == "only_tokens":
            assert (rows, len(a)) == (told["at"], told["of"])
        elif kind == "only_tokens_run":
            assert rows == list(range(told["first"], told["last"] + 1))
        elif kind == "only_columns":
            assert (columns, a.shape[1]) == (told["columns"], told["of"])
        elif kind == "only_columns_run":
            assert columns == list(range(told["first"], told["last"] + 1))
        elif kind in ("one_sided", "uneven"):
            up, down = (np.abs(a) < np.abs(b))[finite].sum(), (np.abs(a) > np.abs(b))[finite].sum()
            assert (told["n"] == up + down and 0 in (up, down)) if kind == "one_sided" else (told["smaller"], told["larger"]) == (up, down)
        elif kind == "one_offset":
            assert (b == a + np.float32(told["offset"])).all()
        elif kind == "one_scale":
            check_scale(a, b, told["scale"], told["stderr"])
        elif kind == "scale_of_all":
            x, y = a[finite].astype("f8"), b[finite].astype("f8")
            slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
            assert told["scale"] == pytest.approx(slope, rel=1e-6)
            assert abs(told["scale"] - 1) > 6 * told["stderr"]
        elif kind == "tokens_zero":
            side, other = (a, b) if told["side"] == "train" else (b, a)
            assert set(told["tokens"]) <= {at for at in range(len(a)) if not side[at].any() and other[at].any()}
        elif kind in ("tokens_moved", "tokens_lag"):
            moved = [at for at in rows if any((b[at] == a[other]).all() for other in range(len(a)) if other != at)]
            assert told["n"] == len(moved)
        else:
            raise AssertionError(kind)


def check_scale(a: Array, b: Array, scale: float, stderr: float) -> None:
    """infer is ``scale`` times train in every token and every column, as far as their elements tell, and that explains most."""
    kept = np.isfinite(a) & np.isfinite(b)
    a, b = (np.where(kept, side, 0).astype("f8") for side in (a, b))
    assert ((b - scale * a) ** 2).sum() <= 0.6 * ((b - a) ** 2).sum()
    for x, y in [*zip(a, b, strict=True), *zip(a.T, b.T, strict=True)]:
        own = x @ y / (x @ x or 1)
        spread = np.linalg.norm(y - own * x)
        assert abs(x @ y - scale * (x @ x)) <= 8 * (spread * np.linalg.norm(x) + stderr * (x @ x)) + 1e-6 * (x @ x)


def test_every_hint_is_true_on_random_structures(tmp_path: Path) -> None:
    """1500 draws of one or two planted faults. Truth: each sentence's claim checked again on the whole arrays."""
    draw = np.random.default_rng(12)
    for _ in range(15):
        pairs = [structured(draw) for _ in range(100)]
        sides = ({f"p{at}": of(pair[side]) for at, pair in enumerate(pairs)} for side in (0, 1))
        for result, (a, b) in zip(compared_all(tmp_path, *sides), pairs, strict=True):
            if result.where is not None:
                check_hints(result, a, b)


def one_scale(root: Path, a: Array, b: Array) -> Mapping[str, Any] | None:
    return hints(compared(root, of(a), of(b))).get("one_scale")


@pytest.mark.parametrize("scale", [2.0, 1.04, 1.004, 0.5, 1.0625])
def test_one_scale_is_told(tmp_path: Path, scale: float) -> None:
    """In every token and column, rounded to bfloat16 afterwards: the scale to half a step of bfloat16."""
    a = activations(2048, 1024)
    told = hints(compared(tmp_path, near(a), near(a * np.float32(scale))))["one_scale"]
    assert abs(told["scale"] - scale) <= scale * 2**-8


def test_one_scale_is_not_told_where_a_token_or_column_lacks_it(tmp_path: Path) -> None:
    """One column of two tokens or of one, one token without spread, an offset on top, a row that no sample holds, two columns."""
    two, one, many, large = activations(2, 1000), activations(1, 1000), activations(64, 100), activations(4096, 1024)
    for a in (two, one):
        b = 2 * a
        b[:, 5] = a[:, 5]
        assert one_scale(tmp_path, a, b) is None, a.shape
    a, b = many.copy(), 2 * many
    a[7] = b[7] = 3
    assert one_scale(tmp_path, a, b) is None
    assert one_scale(tmp_path, many, 2 * many + 100) is None
    b = 2 * large
    b[1] = large[1]
    assert one_scale(tmp_path, large, b) is None
    b = 2 * many
    b[:, 5] = many[:, 5]
    assert one_scale(tmp_path, many, b) is None
    narrow = activations(6, 2)
    b = -narrow
    b[1] = narrow[1] * -1.5
    assert one_scale(tmp_path, narrow, b) is None


def test_one_offset_of_large_integers(tmp_path: Path) -> None:
    """2**60 in all but one element, 2**60 + 1 there: no constant. The same everywhere: one."""
    a = np.random.default_rng(3).integers(0, 2**60, (8, 8))
    b = a + 2**60
    assert hints(compared(tmp_path, of(a, "int64"), of(b, "int64")))["one_offset"]["offset"] == 2**60
    b[3, 3] += 1
    assert "one_offset" not in hints(compared(tmp_path, of(a, "int64"), of(b, "int64")))
    positions = np.arange(20)
    assert hints(compared(tmp_path, of(positions, "int64"), of(positions + 1, "int64")))["one_offset"]["offset"] == 1


def test_an_offset_is_no_gain(tmp_path: Path) -> None:
    """infer = train + 0.1, mixed magnitudes: no line leaves 1 by more than rounding of the sums."""
    draw = np.random.default_rng(5)
    a = draw.integers(-(2**20), 2**20, (64, 128)) * 2.0 ** draw.integers(-20, 20, (64, 128))
    for dtype in ("float64", "float32"):
        kept = a.astype({"float64": "f8", "float32": "f4"}[dtype])
        gain = compared(tmp_path, of(kept, dtype), of(kept + kept.dtype.type(0.1), dtype)).gain
        assert gain is not None
        for lines in (gain.token, gain.column):
            assert lines is not None
            assert [scale for _, scale, _ in lines.beyond if abs(scale - 1) < 1e-12] == []


@pytest.mark.parametrize("massive", [1, 100])
def test_rounding_is_no_gain(tmp_path: Path, massive: int) -> None:
    """±1 ULP at random, also with two massive channels, whose one element decides a token's line: rounding grows with the value, so
    that a standard error which takes all elements for equally exact calls two thirds of the tokens clear of 1."""
    draw = np.random.default_rng(3)
    a = activations(3000, 256)
    a[:, [3, 77]] *= massive
    codes = bf16(a)
    other = codes + (draw.random(codes.shape) < 0.6) * draw.choice([1, -1], codes.shape)
    gain = compared(tmp_path, of_bits(codes, "bfloat16"), of_bits(other.astype("<u2"), "bfloat16")).gain
    assert gain is not None
    assert gain.token is not None
    assert gain.column is not None
    assert gain.token.beyond_count <= 15
    assert gain.column.beyond_count <= 2


def test_what_is_not_finite_makes_no_token_zero(tmp_path: Path) -> None:
    """Infer's token holds a 1 where train has a NaN: it is not all zero; train's token of NaN and zeros is not, either."""
    train, infer = of([[np.nan, 5.0], [1.0, 2.0], [np.nan, 0.0]]), of([[1.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    assert "tokens_zero" not in hints(compared(tmp_path, train, infer))


# --- which token ---


def numbered(
    root: Path, tensors: Mapping[str, tuple[Tensor, Tensor]], ops: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
) -> dict[str, BoundaryResult]:
    """Boundaries beside a row of input ids, each with its ops on both sides."""
    train, infer = (
        side_of(root, label, outputs({name: pair[at] for name, pair in tensors.items()})) for at, label in enumerate(("train", "infer"))
    )
    rows = [row_of(name, at, *(cut(name, *steps) for steps in ops[name])) for at, name in enumerate(tensors)]
    return {result.boundary: result for result in gate.compare(rows, [], train, infer)[0]}


def part(axis: int, start: int, stop: int | None = None) -> dict[str, Any]:
    return {"op": "slice", "axis": axis, "start": start} | ({} if stop is None else {"stop": stop})


def test_the_last_row_of_logits_is_the_last_token(tmp_path: Path) -> None:
    """The engine keeps [1, V], the trainer [1, T, V]: numbered T − 1 in all that names a token."""
    ids, logits = of(np.arange(10).reshape(1, 10), "int64"), activations(10, 40)
    one = wide(bf16(logits[9:] * np.float32(1.5)))
    found = numbered(
        tmp_path,
        {"input_ids": (ids, of(np.arange(10), "int64")), "logits": (of(logits.reshape(1, 10, 40)), of(one))},
        {"input_ids": ([{"op": "squeeze", "axis": 0}], []), "logits": ([{"op": "squeeze", "axis": 0}, part(0, 9)], [])},
    )["logits"]
    assert place(found).onset_token == 9
    assert [token for token, _ in place(found).worst.tokens or []] == [9]
    profile = place(found).token_profile
    assert profile is not None
    assert profile.edges == [9, 10]
    assert found.gain is not None
    assert found.gain.token is not None
    assert [token for token, _, _ in found.gain.token.beyond] == [9]


def test_tokens_after_left_padding_count_from_zero(tmp_path: Path) -> None:
    """Three padding tokens of the trainer are cut off: the first real token is 0; a boundary of the last two tokens is 5 and 6."""
    ids, a = np.arange(10), activations(10, 40)
    b, last = a[3:].copy(), a[8:].copy()
    b[2, 7], last[1, 7] = 9, 9
    found = numbered(
        tmp_path,
        {"input_ids": (of(ids, "int64"), of(ids[3:], "int64")), "a": (of(a), of(b)), "logits": (of(a), of(last))},
        {"input_ids": ([part(0, 3)], []), "a": ([part(0, 3)], []), "logits": ([part(0, 8)], [])},
    )
    assert (place(found["a"]).onset_token, place(found["logits"]).onset_token) == (2, 6)
    assert hints(found["a"])["only_tokens"] == {"at": [2], "of": 7}


def test_tokens_in_another_order(tmp_path: Path) -> None:
    """A boundary of the same tokens backwards, and one of three tokens out of order: numbered as the input ids are."""
    ids, a = np.arange(6), activations(6, 16)
    backwards, three = [5, 4, 3, 2, 1, 0], [2, 4, 1]
    b, c = a[backwards].copy(), a[three].copy()
    b[1, 3], c[1, 3], c[2, 3] = 9, 9, 9
    found = numbered(
        tmp_path,
        {"input_ids": (of(ids, "int64"), of(ids, "int64")), "b": (of(a), of(b)), "c": (of(a), of(c))},
        {
            "input_ids": ([], []),
            "b": ([{"op": "take", "axis": 0, "index": backwards}], []),
            "c": ([{"op": "take", "axis": 0, "index": three}], []),
        },
    )
    assert place(found["b"]).onset_token == 4
    assert place(found["c"]).onset_token == 1
    assert "first_tokens_equal" not in hints(found["c"]) or hints(found["c"])["first_tokens_equal"]["onset"] == 1


def test_the_profile_of_many_tokens(tmp_path: Path) -> None:
    """At most 40 bins of a residual stream, each with its tokens' largest relative error; none of other boundaries."""
    a = activations(100, 8)
    b = a.copy()
    b[57] *= 3
    found, other = compared_all(tmp_path, {"layers.0.resid_mlp": of(a), "x": of(a)}, {"layers.0.resid_mlp": of(b), "x": of(b)})
    profile = place(found).token_profile
    assert place(other).token_profile is None
    assert profile is not None
    assert len(profile.largest) == len(profile.edges) - 1 <= 40
    assert (profile.edges[0], profile.edges[-1]) == (0, 100)
    at = next(at for at, edge in enumerate(profile.edges) if edge > 57) - 1
    assert profile.largest == [pytest.approx(2.0) if bin_ == at else 0.0 for bin_ in range(len(profile.largest))]


# --- what other tools pass ---


def bits_of(result: BoundaryResult) -> tuple[str, int]:
    assert result.unequal is not None
    return result.status, result.unequal.count


def test_tokens_replaced_and_zeroed(tmp_path: Path) -> None:
    """One token's row is its neighbour's, the first token and the last two are zero: named, and counted as whole tokens."""
    a = activations(2048, 64)
    neighbour, first, last = a.copy(), a.copy(), a.copy()
    neighbour[500], first[0], last[-2:] = a[501], 0, 0
    results = compared_all(tmp_path, dict.fromkeys("abc", near(a)), {"a": near(neighbour), "b": near(first), "c": near(last)})
    assert [bits_of(result) for result in results] == [("NOT_EXACT", 64), ("NOT_EXACT", 64), ("NOT_EXACT", 128)]
    assert [place(result).pattern for result in results] == ["tokens"] * 3
    assert [place(result).onset_token for result in results] == [500, 0, 2046]
    assert "500" in (told := next(hint.text for hint in place(results[0]).hints if hint.kind.startswith("token"))), told
    assert "501" in told, told
    zero = [hints(result)["tokens_zero"] for result in results[1:]]
    assert zero == [{"side": "infer", "tokens": [0], "n": 1}, {"side": "infer", "tokens": [2046, 2047], "n": 2}]


def test_a_list_that_is_cut_does_not_say_that_it_is_all(tmp_path: Path) -> None:
    """30 zero tokens, 20 moved ones: the sentence may list some of them, and says no other number than 30 and 20."""
    a = activations(200, 16)
    zero, moved = a.copy(), a.copy()
    zero[50:80], moved[:20] = 0, a[20:40][::-1]
    results = compared_all(tmp_path, dict.fromkeys("ab", near(a)), {"a": near(zero), "b": near(moved)})
    for result, kind, count in zip(results, ("tokens_zero", "tokens_moved"), (30, 20), strict=True):
        (text,) = [hint.text for hint in place(result).hints if hint.kind == kind]
        assert text.startswith(f"{count} tokens ")
        assert set(re.findall(r"([0-9]+) in all", text)) <= {str(count)}, text


def test_tokens_shifted_and_permuted(tmp_path: Path) -> None:
    """The second half shifted by one (a lag), all rows permuted: max, mean and norm are the same, the rows are not."""
    a = activations(512, 64)
    shifted, order = a.copy(), np.random.default_rng(2).permutation(512)
    shifted[256:] = a[255:-1]
    lag, permuted = compared_all(tmp_path, dict.fromkeys("ab", near(a)), {"a": near(shifted), "b": near(a[order])})
    assert hints(lag)["tokens_lag"]["n"] == 256
    assert abs(hints(lag)["tokens_lag"]["lag"]) == 1
    assert (permuted.norm_ratio, place(permuted).pattern) == (1.0, "dense")
    assert hints(permuted)["tokens_moved"]["n"] == np.count_nonzero(order != np.arange(512))


def test_two_heads_swapped(tmp_path: Path) -> None:
    """Heads 2 and 9 of 16."""
    a = activations(128, 256).reshape(128, 16, 16)
    b = a.copy()
    b[:, [2, 9]] = a[:, [9, 2]]
    result = compared_all(tmp_path, {"layers.0.k.out": near(a)}, {"layers.0.k.out": near(b)})[0]
    assert place(result).pattern == "heads"
    assert hints(result)["only_heads"] == {"heads": [2, 9], "of": 16}


def test_one_massive_channel_does_not_hide_the_others(tmp_path: Path) -> None:
    """Channel 7 × 10,000 on both sides, all others zero on one: cosine 0.99999, 1023 columns touched, each wrong by all of it."""
    a = activations(256, 1024)
    a[:, 7] = wide(bf16(a[:, 7] * 1e4))
    b = np.zeros_like(a)
    b[:, 7] = a[:, 7]
    result = compared(tmp_path, near(a), near(b))
    assert result.cosine is not None
    assert result.cosine > 0.99999
    assert place(result).columns == Touched(1023, 1024)
    assert [error for _, error in place(result).worst.columns or []] == [1.0] * 3
    assert hints(result)["one_sided"]["n"] == 256 * 1023


def test_one_ulp_here_and_everywhere(tmp_path: Path) -> None:
    """+1 ULP on 0.1 % and ±1 ULP on 67 %: counted, one step each, one-sided and even."""
    a, draw = bf16(activations(2048, 512)), np.random.default_rng(3)
    sparse = a + (draw.random(a.shape) < 0.001).astype("<u2")
    dense = np.where(draw.random(a.shape) < 0.67, a + draw.choice([1, -1], a.shape), a).astype("<u2")
    few, many = compared_all(
        tmp_path, dict.fromkeys("ab", of_bits(a, "bfloat16")), {"a": of_bits(sparse, "bfloat16"), "b": of_bits(dense, "bfloat16")}
    )
    for result, codes in ((few, sparse), (many, dense)):
        assert bits_of(result) == ("NOT_EXACT", np.count_nonzero(a != codes))
        assert result.ulp is not None
        assert result.ulp.max == 1
    assert (place(few).pattern, place(many).pattern) == ("scattered", "dense")
    assert "one_sided" in hints(few)
    assert {"one_sided", "uneven", "one_scale"} & set(hints(many)) == set()


def test_special_numbers_that_other_tools_pass_or_fail(tmp_path: Path) -> None:
    """+0/−0, equal NaN, +inf/−inf, int64 beyond float32, 0 against 1e-8 among 1e-3 (the same either way round)."""
    zeros = compared(tmp_path, of([[0.0, 1.0]]), of([[-0.0, 1.0]]))
    assert (zeros.status, zeros.special and zeros.special.zero_sign) == ("EXACT", 1)
    nan = compared(tmp_path, of([np.nan, 1.0]), of([np.nan, 1.0]))
    assert (nan.status, nan.special and nan.special.nan_both, nan.max_abs_diff) == ("NONFINITE", 1, 0.0)
    infinite = compared(tmp_path, of([np.inf, 1.0]), of([-np.inf, 1.0]))
    assert bits_of(infinite) == ("NONFINITE", 1)
    slots = compared(tmp_path, of([2**24, 5], "int64"), of([2**24 + 1, 5], "int64"))
    assert (*bits_of(slots), slots.max_abs_diff) == ("NOT_EXACT", 1, 1.0)
    a, b = np.full((4, 8), 1e-3, "<f4"), np.full((4, 8), 1e-3, "<f4")
    a[1, 2], b[1, 2] = 0, 1e-8
    for left, right in ((a, b), (b, a)):
        tiny = compared(tmp_path, of(left), of(right))
        assert (*bits_of(tiny), tiny.max_abs_diff) == ("NOT_EXACT", 1, float(np.float32(1e-8)))


# --- directions ---


def rms_norm(x: Array, weight: Array, *, eps: float = 1e-6, early: bool = False) -> Array:
    """Codes; ``early``: rounded to bfloat16 before the weight is applied."""
    scaled = x / np.sqrt((x.astype("f8") ** 2).mean(axis=1, keepdims=True) + eps).astype("<f4")
    return bf16((wide(bf16(scaled)) if early else scaled) * weight)


def test_an_eps_fault_is_sparse_and_one_sided_and_a_cast_dense_and_two_sided(tmp_path: Path) -> None:
    """Activations of RMS 1: eps 1e-5 against 1e-6 touches about 0.1 % by one ULP, all one way; the other cast a quarter, both ways."""
    x, weight = activations(256, 896), wide(bf16(np.random.default_rng(8).uniform(0.5, 1.5, 896)))
    right = of_bits(rms_norm(x, weight), "bfloat16")
    eps, cast = compared_all(
        tmp_path,
        dict.fromkeys("ab", right),
        {"a": of_bits(rms_norm(x, weight, eps=1e-5), "bfloat16"), "b": of_bits(rms_norm(x, weight, early=True), "bfloat16")},
    )
    assert eps.unequal is not None
    assert cast.unequal is not None
    assert 0.0005 < eps.unequal.share < 0.0015
    assert 0.2 < cast.unequal.share < 0.3
    for result in (eps, cast):
        assert result.ulp is not None
        assert result.ulp.max == 1
    assert eps.direction is not None
    assert cast.direction is not None
    assert (eps.direction.smaller, eps.direction.larger) == (0, eps.unequal.count)
    assert hints(eps)["one_sided"]["n"] == eps.unequal.count
    assert 0.45 < cast.direction.smaller / cast.unequal.count < 0.55
    assert "one_sided" not in hints(cast)


def test_parts_of_a_sum_stay_within_a_step_of_the_largest_addend(tmp_path: Path) -> None:
    """Two ranks' bfloat16 parts that cancel, summed by the mapping, against one rounding of the whole: hundreds of ULPs of the
    result, one of the addends, in both directions."""
    draw = np.random.default_rng(9)
    one = draw.standard_normal((256, 128)).astype("<f4") * 8
    other = (-one + draw.standard_normal(one.shape) * 0.5).astype("<f4")
    train = side_of(tmp_path, "train", outputs({"a": near(one + other)}))
    infer = side_of(tmp_path, "infer", outputs({"r0": near(one), "r1": near(other)}))
    row = row_of("a", 0, infer={"sources": [{"name": output_of("r0")}, {"name": output_of("r1")}], "combine": "sum"})
    result = gate.compare([row], [], train, infer)[0][0]
    a, b = wide(bf16(one + other)), wide(bf16(wide(bf16(one)) + wide(bf16(other))))
    scale = np.maximum(np.abs(wide(bf16(one))), np.abs(wide(bf16(other)))).max(axis=1)
    assert result.ulp is not None
    assert result.ulp.max > 100
    assert result.ulp.max_at_row_scale == pytest.approx((np.abs(b - a).max(axis=1) / 2.0 ** (np.floor(np.log2(scale)) - 7)).max(), rel=1e-5)
    assert result.ulp.max_at_row_scale <= 1.0
    assert result.direction is not None
    assert 0.45 < result.direction.smaller / (result.direction.smaller + result.direction.larger) < 0.55
    assert "one_sided" not in hints(result)


def test_a_nan_in_an_addend_leaves_the_others_of_its_row(tmp_path: Path) -> None:
    """One element that is not finite: the row's scale is still that of its other addends."""
    one, other = np.array([[64.0, np.nan, 1.0]], "<f4"), np.array([[-64.0, 1.0, 1.0]], "<f4")
    train = side_of(tmp_path, "train", outputs({"a": of([[0.5, 1.0, 2.0]], "bfloat16")}))
    infer = side_of(tmp_path, "infer", outputs({"r0": of(one, "bfloat16"), "r1": of(other, "bfloat16")}))
    row = row_of("a", 0, infer={"sources": [{"name": output_of("r0")}, {"name": output_of("r1")}], "combine": "sum"})
    result = gate.compare([row], [], train, infer)[0][0]
    assert result.ulp is not None
    assert result.ulp.max_at_row_scale == 1.0


def test_an_embedding_multiplier_rounded_to_34_is_one_sided(tmp_path: Path) -> None:
    """33.9411 (√1152) against 34.0, what bfloat16 makes of it."""
    table = activations(256, 512)
    result = compared(tmp_path, near(table * np.float32(33.9411)), near(table * np.float32(34.0)))
    assert result.direction is not None
    assert result.unequal is not None
    assert (result.direction.smaller, result.direction.larger) == (result.unequal.count, 0)
    assert hints(result)["one_sided"]["n"] == result.unequal.count


VERDICTS = re.compile(
    r"harmless|benign|negligible|ignor|fault|bug|wrong|rounding|noise|logic|normal|expected|无害|正常|可忽略|故障|错误|舍入|噪声|预期"
)


def test_no_hint_says_whether_a_difference_matters() -> None:
    """Sparse is no proof of rounding, dense none of a fault: every sentence that `where` words, in both languages."""
    kinds = set(re.findall(r'"([a-z]+(?:_[a-z]+)*)"', Path(str(where.__file__)).read_text())) & set(wording.TABLE)
    assert {"only_tokens", "one_sided", "uneven", "one_scale", "tokens_moved"} <= kinds
    assert {kind: text for kind in kinds for text in wording.TABLE[kind] if VERDICTS.search(text)} == {}
    sparse_or_dense = re.compile("(sparse|scattered|dense|稀疏|稠密|零散).*(harmless|fault|rounding|logic|无害|故障|舍入|逻辑)")
    assert [kind for kind, texts in wording.TABLE.items() if any(sparse_or_dense.search(text) for text in texts)] == []


# --- rows that are not what they seem ---


def result_of(
    root: Path, train: Tensor, infer: Tensor, ids: Any, train_ops: Sequence[Any] = (), infer_ops: Sequence[Any] = ()
) -> BoundaryResult:
    """A boundary beside a row of input ids that are equal on both sides."""
    tokens = of(np.asarray(ids), "int64")
    return numbered(root, {"input_ids": (tokens, tokens), "a": (train, infer)}, {"input_ids": ([], []), "a": (train_ops, infer_ops)})["a"]


def test_integers_against_floats_have_no_one_offset(tmp_path: Path) -> None:
    """train + 3.5 in a float format: cutting the difference to 3 would be false."""
    found = compared(tmp_path, of(np.arange(64).reshape(8, 8), "int32"), of(np.arange(64).reshape(8, 8) + 3.5))
    assert "one_offset" not in hints(found)


def test_as_many_tokens_as_heads(tmp_path: Path) -> None:
    """Recorded (1, 8 heads, 8 tokens, 16), turned: the tokens that differ are the last three, not token 0 three times."""
    a = activations(64, 16).reshape(1, 8, 8, 16)
    b = a[0].transpose(1, 0, 2).reshape(8, 128).copy()
    b[5:] += 1
    turned = [{"op": "squeeze", "axis": 0}, {"op": "permute", "axes": [1, 0, 2]}, {"op": "reshape", "shape": [8, 128]}]
    found = result_of(tmp_path, of(a), of(b), np.arange(8), turned)
    assert (place(found).onset_token, hints(found)["only_tokens"]["at"]) == (5, [5, 6, 7])


@pytest.mark.parametrize("shape", [(4, 8, 16), (8, 2, 8)])
def test_rows_that_do_not_count_the_tokens_are_no_tokens(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """Heads first, and tokens before a batch of two: no token is named."""
    ids = np.arange(8) if shape[0] == 4 else np.arange(16).reshape(2, 8)
    a = activations(64, 8).reshape(-1)[: int(np.prod(shape))].reshape(shape)
    b = a.copy()
    b[2] += 1
    found = result_of(tmp_path, of(a), of(b), ids)
    assert (place(found).onset_token, place(found).tokens, place(found).worst.tokens) == (None, None, None)
    assert not {kind for kind in hints(found) if "token" in kind}


def test_a_part_of_the_tokens_says_nothing_of_the_others(tmp_path: Path) -> None:
    """Tokens 1 and 6 of 8 are compared and 6 differs: tokens 2 to 5 were not looked at."""
    a = activations(8, 16)
    b = a[[1, 6]].copy()
    b[1, 3] += 1
    found = result_of(tmp_path, of(a), of(b), np.arange(8), [{"op": "take", "axis": 0, "index": [1, 6]}])
    assert place(found).onset_token == 6
    assert "first_tokens_equal" not in hints(found)


def test_a_distance_of_tokens_is_theirs_and_not_the_rows(tmp_path: Path) -> None:
    """Every tenth token, shifted by one row: the distance is ten; exchanged halves have two distances, so examples are given."""
    a, kept = activations(80, 16), list(range(0, 80, 10))
    shifted = np.roll(a[kept], -1, axis=0)[:-1]
    found = result_of(tmp_path, of(a), of(shifted), np.arange(80), [{"op": "take", "axis": 0, "index": kept[:-1]}])
    assert hints(found)["tokens_lag"]["lag"] == 10 if "tokens_lag" in hints(found) else "tokens_moved" in hints(found)
    halves = np.concatenate([a[3:6], a[:3]])
    swapped = result_of(tmp_path / "b", of(a[:6]), of(halves), np.arange(6))
    assert "tokens_moved" in hints(swapped)


def test_an_interleaved_rotation_tells_no_width_of_heads(tmp_path: Path) -> None:
    """reshape to (tokens, 4 heads, 8, 2) and a permute only reorder a head's columns: two is no width of a head."""
    a = activations(8, 64)
    steps = [{"op": "reshape", "shape": [-1, 4, 8, 2]}, {"op": "permute", "axes": [0, 1, 3, 2]}, {"op": "reshape", "shape": [-1, 64]}]
    b = a.reshape(8, 4, 8, 2).transpose(0, 1, 3, 2).reshape(8, 64).copy()
    b[:, 16:32] += 1
    sides = side_of(tmp_path, "train", outputs({"q": of(a)})), side_of(tmp_path, "infer", outputs({"q": of(b)}))
    row = row_of("q", 0, train=cut("q", *steps))
    row = msgspec.structs.replace(row, boundary="layers.0.q_rope.out")
    (found,) = gate.compare([row], [], *sides)[0]
    assert place(found).worst.heads is None
    assert "only_heads" not in hints(found)


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0001, "1.0001"), (0.99996, "0.99996"), (1.0625, "1.0625"), (2.0, "2"), (0.123456, "0.1235")]
)
def test_a_scale_near_one_is_printed_with_its_digits(value: float, shown: str) -> None:
    """ "1 times train" says nothing of a scale of 1.0001."""
    assert f"infer is {shown} times" in wording.word("one_scale", scale=value, stderr=1e-6).text
