"""What configurations state of a rotation: against the frequencies that transformers 5.19.0 made of the same (LlamaConfig, head_dim 16)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis.replay import stated

MADE: list[tuple[str, dict[str, Any], list[float], float]] = [
    (
        "linear", {"factor": 4.0},
        [0.25, 0.079056941, 0.0250000004, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012, 7.90569466e-05], 1.0,
    ),
    (
        "llama3", {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64},
        [1.0, 0.244384587, 0.0130422562, 0.00395284733, 0.00124999997, 0.000395284733, 0.000125000006, 3.95284733e-05], 1.0,
    ),
    (
        "yarn", {"factor": 4.0, "original_max_position_embeddings": 128},
        [1.0, 0.237170815, 0.049999997, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012, 7.90569466e-05], 1.138629436111989,
    ),
    (
        "yarn",
        {
            "factor": 40.0, "original_max_position_embeddings": 256, "mscale": 0.7, "mscale_all_dim": 1.0, "beta_fast": 16,
            "beta_slow": 2, "truncate": False,
        },
        [1.0, 0.284114987, 0.0358637124, 0.000790569466, 0.000250000012, 7.90569466e-05, 2.49999994e-05, 7.90569447e-06],
        0.9191559952044436,
    ),
    (
        "yarn", {"factor": 4.0, "original_max_position_embeddings": 512, "attention_factor": 1.25, "partial_rotary_factor": 0.5},
        [1.0, 0.0625, 0.00249999994, 0.000250000012], 1.25,
    ),
]  # fmt: skip


def constants(folder: Path, rope: dict[str, Any], **keys: Any) -> dict[str, float]:
    config = {"hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 512, "rope_parameters": rope, **keys}
    (folder / "config.json").write_text(json.dumps(config))
    return stated.constants(folder / "config.json")


@pytest.mark.parametrize(("kind", "keys", "frequencies", "magnitude"), MADE)
def test_scaled_frequencies_are_those_of_transformers(
    tmp_path: Path, kind: str, keys: dict[str, Any], frequencies: list[float], magnitude: float
) -> None:
    """Catches a wrong end of the blend, a factor on the wrong part, an attention factor that is left out."""
    found = constants(tmp_path, {"rope_type": kind, "rope_theta": 10000.0, **keys})
    assert found["rope_pairs"] == len(frequencies)
    assert np.isclose(found["rope_magnitude"], magnitude, rtol=1e-12)
    own = [found[f"rope_theta.{pair:03d}"] for pair in range(len(frequencies))]
    np.testing.assert_allclose(own, frequencies, rtol=3e-7)
    assert f"rope_theta.{len(frequencies):03d}" not in found


def test_plain_angles_state_a_base_and_the_columns_that_they_turn_where_the_file_says_so(tmp_path: Path) -> None:
    plain = constants(tmp_path, {"rope_type": "default", "rope_theta": 5e5})
    assert (plain["rope_theta"], "rope_pairs" in plain) == (5e5, False)
    assert constants(tmp_path, {"rope_type": "default", "rope_theta": 5e5, "partial_rotary_factor": 0.25})["rope_pairs"] == 2
    older = constants(tmp_path, {}, rope_theta=1e4, rotary_pct=0.5, rope_parameters=None)
    assert (older["rope_theta"], older["rope_pairs"]) == (1e4, 4)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0},  # depends on the length of the prompt
        {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0},  # states half of it
        {"full_attention": {"rope_type": "default", "rope_theta": 1e6}},  # a rotation of its own for each kind of layer
    ],
)
def test_what_does_not_follow_from_the_file_is_not_stated(tmp_path: Path, rope: dict[str, Any]) -> None:
    assert not any(name.startswith("rope_") for name in constants(tmp_path, rope))
