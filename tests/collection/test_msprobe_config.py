"""Configurations of msprobe without msprobe: what is written, refused and warned of, and the sizes that a model's configuration states."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from dump_collection.msprobe_config import configuring, dump_size, model_shape, releases
from msprobe_files.errors import DumpError
from running import run_collection

QWEN = {
    "hidden_size": 896, "num_hidden_layers": 24, "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2,
    "vocab_size": 151936, "torch_dtype": "bfloat16",
}  # fmt: skip
ENTRY = "Module.model.layers.1.Layer.forward.0"


def wanted(**changes: Any) -> configuring.Wanted:
    """A full dump of the trainer, as far as nothing else is said."""
    version = changes.pop("version", "26.2.0")
    full = configuring.Wanted("full", "train", (), releases.release_of(version), "/dumps/fresh", (0,), None, (), True)
    return full._replace(**changes)


def make(**changes: Any) -> configuring.Made:
    return configuring.make(wanted(**changes), None, allow_full_disk=False)


def test_the_files_are_those_of_the_reference() -> None:
    """msprobe ignores keys that it does not know: each key is one of its documentation, spelled so."""
    assert make().config == {
        "task": "tensor",
        "dump_path": "/dumps/fresh",
        "rank": [],
        "step": [0],
        "level": "L0",
        "tensor": {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "statistics"},
    }
    assert list(make(purpose="probe").config) == ["task", "dump_path", "rank", "step", "level", "statistics"]
    assert make(purpose="mix", steps=(3,)).config["level"] == "mix"
    assert make(purpose="mix", steps=(3,)).config["step"] == [3]


def source(folder: Path, unit: str = "step0/rank0", files: tuple[str, ...] = (f"{ENTRY}.input.0.pt",)) -> Path:
    tensors = folder / unit / "dump_tensor_data"
    tensors.mkdir(parents=True)
    for name in files:
        (tensors / name).write_bytes(b"")
    return folder


def override(folder: Path, **changes: Any) -> configuring.Made:
    return make(**{"purpose": "override", "load_path": str(folder), "load_modules": (ENTRY,), **changes})


def test_an_override_names_its_steps_and_looks_at_the_next_ones(tmp_path: Path) -> None:
    made = override(source(tmp_path / "src"))
    assert made.config["load"] == {
        "path": str(tmp_path / "src"), "modules": [ENTRY], "step": [0], "rank": [], "dump_after_load": True,
    }  # fmt: skip
    assert made.config["step"] == [0, 1]
    source(tmp_path / "src", "step1/rank0")
    source(tmp_path / "src", "step4/rank0")
    several = override(tmp_path / "src", steps=(4, 0, 1)).config
    assert (several["load"]["step"], several["step"]) == ([4, 0, 1], [0, 1, 2, 4, 5])
    without = override(tmp_path / "src", dump_after_load=False, dump_path=None)
    assert without.config["load"]["dump_after_load"] is False
    assert "dump_path" not in without.config
    assert without.estimate is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"version": "26.1.0.post1"}, r"msprobe 26\.1\.0\.post1: load is in 26\.2\.0 and later.*pip install mindstudio-probe==26\.2\.0"),
        ({"load_modules": ("Module.a.A.forward.0.input.0.pt",)}, r"expected Module\.<path>"),
        ({"load_modules": ("Functional.linear.0.forward",)}, r"expected Module\.<path>"),
        ({"load_modules": ("Module.a.A.backward.0",)}, r"expected Module\.<path>"),
        ({"load_modules": (ENTRY, ENTRY)}, "named twice"),
        ({"load_modules": ("Module.other.A.forward.0",)}, r"holds no Module\.other\.A\.forward\.0\.input"),
        ({"load_modules": ("Module.model.layers.1.Layer.forward.00",)}, r"holds no "),
        ({"load_path": None}, "are not given"),
        ({"load_modules": ()}, "are not given"),
        ({"dump_path": "{src}/out"}, "lies in the source folder"),
        ({"load_path": "{src}/step0"}, "Give the folder above stepN"),
        ({"load_path": "{src}/none"}, "there is no such folder"),
        ({"steps": (0, 3)}, "Cannot override step 3 from .*: it holds step0"),
        ({"purpose": "full"}, "are for override"),
        ({"dump_path": None}, "msprobe needs a folder to dump to"),
    ],
)
def test_an_override_that_would_not_act_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    """msprobe warns at best, and then overrides nothing or half."""
    folder = source(tmp_path / "src")
    filled = {key: value.format(src=folder) if isinstance(value, str) else value for key, value in changes.items()}
    with pytest.raises(DumpError, match=says):
        override(folder, **filled)


def test_a_half_filled_source_is_refused_and_a_single_process_warned_of(tmp_path: Path) -> None:
    """Each step and rank folder must hold the input: the ranks that lack it would run unoverridden."""
    folder = source(tmp_path / "src", "step0/proc12")
    assert any("a target under torch.distributed reads rankM" in line for line in override(folder).warnings)
    source(folder, "step0/rank1", ())
    with pytest.raises(DumpError, match=r"step0/rank1/dump_tensor_data holds no"):
        override(folder)
    shutil.rmtree(folder / "step0" / "rank1")
    source(folder, "step0/proc13")
    assert any("takes the first in directory order" in line for line in override(folder).warnings)
    later = source(tmp_path / "later", files=(f"{ENTRY[:-1]}2.kwargs.hidden_states.pt",))
    assert any("index 2" in line for line in override(later, load_modules=(f"{ENTRY[:-1]}2",)).warnings)


@pytest.mark.parametrize("name", ["dump.json", "x.pt"])
def test_a_folder_with_an_earlier_dump_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "step0" / "rank0").mkdir(parents=True)
    make(dump_path=str(tmp_path))
    (tmp_path / "step0" / "rank0" / name).write_text("{}")
    with pytest.raises(DumpError, match="it holds an earlier dump"):
        make(dump_path=str(tmp_path))


def test_a_link_to_a_path_that_msprobe_cannot_take_is_refused(tmp_path: Path) -> None:
    """msprobe looks at the real path, at the first tensor of the run."""
    (tmp_path / "a b").mkdir()
    (tmp_path / "link").symlink_to("a b")
    with pytest.raises(DumpError, match=r"a b/fresh: msprobe refuses paths with ' '"):
        make(dump_path=str(tmp_path / "link/fresh"))
    source(tmp_path / "a b" / "src")
    with pytest.raises(DumpError, match=r"a b/src: msprobe refuses paths with ' '"):
        override(tmp_path / "link" / "src")


def test_paths_that_msprobe_cannot_take_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, says in (("/a b", "' '"), ("/d+e", r"'\+'"), (str(tmp_path / "file"), "it is no folder"), ("/" + "a" * 4096, "4096")):
        with pytest.raises(DumpError, match=says):
            make(dump_path=path)
    with pytest.raises(DumpError, match="steps count from 0"):
        configuring.steps_of([-1])


@pytest.mark.parametrize(
    ("version", "changes", "says", "silent"),
    [
        ("unknown", {}, "the msprobe version is unknown", "26.2.0"),
        ("26.1.0", {}, "records the inputs of a module after its call", "26.2.0"),
        ("8.3.3", {}, "needs numpy<2", "26.0.0"),
        ("8.1.2", {}, "nested deeper than about 10", "8.2.1"),
        ("26.0.0", {}, "protobuf<=3.20.2", "26.1.0"),
        ("8.3.1", {"frameworks": ("verl",)}, "skips the second and the last module", "8.3.0"),
        ("26.2.0", {"frameworks": ("verl", "vllm-ascend"), "side": "infer"}, "logits_processor", "8.2.1"),
        ("26.0.0", {"purpose": "mix"}, "no views, casts", "8.3.3"),
        ("26.1.0", {"frameworks": ("vllm-ascend",), "side": "infer"}, "scheduled_tokens", "26.2.0"),
    ],
)
def test_a_trap_is_warned_of_in_the_releases_that_have_it(version: str, changes: dict[str, Any], says: str, silent: str) -> None:
    """On both sides of the release in which it comes or goes."""
    assert any(says in line for line in make(version=version, **changes).warnings)
    assert not any(says in line for line in make(version=silent, **changes).warnings)


def test_sglang_under_a_release_without_rank_id_is_refused() -> None:
    with pytest.raises(DumpError, match=r"its start\(\) has no rank_id"):
        make(version="8.3.3", frameworks=("sglang",), side="infer")
    make(version="26.0.0", frameworks=("sglang",), side="infer")


@pytest.mark.parametrize(("version", "says"), [("8.3.3", "drops every entry"), ("26.0.0", "float32 files"), ("26.2.0", "segfault")])
def test_fp8_is_warned_of_as_the_release_treats_it(version: str, says: str) -> None:
    model = configuring.Model(model_shape.shape_of({**QWEN, "quantization_config": {"quant_method": "fp8"}}), 4, 1)
    assert any(says in line for line in configuring.make(wanted(version=version), model, allow_full_disk=True).warnings)


def test_how_it_is_handed_over() -> None:
    """Each engine's own option; JSON in one word, as shells between split it at blanks."""
    infer = {"side": "infer"}
    ascend = configuring.hand_over(wanted(frameworks=("vllm-ascend",), **infer), "/run/c.json")
    assert ascend == """--enforce-eager --additional-config '{"dump_config_path":"/run/c.json"}'"""
    assert configuring.hand_over(wanted(frameworks=("vime", "vllm-ascend"), **infer), "/c").startswith(
        "--vllm-enforce-eager --vllm-additional"
    )
    assert configuring.hand_over(wanted(frameworks=("verl", "vllm-ascend"), **infer), "/c.json") == (
        "actor_rollout_ref.rollout.enforce_eager=True "
        "'+actor_rollout_ref.rollout.engine_kwargs.vllm.additional_config={dump_config_path:/c.json}'"
    )
    assert configuring.hand_over(wanted(frameworks=("sglang",), **infer), "/c.json") == "--msprobe-dump-config /c.json"
    assert configuring.hand_over(wanted(frameworks=("slime", "sglang"), **infer), "/c.json") == "--sglang-msprobe-dump-config /c.json"
    assert configuring.hand_over(wanted(), "/c.json") == "PrecisionDebugger(config_path='/c.json')"
    assert "global_profiler.tool=precision_debugger" in configuring.hand_over(wanted(frameworks=("verl",), dump_path=None), "/c.json")


