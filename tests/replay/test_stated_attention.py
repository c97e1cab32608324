"""What configurations say of attention: keys of transformers and Megatron, as their files have them."""

import json
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.replay.stated import constants
from dump_analysis.replay.stated_attention import window_of

INFINITE = float("inf")


def stated(folder: Path, **keys: Any) -> dict[str, float]:
    (folder / "config.json").write_text(json.dumps(keys))
    return constants(folder / "config.json")


def test_a_head_is_as_wide_as_is_said_or_as_comes_out(tmp_path: Path) -> None:
    assert stated(tmp_path, head_dim=256, hidden_size=64, num_attention_heads=4)["head_dim"] == 256
    assert stated(tmp_path, hidden_size=64, num_attention_heads=4)["head_dim"] == 16
    assert stated(tmp_path, kv_channels=8)["head_dim"] == 8
    assert "head_dim" not in stated(tmp_path, hidden_size=65, num_attention_heads=4)


def test_a_scale_is_stated_as_a_width_or_as_itself(tmp_path: Path) -> None:
    assert stated(tmp_path, query_pre_attn_scalar=144)["attention_scale"] == pytest.approx(1 / 12)
    assert stated(tmp_path, attention_multiplier=0.0078125)["attention_scale"] == 0.0078125
    assert "attention_scale" not in stated(tmp_path, hidden_size=64)


def test_a_cap_that_is_null_is_none_and_one_that_is_not_known_is_not_stated(tmp_path: Path) -> None:
    assert stated(tmp_path, attn_logit_softcapping=50.0)["attention_soft_cap"] == 50.0
    assert stated(tmp_path, attn_logit_softcapping=None)["attention_soft_cap"] == INFINITE
    assert "attention_soft_cap" not in stated(tmp_path, hidden_size=64)


def test_a_base_is_stated_in_three_places_and_not_where_angles_are_scaled(tmp_path: Path) -> None:
    assert stated(tmp_path, rope_theta=1e6)["rope_theta"] == 1e6
    assert stated(tmp_path, rope_parameters={"rope_type": "default", "rope_theta": 5e5})["rope_theta"] == 5e5
    assert stated(tmp_path, rotary_base=50000)["rope_theta"] == 5e4
    assert "rope_theta" not in stated(tmp_path, rope_theta=5e5, rope_scaling={"rope_type": "llama3", "factor": 8.0})
    assert "rope_theta" not in stated(
        tmp_path, rope_parameters={"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    )


def test_windows_are_those_of_the_layers_that_slide(tmp_path: Path) -> None:
    found = stated(tmp_path, layer_types=["sliding_attention", "full_attention"], sliding_window=8)
    assert (window_of(found, "0"), window_of(found, "1"), window_of(found, "2")) == (8.0, INFINITE, None)
    assert window_of(stated(tmp_path, sliding_window=8), "1") == 8.0  # Mistral's: all of them
    assert window_of(stated(tmp_path, sliding_window=8, max_window_layers=1), "0") is None  # which layers slide is not said
    assert window_of(stated(tmp_path, sliding_window=8, attn_logit_softcapping=50.0), "0") is None
    assert window_of(stated(tmp_path, sliding_window=8, use_sliding_window=False), "0") is None
    assert window_of(stated(tmp_path, layer_types=["sliding_attention"], sliding_window=None), "0") is None


def test_the_language_part_of_a_model_counts(tmp_path: Path) -> None:
    assert stated(tmp_path, vision_config={"rope_theta": 1.0}, text_config={"rope_theta": 1e6})["rope_theta"] == 1e6


def test_a_scale_that_is_not_stated_is_that_of_the_head(tmp_path: Path) -> None:
    """Where nothing says that another is computed with: latent attention and scaled angles bring factors of their own."""
    plain = {"head_dim": 64, "rope_theta": 1e4}
    assert stated(tmp_path, **plain)["attention_scale"] == 0.125
    assert stated(tmp_path, **plain, query_pre_attn_scalar=256)["attention_scale"] == 0.0625
    others: list[dict[str, Any]] = [{"kv_lora_rank": 512}, {"qk_rope_head_dim": 64}, {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}]
    for other in others:
        assert "attention_scale" not in stated(tmp_path, **plain, **other), other
    assert "attention_scale" not in stated(tmp_path, head_dim=64)  # of a model without a base nothing is known


@pytest.mark.parametrize(
    ("keys", "function"),
    [
        ({"hidden_act": "silu"}, "silu"),
        ({"hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh"}, "gelu_tanh"),  # Gemma keeps the old key beside the one it uses
        ({"hidden_act": "gelu", "hidden_activation": None}, "gelu_erf"),
        ({"activation_function": "gelu_new"}, "gelu_tanh"),
        ({"hidden_act": "xielu"}, None),
    ],
)
def test_an_activation_is_stated_by_name(tmp_path: Path, keys: dict[str, str], function: str | None) -> None:
    found = [name for name in stated(tmp_path, **keys) if name.startswith("activation.")]
    assert found == ([] if function is None else [f"activation.{function}"])
