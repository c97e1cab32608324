"""Small analyses made by hand, one of each case that a report can be of, written as the files that an analysis leaves.

The model has a few layers of known places; a case says which of them differ and why. Nothing here is computed by the product.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from dump_analysis.artefacts import io, report_source
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Conclusion
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.artefacts.report_source import ReportSource
from dump_analysis.report.rendering import Rendered, render
from dump_analysis.wording import Language, word

LANGUAGES: tuple[Language, ...] = ("zh-CN", "en")
PLACES = (
    "input_norm.out", "q.out", "k.out", "v.out", "q_rope.out", "k_rope.out", "attn_core.out", "o_proj.out", "resid_attn",
    "post_norm.out", "gate.out", "up.out", "act_mul.out", "down.out", "resid_mlp",
)  # fmt: skip
TOKENS, WIDE = 12, 64
DIGEST = hashlib.sha256(b"made by hand").hexdigest()
Seen = dict[str, str]  # boundary -> x exact, m carried in, r rounding, f fault, h open, o not compared


def boundaries(layers: int) -> list[str]:
    """The model's boundaries in the order of computation."""
    inside = [f"layers.{layer}.{place}" for layer in range(layers) for place in PLACES]
    return ["input_ids", "positions", "embedding.out", *inside, "final_norm.out", "logits"]


def seen(layers: int, start: str | None, made: dict[str, str], gaps: Iterable[str] = ("q_rope.out", "k_rope.out")) -> Seen:
    """Exact before ``start``, carried in from there on but for what is ``made``; places in ``gaps`` are not compared."""
    names, found = boundaries(layers), {}
    first = names.index(start) if start is not None else len(names)
    for at, name in enumerate(names):
        found[name] = "x" if at < first else "m"
        if any(name.endswith(f".{gap}") or name == gap for gap in gaps):
            found[name] = "o"
    return {**found, **made}


def rel_l2(at: int) -> float:
    """A difference that grows with the place in the computation, in digits that a test can find again."""
    return round(1.234e-4 * (1 + at / 9), 9)