# --- the size of a dump ---


def test_a_layer_counted_by_hand() -> None:
    """One dense layer of a model without vocabulary to speak of: the sum in the module's head, term by term."""
    config = {"hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 10, "num_attention_heads": 2, "num_key_value_heads": 1,
              "vocab_size": 1, "dtype": "float32"}  # fmt: skip
    two = {**config, "num_hidden_layers": 2}
    tokens, hidden, queries, keys, width, head = 5, 8, 8, 4, 10, 4
    per_token = 17 * hidden + 2 * queries + 2 * keys + 5 * width + 4 * head + 8  # and cos, sin, positions
    weights = 2 * hidden + 2 * queries * hidden + 2 * keys * hidden + 3 * width * hidden
    biases = queries + 2 * keys + hidden + 2 * width + hidden
    one, both = ([*dump_size._modules(model_shape.shape_of(c), tokens)] for c in (config, two))
    assert sum(part.activations for part in both) - sum(part.activations for part in one) == tokens * per_token
    assert sum(part.weights for part in both) - sum(part.weights for part in one) == weights + biases


@pytest.mark.parametrize(
    ("config", "published"),
    [
        ({**QWEN}, 0.494e9 + 151936 * 896),  # Qwen2.5-0.5B; its head is tied, and stored twice
        (
            {"hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336, "num_attention_heads": 32,
             "num_key_value_heads": 8, "vocab_size": 128256}, 8.03e9,
        ),  # Llama-3-8B
        (
            {"hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336, "num_attention_heads": 32,
             "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2}, 46.7e9,
        ),  # Mixtral-8x7B
        (
            {"hidden_size": 2048, "num_hidden_layers": 48, "intermediate_size": 6144, "moe_intermediate_size": 768,
             "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
             "num_experts": 128, "num_experts_per_tok": 8}, 30.5e9,
        ),  # Qwen3-30B-A3B
        (
            {"hidden_size": 7168, "num_hidden_layers": 61, "intermediate_size": 18432, "moe_intermediate_size": 2048,
             "vocab_size": 129280, "num_attention_heads": 128, "num_key_value_heads": 128,
             "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
             "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
             "v_head_dim": 128}, 671e9,
        ),  # DeepSeek-V3
    ],
    ids=["qwen2.5-0.5b", "llama3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"],
)  # fmt: skip
def test_the_weights_are_as_many_as_the_model_is_known_to_have(config: dict[str, Any], published: float) -> None:
    shape = model_shape.shape_of(config)
    assert sum(part.weights for part in dump_size._modules(shape, 1)) == pytest.approx(published, rel=0.005)


def test_spellings_of_one_model_give_one_shape() -> None:
    megatron = {
        "hidden_size": 896, "num_layers": 24, "ffn_hidden_size": 4864, "num_attention_heads": 14, "num_query_groups": 2,
        "kv_channels": 64, "padded_vocab_size": 151936, "params_dtype": "torch.bfloat16",
    }  # fmt: skip
    assert model_shape.shape_of(megatron) == model_shape.shape_of(QWEN)
    assert model_shape.shape_of({"model_type": "vl", "torch_dtype": "float16", "text_config": QWEN}) == model_shape.shape_of(QWEN)
    bloom = model_shape.shape_of({"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 9, "multi_query": True})
    assert (bloom.width, bloom.kv_heads, bloom.head_dim, bloom.itemsize, bloom.dtype_stated) == (256, 1, 16, 4, False)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"hidden_size": 64}, "has none of num_attention_heads, n_head"),
        ({}, "has none of hidden_size, n_embd"),
        ({**QWEN, "num_hidden_layers": "24"}, "num_hidden_layers is '24', expected a count"),
        ({**QWEN, "hidden_size": True}, "expected a count"),
        ({**QWEN, "vocab_size": -1}, "expected a count"),
        ({**QWEN, "vocab_size": 1 << 60}, "expected a count"),
        ({**QWEN, "num_attention_heads": 0, "head_dim": None}, "num_heads is 0, expected at least 1"),
    ],
)
def test_a_configuration_that_states_no_size_is_refused_by_its_key(config: dict[str, Any], says: str) -> None:
    with pytest.raises(DumpError, match=says):
        model_shape.shape_of(config)


