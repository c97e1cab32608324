"""What configurations state of a rotation: against the frequencies that transformers 5.19.0 made of the same (LlamaConfig, head_dim 16)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis.replay import stated, stated_rotation

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


# --- by the length of the prompt: what transformers 5.19.0 and 4.57.1 make of the same ---

SHORT, LONG = [1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0], [1.0, 1.5, 2.25, 4.0, 8.0, 16.0, 24.0, 32.0]
OF_SHORT = [1.0, 0.287479758, 0.0799999982, 0.0210818499, 0.00571428565, 0.00158113893, 0.00039999999, 0.000105409257]
OF_LONG = [1.0, 0.210818499, 0.0444444455, 0.00790569466, 0.00124999997, 0.000197642366, 4.16666662e-05, 9.88211832e-06]
LISTS = {"short_factor": SHORT, "long_factor": LONG}
HALF = {"short_factor": SHORT[:4], "long_factor": LONG[:4], "partial_rotary_factor": 0.5}
NEW = {"rope_theta": 1e4, "rope_type": "longrope", "original_max_position_embeddings": 128}
OLD: dict[str, Any] = {"rope_theta": 1e4, "rope_parameters": None}  # transformers 4: the base and the length of training stand beside
BY_LENGTH: list[tuple[dict[str, Any], dict[str, Any], int, list[float], float]] = [
    ({**NEW, **LISTS}, {}, 128, OF_SHORT, 1.1338934190276817),
    ({**NEW, **LISTS}, {}, 129, OF_LONG, 1.1338934190276817),
    ({**NEW, **LISTS, "attention_factor": 1.25, "factor": 4.0}, {}, 500, OF_LONG, 1.25),
    ({**NEW, **HALF}, {}, 100, [1.0, 0.0909090936, 0.00800000038, 0.00066666666], 1.1338934190276817),
    ({**NEW, **HALF}, {}, 500, [1.0, 0.0666666701, 0.00444444455, 0.000250000012], 1.1338934190276817),
    (
        {}, {**OLD, "original_max_position_embeddings": 128, "rope_scaling": {"type": "su", **LISTS}},
        128, OF_SHORT, 1.1338934190276817,
    ),
    (
        {}, {**OLD, "original_max_position_embeddings": 128, "rope_scaling": {"rope_type": "longrope", **LISTS}},
        129, OF_LONG, 1.1338934190276817,
    ),
    # Phi-3.5-MoE states what cos and sin are multiplied by for each list.
    ({**NEW, **LISTS, "short_mscale": 1.5, "long_mscale": 1.75}, {}, 128, OF_SHORT, 1.5),
    ({**NEW, **LISTS, "short_mscale": 1.5, "long_mscale": 1.75}, {}, 129, OF_LONG, 1.75),
]  # fmt: skip


@pytest.mark.parametrize(("rope", "keys", "tokens", "frequencies", "magnitude"), BY_LENGTH)
def test_a_list_of_factors_is_picked_by_the_length_of_the_prompt(
    tmp_path: Path, rope: dict[str, Any], keys: dict[str, Any], tokens: int, frequencies: list[float], magnitude: float
) -> None:
    """Catches the other list, an attention factor of the wrong ratio, and a list that is picked one token early or late."""
    every = constants(tmp_path, rope, **keys)
    found, other = (pick(every, tokens) for pick in (stated_rotation.at_length, stated_rotation.at_other_length))
    own = [found[f"rope_theta.{pair:03d}"] for pair in range(len(frequencies))]
    np.testing.assert_allclose(own, frequencies, rtol=3e-7)
    assert (found["rope_pairs"], "rope_theta" in found) == (len(frequencies), False)
    assert np.isclose(found["rope_magnitude"], magnitude, rtol=1e-12)
    assert not any(name.startswith(("beyond.", "rope_length")) for name in found)
    second = {OF_SHORT[1]: OF_LONG[1], OF_LONG[1]: OF_SHORT[1]}.get(frequencies[1])
    assert second is None or np.isclose(other["rope_theta.001"], second, rtol=3e-7)


@pytest.mark.parametrize(("tokens", "second"), [(100, 0.316227764), (512, 0.316227764), (700, 0.292305321), (1500, 0.252299905)])
@pytest.mark.parametrize("older", [False, True])
def test_a_base_grows_with_a_prompt_that_is_longer_than_the_model(tmp_path: Path, tokens: int, second: float, older: bool) -> None:
    """Catches a growth that begins elsewhere, or another power: the second frequency is the base to the power of -1 / 8."""
    rope = {"rope_type": "dynamic", "factor": 2.0}
    every = constants(tmp_path, *(({},) if older else ({**rope, "rope_theta": 1e4},)), **({**OLD, "rope_scaling": rope} if older else {}))
    found = stated_rotation.at_length(every, tokens)
    assert np.isclose(found["rope_theta"] ** -0.125, second, rtol=3e-7)
    assert (found["rope_pairs"], stated_rotation.at_other_length(every, tokens)) == (8, {})


def test_a_growth_that_is_stated_once_holds_for_all_lengths(tmp_path: Path) -> None:
    """vLLM 0.32 DynamicNTKAlphaRotaryEmbedding: base * alpha^(d / (d - 2)), d = 16."""
    every = constants(tmp_path, {"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 1000.0})
    assert np.isclose(stated_rotation.at_length(every, 4096)["rope_theta"], 1e4 * 1000.0 ** (16 / 14), rtol=1e-12)


def test_a_length_of_training_that_releases_read_otherwise_states_nothing(tmp_path: Path) -> None:
    """transformers 4.57 takes the ratio of the lengths (4), 5.19 the factor (2): not the same attention factor."""
    rope = {"rope_type": "longrope", **LISTS, "factor": 2.0}
    found = constants(tmp_path, {}, **OLD, original_max_position_embeddings=128, rope_scaling=rope)
    assert not any("rope_" in name for name in found)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "dynamic", "rope_theta": 1e4},  # states no factor
        {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": SHORT, "long_factor": LONG[:7]},  # of a pair too few
        {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0},  # states half of it
        {"full_attention": {"rope_type": "default", "rope_theta": 1e6}},  # a rotation of its own for each kind of layer
    ],
)
def test_what_does_not_follow_from_the_file_is_not_stated(tmp_path: Path, rope: dict[str, Any]) -> None:
    assert not any(name.startswith("rope_") for name in constants(tmp_path, rope))