def row(name: str, at: int, state: str) -> dict[str, Any]:
    """One boundary of boundary_results.json."""
    base: dict[str, Any] = {"boundary": name, "order": at, "status": "EXACT", "shape": [TOKENS, WIDE]}
    base["dtype"] = {"train": "bfloat16", "infer": "bfloat16"}
    if state == "o":
        reason = msgspec.to_builtins(word("no_reason")) if name == "logits" else _missing(name)
        return {"boundary": name, "order": at, "status": "evidence_missing", "reason": reason}
    of = TOKENS * WIDE
    unequal = 0 if state == "x" else min(of, 37 + 3 * at)
    base["unequal"] = {"count": unequal, "share": unequal / of}
    base |= {"max_abs_diff": 0.0, "mean_abs_diff": 0.0, "rms_diff": 0.0, "rel_l2": 0.0, "cosine": 1.0, "norm_ratio": 1.0}
    if state == "x":
        return base
    smaller = unequal if state == "f" else unequal // 2
    bins = {"1": [smaller - smaller // 4, (unequal - smaller) // 2], "2": [smaller // 4, unequal - smaller - (unequal - smaller) // 2]}
    histogram = {**bins, "3-4": [0, 0], "5-8": [0, 0], "9-64": [0, 0], ">64": [0, 0], "opposite_sign": 0}
    grown = rel_l2(at)
    where = {
        "onset_token": 0, "tokens": {"touched": TOKENS, "of": TOKENS}, "columns": {"touched": WIDE, "of": WIDE}, "rows": None,
        "worst": {"tokens": None, "columns": None, "heads": None}, "pattern": "dense", "hints": [],
        "token_profile": {"edges": list(range(0, TOKENS + 1, 2)), "largest": [grown * (1 + bin_ / 4) for bin_ in range(TOKENS // 2)]}
        if name.endswith("resid_mlp")
        else None,
    }  # fmt: skip
    return {
        **base, "status": "NOT_EXACT", "max_abs_diff": 4 * grown, "mean_abs_diff": grown / 2, "rms_diff": grown / 2, "rel_l2": grown,
        "cosine": 0.9999, "ulp": {"max": 2, "max_at_row_scale": 1.0, "histogram": histogram},
        "direction": {"smaller": smaller, "larger": unequal - smaller, "z": 0.0}, "where": where,
    }  # fmt: skip


def _missing(name: str) -> dict[str, Any]:
    return msgspec.to_builtins(word("tensor_missing", side="train", name=name))


def results(found: Seen, weights: Seen) -> dict[str, Any]:
    """boundary_results.json."""
    rows = [row(name, at, state) for at, (name, state) in enumerate(found.items())]
    counts: dict[str, int] = {}
    for one in rows:
        counts[one["status"]] = counts.get(one["status"], 0) + 1
    differing = [one for one in rows if one["status"] == "NOT_EXACT"]
    first = None
    if differing:
        before = [one["boundary"] for one in rows[: differing[0]["order"]] if one["status"] == "evidence_missing"]
        first = {"boundary": differing[0]["boundary"], "order": differing[0]["order"], "predecessors_complete": not before}
        first["uncompared_before"] = before
    overall = "nonzero" if differing else "exact" if "EXACT" in counts else "not_run"
    side = {"label": "train", "digest": DIGEST}
    return {
        "schema": "boundary_results/1", "train": side, "infer": {**side, "label": "infer"}, "mapping": {"digest": DIGEST},
        "boundaries": rows, "weights": [row(name, at, state) for at, (name, state) in enumerate(weights.items())],
        "first_divergence": first, "counts": counts, "overall": overall,
    }  # fmt: skip


_VERDICT = {"x": "same", "m": "same", "r": "rounding", "f": "logic", "h": "unknown"}


def replay(found: Seen) -> dict[str, Any]:
    """replay_results.json: each module's verdict is what its boundary is."""
    side = {"label": "train", "digest": DIGEST}
    modules = []
    for name, state in found.items():
        if state == "o" or name in ("input_ids", "positions"):
            continue
        module = "lm_head" if name == "logits" else name.removesuffix(".out")
        half = {
            "entry": f"Module.model.{module}.Linear.forward.0", "via": [], "variant": None if state == "h" else "plain", "bit_equal": 1.0,
            "explained": 1.0, "unexplained": 0, "of": TOKENS * WIDE, "basis": "variant",
            "config": {"eps": {"value": 1e-6, "interval": None, "source": "config"}} if "norm" in module else {},
            "weights": "recorded", "residual": None, "inputs_are": "pre_call",
        }  # fmt: skip
        decide = [msgspec.to_builtins(word("decide_replay", boundary=name))] if state == "h" else []
        modules.append(
            {
                "module": module, "span": None, "operator": "rms_norm" if "norm" in module else "linear", "verdict": _VERDICT[state],
                "train": half, "infer": {**half, "entry": f"Module.engine.{module}.Linear.forward.0"}, "sampled": None, "evidence": [],
                "would_decide": decide,
            }
        )  # fmt: skip
    return {
        "schema": "replay_results/1", "train": side, "infer": {**side, "label": "infer"}, "mapping": {"digest": DIGEST},
        "modules": modules, "edges": [], "weights": [], "calibration": {},
    }  # fmt: skip


def finding(id_: str, character: str, names: list[str], cause: Worded, **more: Any) -> dict[str, Any]:
    """A finding of conclusion.json over these boundaries."""
    layers = sorted({int(name.split(".")[1]) for name in names if name.startswith("layers.")})
    entry = f"Module.model.{names[0].removesuffix('.out')}.Linear.forward.0"
    of = TOKENS * WIDE * len(names)
    made = {
        "id": id_, "boundary": names[0], "layers": layers, "boundaries": names, "module": {"train": entry, "infer": entry},
        "character": character, "side": "both" if character == "rounding" else "unknown", "cause": cause,
        "size": {"unequal": 518, "of": of, "ulp_max": 2, "smaller": 259, "larger": 259, "unexplained": 0},
        "evidence": [
            word("replay_both_explained", module=name.removesuffix(".out"), train=0, of_train=of, by_train="plain", infer=0, of_infer=of,
                 by_infer="plain")
            for name in names
        ],
        "ruled_out": [{"cause": word("replay_another_constant", name="eps"), "because": word("nothing_differs")}],
        "chain": [{"layer": layer, "local": 2.5e-4 * (8 if character == "logic" else 1), "propagated": 1e-3} for layer in layers],
        "rounds": [], "confirmed_by": ["replay"], "resolvable": "no" if character == "rounding" else "unknown", "fix": None,
    }  # fmt: skip
    return {**made, **more}


def conclusion(found: Seen, findings: list[dict[str, Any]], consistency: str, **more: Any) -> dict[str, Any]:
    """conclusion.json."""
    read = results(found, {})
    missing = [
        {"boundary": name, "reason": _missing(name), "covered_by": f"layers.{name.split('.')[1]}.attn_core.out" if "rope" in name else None}
        for name, state in found.items()
        if state == "o"
    ]
    points = [one["id"] for one in findings if one["character"] == "rounding"]
    hypotheses = [
        _hypothesis("weights_out_of_sync", "excluded", word("weights_equal", equal=3, of=3)),
        _hypothesis("input_misaligned", "excluded", word("inputs_equal", names=["input_ids", "positions"])),
        _hypothesis("kernel_order", "supported" if points else "excluded", word("order_same", n=9), points),
    ]
    dumps = [{"label": label, "digest": DIGEST, "step": 0, "rank": 0, "request_id": None} for label in ("train", "infer")]
    silent = {"status": "evidence_missing"}
    made = {
        "schema": "conclusion/1", "overall": read["overall"], "consistency": consistency, "summary": [word("sum_nothing")] * 3,
        "first_divergence": read["first_divergence"], "findings": findings, "hypotheses": hypotheses, "spans": [],
        "evidence_missing": missing, "would_decide": [], "account": None,
        "metrics": {"prefill_logprob_diff": silent, "e2e": silent}, "inputs": dumps, "rounds": [],
    }  # fmt: skip
    return {**made, **more}


def _hypothesis(name: str, state: str, because: Worded, findings: Iterable[str] = ()) -> dict[str, Any]:
    return {"name": name, "state": state, "because": because, "findings": list(findings)}


def without_assets(page: str) -> str:
    """A page without its style sheet and script, which have tests of their own."""
    bare = re.sub(r"(?s)<style>.*?</style>", "<style></style>", page)
    bare = re.sub(r"(?s)<script>.*?</script>", "<script></script>", bare)
    return re.sub(r"'sha256-[^']*'", "'sha256-'", bare)


def source_of(folder: Path, language: Language, overall: str, **more: Any) -> ReportSource:
    """report_source.json over the files in a folder."""
    not_run = ("stateful_training", "long_horizon_e2e", "requested_model_final", "production_patch_hygiene", "clean_runtime_activation")
    axes = {name: {"status": "not_run", "evidence": "-"} for name in not_run}
    axes |= {name: {"status": "not_applicable", "evidence": "-"} for name in ("reduced_model_transfer", "performance_regression")}
    side = {"label": "train", "digest": DIGEST, "versions": {"torch": "2.13.0"}}
    value = {
        "schema": "report_source/1", "schema_version": 1, "language": language, "title": "toy", "generated_at": "2026-11-29",
        "acceptance_contract": {"status": "unknown", "objective": "all", "requested_model_scope": "toy", "required_gates": [],
                                "long_horizon_required": False, "stop_condition": "-", "historical_failure_step": None},
        "scope": {"phase": "prefill", "model": "toy, bfloat16", "coverage": "all", "training_backend": "trainer 1.0",
                  "inference_backend": "engine 2.0", "hardware_backend": "CPU", "evidence_provider": "msprobe 26.2.0",
                  "topology": {"train": {"tp": 1, "pp": 1, "ep": 1}, "infer": {"tp": 2, "pp": 1, "ep": 1}}},
        "results": {"native_prefill_status": overall, "conditional_prefill_status": "not_run", "e2e_metric_status": "evidence_missing",
                    "e2e_metric_value": None, "e2e_metric_name": "unknown", "e2e_metric_evidence": "-", "unresolved_replay_ids": [],
                    "native_exact_gate": None},
        "differences": [],
        "verification_axes": {"tensor_prefill": {"status": overall, "evidence": "-"},
                              "weight_sync": {"status": "exact", "evidence": "-"}, **axes},
        "limitations": [], "provenance": {"train": side, "infer": {**side, "label": "infer"}},
        "comparison": {"prompt_token_length": TOKENS, "train_input_token_length": TOKENS, "infer_prefill_token_length": TOKENS,
                       "train_prompt_slice": [0, TOKENS], "logit_causal_shift": 0},
        "artifacts": {"files": [{"name": path.name, "digest": io.digest_of_file(path)} for path in sorted(folder.glob("*.json"))],
                      "raw_tensor_included": False, "prompt_included": False},
        **more,
    }  # fmt: skip
    source, faults = report_source.from_value(value)
    assert source is not None, faults
    return source


class Case:
    """An analysis by hand; ``write`` lays its files into a folder."""

    def __init__(self, found: Seen, weights: Seen, told: dict[str, Any], rounds: Iterable[dict[str, Any]] = (), *, replayed: bool = True):
        self.found, self.weights, self.told, self.rounds, self.replayed = found, weights, told, list(rounds), replayed

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        files: list[tuple[str, Any, type[msgspec.Struct]]] = [
            ("conclusion.json", self.told, Conclusion),
            ("boundary_results.json", results(self.found, self.weights), BoundaryResults),
        ]
        if self.replayed:
            files.append(("replay_results.json", replay(self.found), ReplayResults))
        for name, value, kind in files:
            io.write(folder / name, io.of_value(msgspec.to_builtins(value), kind, name)[0])
        for one in self.rounds:
            place = folder / f"round{one['round']}"
            place.mkdir(exist_ok=True)
            (place / "round_result.json").write_text(json.dumps(one), encoding="utf-8")
        return folder

    def rendered(self, folder: Path, language: Language, **more: Any) -> Rendered:
        """Both renderings of the case, its files laid into ``folder``."""
        self.write(folder)
        return render(source_of(folder, language, self.told["overall"], **more), folder, language)


WEIGHTS: Seen = {"layers.0.q.weight": "x", "layers.1.q.weight": "x", "lm_head.weight": "x"}
CASES: dict[str, Callable[[], Case]] = {}


def _case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def _rounding(layers: int, id_: str = "F1") -> dict[str, Any]:
    names = [f"layers.{layer}.attn_core.out" for layer in range(layers)]
    return finding(id_, "rounding", names, word("replay_cause_rounding", operator="attention", train=word("variant_stepwise"),
                                                infer=word("variant_rounded_once")))  # fmt: skip


@_case
def exact() -> Case:
    found = seen(2, None, {}, gaps=())
    return Case(found, WEIGHTS, conclusion(found, [], "consistent"))


@_case
def rounding() -> Case:
    made = {f"layers.{layer}.attn_core.out": "r" for layer in range(2)}
    found = seen(2, "layers.0.attn_core.out", made)
    return Case(found, WEIGHTS, conclusion(found, [_rounding(2)], "consistent"))


@_case
def one_fault() -> Case:
    names = [f"layers.{layer}.input_norm.out" for layer in range(3)]
    made = {**dict.fromkeys(names, "f"), **{f"layers.{layer}.attn_core.out": "r" for layer in range(3)}}
    found = seen(3, names[0], made)
    fix = {
        "side": "train",
        "action": word("fix_constant", name="eps", value=1e-6, side="infer"),
        "expect": word("expect_equal_constant", name="eps"),
    }
    cause = word("replay_cause_constant", operator="rms_norm", name="eps", train=1e-5, infer=1e-6)
    size = {"unequal": 518, "of": 680960, "ulp_max": 1, "smaller": 518, "larger": 0, "unexplained": 0}
    fault = finding("F1", "logic", names, cause, side="train", fix=fix, resolvable="yes", confirmed_by=["replay", "config", "round"],
                    rounds=[1], size=size)  # fmt: skip
    repairs = [{"findings": [], "logits_rel_l2": 0.31, "kl": 0.1, "logprob_diff": {"mean": 0.1, "max": 0.2}},
               {"findings": ["F1"], "logits_rel_l2": 0.011, "kl": 0.001, "logprob_diff": {"mean": 0.01, "max": 0.02}}]  # fmt: skip
    account = {"closed": {"train": True, "infer": True}, "leaves_at": None, "repairs": repairs, "closes_with_rounding": True}
    behind = [{"boundary": f"layers.2.{place}", "status": "NOT_EXACT", "character": None, "rel_l2": 2e-4} for place in PLACES[9:]]
    round_ = {
        "schema": "round_result/1", "round": 1, "effective": True, "why_not": None, "local": [], "confirmed": ["F1"], "contradicted": [],
        "isolated": {"boundary": "layers.1.resid_mlp", "status": "EXACT"}, "next": None, "stop": "only_rounding",
        "downstream": [*behind, {"boundary": "logits", "status": "NOT_EXACT", "character": None, "rel_l2": 3e-4}],
    }  # fmt: skip
    failed = {**round_, "round": 2, "effective": False, "isolated": None, "downstream": [], "confirmed": []}
    log = {
        "status": "measured",
        "mean": 0.036,
        "max": 0.5,
        "std": 0.01,
        "step": 30,
        "by_step": [[0, 0.011], [30, 0.036]],
        "source": "train.log",
    }
    metrics = {"prefill_logprob_diff": log, "e2e": {"status": "not_run", "valid": 0, "name": "rollout_probs_diff"}}
    told = conclusion(found, [fault, _rounding(3, "F2")], "inconsistent", account=account, metrics=metrics)
    return Case(found, WEIGHTS, told, [round_, failed])


@_case
def several() -> Case:
    names = ["layers.1.k.out", "layers.1.v.out"]
    made = {**dict.fromkeys(names, "f"), "layers.3.resid_mlp": "f", "layers.2.q.out": "f", "layers.0.q.out": "f"}
    made |= {f"layers.{layer}.attn_core.out": "r" for layer in range(4)}
    found = seen(4, "layers.0.q.out", made)
    causes = [
        ("F1", ["layers.0.q.out"], "train", word("replay_cause_constant", operator="linear", name="scale", train=2.0, infer=1.0)),
        ("F2", names, "infer", word("weight_differs", weights=["layers.1.k.weight"], unequal=7, of=4096)),
        ("F3", ["layers.2.q.out"], "unknown", word("replay_cause_constant", operator="linear", name="theta", train=1e4, infer=1e6)),
        (
            "F4",
            ["layers.3.resid_mlp"],
            "infer",
            word("replay_cause_constant", operator="residual_add", name="multiplier", train=1, infer=1.02),
        ),
    ]
    faults = [finding(id_, "logic", at, cause, side=side) for id_, at, side, cause in causes]
    told = conclusion(
        found, [*faults, _rounding(4, "F5")], "inconsistent", would_decide=[word("decide_weight", weights=["layers.2.q.out"])]
    )
    return Case(found, WEIGHTS, told)


@_case
def undecided() -> Case:
    found = seen(2, "layers.0.attn_core.out", {"layers.0.attn_core.out": "r", "layers.1.attn_core.out": "r"}, gaps=("gate.out", "up.out"))
    gaps = [name for name, state in found.items() if state == "o"]
    told = conclusion(found, [_rounding(2)], "undecided", would_decide=[word("decide_gap", names=gaps)])
    return Case(found, WEIGHTS, told)


@_case
def not_run() -> Case:
    found = dict.fromkeys(boundaries(1), "o")
    told = conclusion(found, [], "undecided", overall="not_run", hypotheses=[], would_decide=[word("decide_dump", side="train")])
    return Case(found, {}, told, replayed=False)


def hostile() -> Case:
    """Names that mean something to HTML, Markdown, URLs and terminals."""
    names = [
        "</script><script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "a|b`c`|d",
        "\u202egnissim\u202c",
        "x" * 10_000,
        "[l](http://e.org)",
    ]
    found = seen(2, "layers.0.q.out", {"layers.0.q.out": "f", "layers.1.q.out": "h"})
    for at, name in enumerate(names):
        found[name] = "fmhro"[at % 5]
    cause = word("replay_cause_constant", operator=names[0], name=names[1], train=names[2], infer=names[3])
    fault = finding("F1", "logic", ["layers.0.q.out", *names], cause)
    fault["module"] = {"train": names[4], "infer": names[1]}
    odd = finding('F2"><b>', "unknown", ["layers.1.q.out"], Worded("of a later release", {"x": names[0]}, names[0] + names[3]))
    told = conclusion(found, [fault, odd], "inconsistent", would_decide=[word("decide_gap", names=names)])
    told["hypotheses"].append(_hypothesis(names[0], "open", Worded("later", {}, names[1])))
    return Case(found, {names[0]: "x", names[4]: "o"}, told)


def large(layers: int, extra: int = 0) -> Case:
    """A model of many layers, and places beyond the known ones (experts) in each."""
    made = {f"layers.{layer}.attn_core.out": "r" for layer in range(layers)}
    made |= {f"layers.{layer}.input_norm.out": "f" for layer in range(layers)}
    found = seen(layers, "layers.0.input_norm.out", made)
    for layer in range(layers):
        found |= {f"layers.{layer}.experts.{expert}.out": "m" for expert in range(extra)}
    names = [f"layers.{layer}.input_norm.out" for layer in range(layers)]
    fault = finding(
        "F1", "logic", names, word("replay_cause_constant", operator="rms_norm", name="eps", train=1e-5, infer=1e-6), side="train"
    )
    return Case(found, WEIGHTS, conclusion(found, [fault, _rounding(layers, "F2")], "inconsistent"))
