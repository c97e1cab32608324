"""What must not leave the machine: one plant of each kind in each kind of field is found at its path, and what reports need passes."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.report import generating, leaks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planting import put

KINDS = {
    "tensor row": "0.013, -0.52, 1.25, 0.0078, -3.5, 0.25, 0.125, -0.75",
    "token ids": "[93, 100, 56, 8, 240, 164, 17, 23, 137, 252]",
    "prompt": 'prompt: "Natalia sold clips to 48 of her friends"',
    "prompt in Chinese": "提示词：“请计算 3 + 4”",
    "chat template": "<|im_start|>user",
    "conversation": "User: how many clips did she sell?",
    "password": "password: hunter2",
    "password in Chinese": "口令：abc12345",
    "api key": "api_key=9f8e7d6c5b4a",
    "hub token": "hf_AbCdEfGhIjKlMnOpQrSt",
    "bearer": "Authorization: Bearer abcdefghijklmnop1234",
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "basic auth": "https://alice:s3cret@registry/x",
    "home directory": "see /home/alice/dumps/train",
    "home after Chinese": "位于/home/alice/dump",
    "home sign": "~/dumps/train",
    "home variable": "$HOME/dumps",
    "absolute path": "/data01/models/qwen2/config.json",
    "windows path": "C:\\Users\\alice\\dumps",
    "share": "\\\\fileserver\\dumps",
    "address": "10.20.30.40",
    "address after a word of place": "ran on 192.168.3.17",
    "address with port": "172.16.0.9:8000",
    "address in Chinese": "在 10.1.2.3 上运行",
    "IPv6": "fe80::1ff:fe23:4567:890a",
    "hardware address": "02:42:ac:11:00:02",
    "url": "http://mirror/x",
    "bucket": "s3://bucket/dumps",
    "mail": "alice@example.com",
    "ssh target": "root@gpu07",
    "host": "train-03.corp.example.com",
    "host by number": "dgx-a100-07",
    "named host": "hostname: trainer7",
}

FIELDS = (
    "title", "acceptance_contract.objective", "acceptance_contract.stop_condition", "scope.model", "scope.hardware_backend",
    "scope.evidence_provider", "results.e2e_metric_name", "results.e2e_metric_evidence", "differences[0].summary",
    "differences[0].boundary", "differences[0].proof[0]", "differences[0].rejected_attempts", "verification_axes.weight_sync.evidence",
    "limitations[0]", "provenance.train.label", "provenance.infer.versions", "triage",
)  # fmt: skip


def plant(source: dict[str, Any], field: str, text: str) -> str:
    """Put a text into a field, into a list or an object as one of its entries; its JSON path."""
    if field.endswith("rejected_attempts"):
        put(source, field, ["harmless", text])
        return f"{field}[1]"
    if field.endswith("versions") or field == "triage":
        put(source, field, {"torch": "2.13.0", "node": text})
        return f"{field}.node"
    put(source, field, text)
    return field


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_plant_of_each_kind_in_each_kind_of_field_is_found_at_its_path(field: str, kind: str, faulty: dict[str, Any]) -> None:
    for text in (KINDS[kind], *([f"seen before {KINDS[kind]}"] if kind != "conversation" else [])):
        changed = copy.deepcopy(faulty)
        path = plant(changed, field, text)
        found = leaks.leaks(changed)
        assert [fault.path for fault in found] == [path], text
        assert KINDS[kind] not in found[0].why + found[0].remedy, "what leaks must not be printed again"


def test_numbers_of_a_tensor_or_ids_of_a_prompt_are_found_as_lists() -> None:
    for row in ([0.5] * 8, [93, 100, 56, 8, 240, 164, 17, 23], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.5]):
        assert [fault.path for fault in leaks.leaks({"a": [{"b": row}]})] == ["a[0].b"]
        assert leaks.leaks({"a": [{"b": row[:3]}]}) == []


@pytest.mark.parametrize("key", ["prompt", "input_ids", "token_ids", "messages"])
def test_a_field_called_after_what_it_must_not_hold_is_refused(key: str) -> None:
    assert [fault.path for fault in leaks.leaks({"triage": {key: "Natalia sold clips"}})] == [f"triage.{key}"]
    assert leaks.leaks({"triage": {key: None}}) == []


def test_a_key_leaks_as_a_value_does() -> None:
    assert len(leaks.leaks({"versions": {"/home/alice/torch": "2.13.0"}})) == 1


HARMLESS: list[Any] = [
    "Module.model.layers.0.self_attn.Qwen2Attention.forward.0.kwargs.position_embeddings.0",
    "Module._fsdp_wrapped_module.model.layers.23.mlp.Qwen2MLP.forward.0.output.0", "Module.policy.net.Linear.forward.0",
    "transformers 5.19.0", "vllm 0.32.0", "torch 2.13.0+cpu", "CANN 8.5.0.1", "driver 25.0.1.1", "torch==2.7.1.1", "msprobe >=26.2.0.1",
    "版本 8.3.0.1", "固件：1.2.3.4", "msprobe >=26.2, tensor, L0",
    "51:49", "51 : 49", "44/50", "0/896", "train 0 / 896", "TP/PP/EP", "input/output", "and/or", "rope/attention",
    "8590563e7de8107bce0d481135ba835720dd07fdd9eb16d70b4a2b8ad60a4643", "sha-256 8590563e7de8", "a1b2c3d4-0000-4000-8000-1234567890ab",
    "2026-11-29", "2026-11-29T10:30:45+08:00", "12:30:45", "step 0, rank 0", "step0/rank0", "round1/round_result.json", "infer round 2",
    "layers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9", "only tokens 3, 5, 9", "[4.65e-07, 1.56e-06]", "token 3: 12 of 896 elements", "14 prompt tokens",
    "prompt tokens: 14", "H200 GPU", "910B", "8 × H100-80GB", "gpu 0", "npu:0", "token ids are equal", "the key is known: 3",
    "torch::add", "at::native::add", "std::vector", "1e-05 against 1e-06", "≈ 2 %", "~0.5 ULP", "secrets stay out",
    "</script>", '"><img src=x onerror=1>', "`|`", "\u202eevil", "x" * 10_000, "1" * 10_000, "a." * 5_000, "%" * 10_000, ":" * 10_000,
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 14, 64], [0.0, 1.0], {"versions": {"cann": "8.5.0.1", "torch": "v2.7.1.0"}},
    {"raw_tensor_included": False, "prompt_included": False}, {"prompt_token_length": 14},
]  # fmt: skip


@pytest.mark.parametrize("value", HARMLESS, ids=lambda value: str(value)[:30])
def test_what_reports_need_passes(value: Any) -> None:
    assert leaks.leaks({"field": value}) == []


def strings(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, str):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from strings(item, f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}" if path else key)


def test_a_plant_in_any_text_of_a_source_is_found_and_nothing_else(faulty: dict[str, Any]) -> None:
    """In whatever field, before and after whatever words."""
    places = [place for place in strings(faulty) if not place.startswith(("schema", "language"))]

    @settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        place=st.sampled_from(places),
        kind=st.sampled_from(sorted(set(KINDS) - {"conversation"})),
        before=st.sampled_from(["", "见", "x: ", "("]),
    )
    def judge(place: str, kind: str, before: str) -> None:
        changed = copy.deepcopy(faulty)
        put(changed, place, before + KINDS[kind])
        assert [fault.path for fault in leaks.leaks(changed)] == [place]

    judge()


def test_names_of_operators_are_never_taken_for_a_leak() -> None:
    """Any dotted path of words and numbers, as modules of any model are called."""
    part = st.from_regex(re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,12}", re.ASCII), fullmatch=True) | st.integers(0, 999).map(str)
    kind = st.sampled_from(["output.0", "input.1", "kwargs.hidden_states", "parameters.weight"])

    @settings(max_examples=500, deadline=None, derandomize=True)
    @given(parts=st.lists(part, min_size=1, max_size=8), operator=st.sampled_from(["Linear", "RMSNorm", "Attention"]), end=kind)
    def judge(parts: list[str], operator: str, end: str) -> None:
        name = ".".join(["Module", *parts, operator, "forward", "0", end])
        for text in (name, f"infer: {name} is not what was handed on", f"在 {name} 处"):
            assert leaks.leaks([text]) == [], text

    judge()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("conclusion.json", "findings[0].cause.text"),
        ("conclusion.json", "summary[0].text"),
        ("conclusion.json", "hypotheses[0].because.text"),
        ("conclusion.json", "inputs[0].label"),
        ("boundary_results.json", "boundaries[9].boundary"),
        ("semantic_mapping.json", "boundaries[0].note"),
        ("replay_results.json", "modules[0].operator"),
    ],
)
def test_a_plant_in_what_the_report_takes_from_results_is_refused(
    name: str, path: str, folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """The file and the path in it are named; no report is written."""
    work = folder("qwen2-hf-vllm-kv_swapped")
    value = json.loads((work / name).read_text())
    put(value, path, "from /home/alice/dumps")
    (work / name).write_text(json.dumps(value))
    found = generating.generate(work / "report_source.json", tmp_path / "out", None)
    assert f"{name}: {path}" in [fault.path for fault in found.faults]
    assert not (tmp_path / "out").exists()


def test_what_the_collection_leaves_in_a_round_is_no_leak_and_what_the_report_tells_of_it_is(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """msprobe_load.json and stub_outcome.json hold paths, and are never shown: no report would come of any round that was run."""
    work = folder("qwen2-hf-vllm-kv_swapped")
    (work / "round1").mkdir()
    for name in ("msprobe_load.json", "stub_outcome.json"):
        (work / "round1" / name).write_text(json.dumps({"dump_path": "/home/alice/work/round1/dump"}))
    assert generating.generate(work / "report_source.json", tmp_path / "out", None).faults == []
    (work / "round1/stub_instruction.json").write_text(json.dumps({"reason": "see /home/alice/dumps"}))
    found = generating.generate(work / "report_source.json", tmp_path / "other", None)
    assert [fault.path for fault in found.faults] == ["round1/stub_instruction.json: reason"]
