"""The gate against torch.equal, on tensors that torch made and saved."""

import json
import tempfile
from pathlib import Path

import pytest
import torch
from dump_analysis import gate, sides
from dump_analysis.artefacts.boundary_results import BoundaryResult
from dumping import output_of, row_of
from hypothesis import given, settings
from hypothesis import strategies as st

many = settings(max_examples=60, deadline=None, derandomize=True)
DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64", "complex128"]
SPECIALS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0]


def saved_side(root: Path, label: str, tensor: torch.Tensor) -> sides.Side:
    """A unit with one output, its file by torch.save."""
    folder = root / label / "step0" / "rank0" / "dump_tensor_data"
    folder.mkdir(parents=True)
    name = output_of("a")
    torch.save(tensor, folder / f"{name}.pt")
    record = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape), "data_name": f"{name}.pt"}
    data = {name.rsplit(".output", 1)[0]: {"input_args": [], "input_kwargs": {}, "output": [record]}}
    (folder.parent / "dump.json").write_text(json.dumps({"task": "tensor", "level": "L0", "data": data}))
    return sides.open_side(label, [str(root / label)])


def compared(train: torch.Tensor, infer: torch.Tensor) -> BoundaryResult:
    with tempfile.TemporaryDirectory() as folder:
        left, right = saved_side(Path(folder), "train", train), saved_side(Path(folder), "infer", infer)
        return gate.compare([row_of("a", 0)], [], left, right)[0][0]


def drawn_tensor(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Random numbers with special ones among them, or integers over a small range; sometimes a transposed view."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 3)))
    kind = getattr(torch, dtype)
    turned = shape[::-1] if draw(st.booleans()) else shape
    if not (kind.is_floating_point or kind.is_complex):
        made = torch.randint(0, 2 if dtype == "bool" else 200, turned, generator=generator).to(kind)
    else:
        made = torch.randn(turned, generator=generator, dtype=torch.float64).to(kind)
        for special in draw(st.lists(st.sampled_from(SPECIALS), max_size=2)):
            made.view(-1)[draw(st.integers(0, made.numel() - 1))] = special
    return made if turned == shape else made.T


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_is_torch_equal(dtype: str) -> None:
    """Of one dtype: EXACT where torch.equal says so, and nowhere else; unequal, NaN at one place apart, as torch counts."""

    @many
    @given(st.data())
    def judge(data: st.DataObject) -> None:
        shape = data.draw(st.sampled_from([(1, 1), (3, 5), (7, 2), (1, 40)]))
        train, infer = drawn_tensor(data.draw, dtype, shape), drawn_tensor(data.draw, dtype, shape)
        found = compared(train, infer)
        assert (found.status == "EXACT") == torch.equal(train, infer)
        assert found.unequal is not None
        assert found.special is not None
        nan_both = train.isnan() & infer.isnan()
        assert found.unequal.count == int(((train != infer) & ~nan_both).sum())
        assert found.special.nan_both == int(nan_both.sum())
        assert found.special.nonfinite.train == int((~train.isfinite()).sum())

    judge()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_largest_difference_is_torchs_in_float64(dtype: str) -> None:
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        train = torch.randn(3000, generator=generator).to(getattr(torch, dtype))
        infer = (train.double() + torch.randn(3000, generator=generator).double() * 1e-2).to(getattr(torch, dtype))
        assert compared(train, infer).max_abs_diff == (train.double() - infer.double()).abs().max().item()


def test_one_ulp_in_a_model_sized_tensor() -> None:
    """torch.testing.assert_close passes this; one bit of 2 million bfloat16 elements is found."""
    train = torch.randn(2048, 1024, generator=torch.Generator().manual_seed(0)).bfloat16()
    infer = train.clone()
    infer.view(torch.int16)[2047, 1023] ^= 1
    torch.testing.assert_close(train, infer)
    found = compared(train, infer)
    assert found.unequal is not None
    assert (found.status, found.unequal.count) == ("NOT_EXACT", 1)


def test_a_parameter_that_requires_grad_is_read() -> None:
    """Weights are saved as torch.nn.Parameter by some dumps."""
    weight = torch.nn.Parameter(torch.randn(4, 4))
    assert compared(weight.detach().clone(), weight).status == "EXACT"
