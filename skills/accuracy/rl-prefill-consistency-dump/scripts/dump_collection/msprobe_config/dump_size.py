"""How large a dump of one prefill becomes, counted module by module, and whether the disk has room for it.

msprobe stores of each module its tensor inputs, its outputs and its own parameters, whole, one file a tensor (measured on
26.2.0). The count takes the form of a model with the most modules, a trainer's with q, k, v, gate and up apart and each expert
a module; engines fuse them and store a little less. With T tokens, H hidden, A heads x head size, K the same of keys, I the
width of the MLP and b bytes an element, a dense layer stores ``(17 T H + 2 T A + 2 T K + 5 T I) b`` of activations.

Level mix adds the functions below: each product stores its weight once more, a norm works in float32, rotation and
attention store their operands. A mask of T x T elements and attention without a fused kernel are not counted.
"""

import os
import shutil
from typing import Iterator, NamedTuple

from .model_shape import Shape

# Of a file beside its elements: the zip that torch.save writes has 1.6 to 2.3 kB, and half a block of 4 KiB stays empty.
FILE_OVERHEAD = 2300 + 2048
# Of a tensor in dump.json, with its share of construct.json and stack.json (measured: 0.5 to 0.9 kB).
RECORD = 1024


class Part(NamedTuple):
    """What some modules or functions store. ``activations``, ``weights``: elements; ``wide``: float32 elements; ``tensors``: files."""

    activations: int
    weights: int
    tensors: int
    wide: int = 0


class Estimate(NamedTuple):
    """Bytes and files of a dump."""

    size: int
    files: int


def estimate(shape: Shape, *, tokens: int, level: str, tensors: bool, steps: int, ranks: int) -> Estimate:
    """What ``ranks`` processes write in ``steps`` forwards of ``tokens`` tokens each; every rank counts as a whole model.

    Ranks that hold shards write less; FSDP's hold each weight whole while it runs, so that each writes all.
    """
    parts = list(_modules(shape, tokens))
    if level == "mix":
        parts += list(_functions(shape, tokens))
    files = sum(part.tensors for part in parts)
    elements = sum(part.activations + part.weights for part in parts)
    size = elements * shape.itemsize + 4 * sum(part.wide for part in parts) + files * FILE_OVERHEAD if tensors else 0
    times = max(steps, 1) * max(ranks, 1)
    return Estimate((size + files * RECORD) * times, files * times if tensors else 3 * times)


def free_bytes(path: str) -> int:
    """The free bytes of the disk that a folder lies on, or will lie on."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free


# --- modules ---


def _modules(shape: Shape, tokens: int) -> Iterator[Part]:
    hidden, moe_layers = tokens * shape.hidden, shape.layers - shape.dense_layers if shape.experts else 0
    yield Part(4 * tokens + hidden, shape.vocab * shape.hidden, 3)  # embedding: ids are int64
    yield Part(8 * tokens + hidden, 0, 2)  # the inner model
    yield Part(5 * tokens + hidden + 2 * tokens * shape.head_dim, 0, 4)  # rotary
    yield _norm(tokens, shape.hidden)
    yield _linear(tokens, shape.hidden, shape.vocab)
    for each in _attention(shape, tokens):
        yield _times(each, shape.layers)
    for each in (Part(2 * hidden, 0, 2), Part(2 * hidden, 0, 2), _norm(tokens, shape.hidden), _norm(tokens, shape.hidden)):
        yield _times(each, shape.layers)  # layer, attention, and its two norms
    yield _times(Part(4 * tokens * shape.head_dim + 8 * tokens, 0, 6), shape.layers)  # cos, sin and positions, handed to both
    for each in _mlp(tokens, shape.hidden, shape.width):
        yield _times(each, shape.layers - moe_layers)
    for each in _experts(shape, tokens):
        yield _times(each, moe_layers)


def _attention(shape: Shape, tokens: int) -> Iterator[Part]:
    if not shape.kv_rank:
        queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        yield _linear(tokens, shape.hidden, queries)
        yield _times(_linear(tokens, shape.hidden, keys), 2)
        yield _linear(tokens, queries, shape.hidden)
        return
    queries = shape.heads * (shape.nope_dim + shape.rope_dim)
    if shape.q_rank:
        yield _linear(tokens, shape.hidden, shape.q_rank)
        yield _norm(tokens, shape.q_rank)
    yield _linear(tokens, shape.q_rank or shape.hidden, queries)
    yield _linear(tokens, shape.hidden, shape.kv_rank + shape.rope_dim)
    yield _norm(tokens, shape.kv_rank)
    yield _linear(tokens, shape.kv_rank, shape.heads * (shape.nope_dim + shape.value_dim))
    yield _linear(tokens, shape.heads * shape.value_dim, shape.hidden)


def _mlp(tokens: int, hidden: int, width: int) -> Iterator[Part]:
    yield Part(2 * tokens * hidden, 0, 2)
    yield _times(_linear(tokens, hidden, width), 2)
    yield Part(2 * tokens * width, 0, 2)
    yield _linear(tokens, width, hidden)


def _experts(shape: Shape, tokens: int) -> Iterator[Part]:
    """The block, its router, the experts that tokens reach, and the shared one; all weights count, whoever holds them."""
    yield Part(2 * tokens * shape.hidden, 0, 2)
    yield Part(tokens * (shape.hidden + shape.experts + 2 * shape.experts_per_token), shape.experts * shape.hidden, 5)
    rows = tokens * shape.experts_per_token
    reached = min(shape.experts, rows)
    for each in _mlp(rows, shape.hidden, shape.expert_width):
        yield Part(each.activations, each.weights * shape.experts, each.tensors * reached)
    if shape.shared_width:
        yield from _mlp(tokens, shape.hidden, shape.shared_width)


# --- functions, at level mix ---


def _functions(shape: Shape, tokens: int) -> Iterator[Part]:
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    if shape.kv_rank:
        queries = keys = shape.heads * (shape.nope_dim + shape.rope_dim)
    for part in _modules(shape, tokens):
        if part.weights:
            yield part  # each product and look-up stores input, weight and output once more
    norms = 2 * shape.layers + 1
    # pow, mean and product of a norm in float32, its gain in the model's own format
    yield _times(Part(2 * tokens * shape.hidden, shape.hidden, 12, wide=5 * tokens * shape.hidden), norms)
    # of q and k: two products, a join of two halves, their sign, a sum
    yield _times(Part(10 * tokens * (queries + keys) + 4 * tokens * shape.head_dim, 0, 26), shape.layers)
    yield _times(Part(tokens * (2 * queries + 2 * keys), 0, 4), shape.layers)  # fused attention
    yield _times(Part(6 * tokens * shape.hidden, 0, 6), shape.layers)  # the two residual sums
    rows, width = (tokens * shape.experts_per_token, shape.expert_width) if shape.experts else (tokens, shape.width)
    yield _times(Part(5 * rows * width, 0, 5), shape.layers)  # activation and product
    if shape.experts:  # each expert that is reached takes its rows out of all, weighs them and adds them to all
        reached = min(shape.experts, rows)
        moved = Part(3 * reached * tokens * shape.hidden + 5 * rows * shape.hidden, 0, 10 * reached)
        yield _times(moved, shape.layers - shape.dense_layers)


def _linear(tokens: int, into: int, out: int) -> Part:
    return Part(tokens * (into + out), into * out + out, 4)


def _norm(tokens: int, width: int) -> Part:
    return Part(2 * tokens * width, width, 3)


def _times(part: Part, n: int) -> Part:
    return Part(*(value * n for value in part))