def test_a_disk_without_room_refuses_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte too few refuses, just enough does not; the free bytes are those of the disk where the folder will be."""
    model = configuring.Model(model_shape.shape_of(QWEN), 190, 1)
    ask = wanted(dump_path=str(tmp_path / "not" / "there"))
    size = configuring.make(ask, model, allow_full_disk=False).estimate
    assert size is not None
    assert dump_size.free_bytes(str(tmp_path / "not" / "there")) == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.05)
    monkeypatch.setattr(dump_size, "free_bytes", lambda path: size.size)
    configuring.make(ask, model, allow_full_disk=False)
    monkeypatch.setattr(dump_size, "free_bytes", lambda path: size.size - 1)
    with pytest.raises(DumpError, match=r"the dump takes about 1\.\d GiB and the disk of .*Free the disk, name another"):
        configuring.make(ask, model, allow_full_disk=False)
    assert any("the dump takes about" in line for line in configuring.make(ask, model, allow_full_disk=True).warnings)
    native = ask._replace(dump_path=None, frameworks=("verl",))
    assert any("see that its disk has room" in line for line in configuring.make(native, model, allow_full_disk=False).warnings)
    assert configuring.make(ask._replace(steps=(0, 1)), model._replace(ranks=2), allow_full_disk=True).estimate == dump_size.Estimate(
        4 * size.size, 4 * size.files
    )


# --- the command ---


def test_the_command_writes_what_msprobe_reads(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    output = tmp_path / "run" / "msprobe_train.json"
    ran = run_collection(
        "make_msprobe_config.py", "--side", "train", "--purpose", "full", "--dump-path", tmp_path / "d", "--output", output,
        "--msprobe-version", "26.2.0", "--model-config", tmp_path / "config.json", "--prompt-length", "190",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert json.loads(output.read_text())["dump_path"] == str(tmp_path / "d")
    assert "the dump takes about 1." in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("next: ")
    assert len(ran.stdout) < 2000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--purpose", "probe", "--dump-path", "d"], "run this again with --purpose full"),
        (["--purpose", "full", "--dump-path", "d"], "check_dump_pair.py --workdir DIR"),
        (["--purpose", "override", "--dump-path", "d"], "--verify d"),
        (["--purpose", "override", "--framework", "verl"], "--verify NEW_DUMP"),
        (["--purpose", "override", "--no-dump"], "watch its metric"),
    ],
)
def test_the_answer_says_what_follows_on_its_purpose(tmp_path: Path, arguments: list[str], says: str) -> None:
    source(tmp_path / "src")
    load = ["--load-path", "src", "--load-module", ENTRY] if "override" in arguments else []
    ran = run_collection("make_msprobe_config.py", "--side", "train", "--output", "c.json", *arguments, *load, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert says in ran.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--purpose", "full"], "--output"),
        (["--purpose", "full", "--output", "c.json"], "Give --dump-path"),
        (["--purpose", "full", "--output", "c.json", "--dump-path", "d", "--prompt-length", "3"], "belong together"),
        (["--purpose", "full", "--output", "c.json", "--dump-path", "d", "--ranks", "0"], "count from 1"),
        (["--purpose", "full", "--output", "c.json", "--dump-path", "d", "--msprobe-version", "new"], "expected numbers such as"),
        (["--purpose", "full", "--output", "a b.json", "--dump-path", "d"], "Cannot write the configuration to"),
        (["--purpose", "full", "--output", "c.json", "--dump-path", "d", "--model-config", "no", "--prompt-length", "3"], "Cannot read"),
    ],
)
def test_wrong_calls_are_one_line_and_write_nothing(tmp_path: Path, arguments: list[str], says: str) -> None:
    ran = run_collection("make_msprobe_config.py", "--side", "train", *arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
