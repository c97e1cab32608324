"""Rows of a table by token id, times a scale (1: none): ids [T, 1], weight [rows, H].

The ids are row numbers of the weight that is given, which may hold only the rows that are used. No error inside but the rounding of the
product (exact in float64 and, up to one roundoff, in float32). Source: torch 2.13 and vLLM 0.32 gather; Gemma's classes scale.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly, to_format
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _rows(given: Given) -> Array:
    return given.weights["weight"][given.inputs[0].reshape(-1).astype(np.int64)]


def _gather(given: Given) -> tuple[Emulated, ...]:
    return (exactly(_rows(given) * given.config["scale"]).to_format(given.dtype),)


def _scaled(given: Given) -> tuple[Emulated, ...]:
    scale = to_format(np.array(given.config["scale"]), "float32")
    return (exactly(_rows(given) * scale).roundoffs(1).to_format(given.dtype),)


def _is_scaled(given: Given) -> bool:
    return given.config["scale"] != 1.0


def _nominal(given: Given) -> tuple[Array, ...]:
    return (_rows(given) * given.config["scale"],)


FORMULA = Formula(
    "embedding",
    (
        Variant("gather", "torch 2.13, vLLM 0.32 CPU", _gather, lambda given: not _is_scaled(given)),
        Variant("scaled", "Gemma's embedding in transformers and vLLM", _scaled, _is_scaled),
    ),
    _nominal,
    config=("scale",),
    parameters=frozenset({"weight"}),
)
