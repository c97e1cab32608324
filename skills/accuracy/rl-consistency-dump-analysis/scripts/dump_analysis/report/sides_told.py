"""Sides and proofs in words; a side is named only where the conclusion names it."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msprobe_files import names

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Confirmation, Finding
from dump_analysis.report.said import Voice
from dump_analysis.wording import word


def side_name(side: str, voice: Voice) -> str:
    """A side as it stands in a sentence."""
    told = {
        "train": word("side_train"),
        "infer": word("side_infer"),
        "both": word("side_both"),
        "unknown": word("side_unknown"),
    }
    return voice.say(told[side])


def sides_counted(faults: Sequence[Finding], voice: Voice) -> list[str]:
    """How many faults are on which side: ``1 train``, ``2 infer``; sides without any are not said."""
    of = Counter(fault.side for fault in faults)
    told = [
        (of["train"], word("sides_train", n=of["train"])),
        (of["infer"], word("sides_infer", n=of["infer"])),
        (of["both"], word("sides_both", n=of["both"])),
        (of["unknown"], word("sides_unknown", n=of["unknown"])),
    ]
    return [voice.say(sentence) for n, sentence in told if n]


def confirmations(finding: Finding, voice: Voice) -> list[str]:
    """What a finding is confirmed by, each round by its number."""
    told: list[str] = []
    for proof in finding.confirmed_by:
        if proof == "round" and finding.rounds:
            told += [voice.say(word("proof_round", n=number)) for number in finding.rounds]
        else:
            told.append(_proof(proof, voice))
    return told


def _proof(proof: Confirmation, voice: Voice) -> str:
    told = {
        "replay": word("proof_replay"),
        "round": word("proof_a_round"),
        "weights": word("proof_weights"),
        "inputs": word("proof_inputs"),
        "replicas": word("proof_replicas"),
        "config": word("proof_config"),
        "fingerprint": word("proof_fingerprint"),
    }
    return voice.say(told[proof])


_SIDE_FIRST = re.compile(r"^(train|infer)[:：]\s*")


def cause_of(finding: Finding, voice: Voice) -> str:
    """A finding's cause; the side that some causes begin with is left out, for it stands before them."""
    said = voice.say(_without_classes(finding.cause))
    found = _SIDE_FIRST.match(said)
    return said[found.end() :] if found and found[1] == finding.side else said


def _without_classes(value: Any) -> Any:
    """A sentence with each name of a tensor or an entry as its module's path: the card holds the whole names."""
    if isinstance(value, Worded):
        return Worded(value.kind, _without_classes(value.values), value.text)
    if isinstance(value, dict):
        return {key: item if key in ("text", "kind") else _without_classes(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_classes(item) for item in value]
    if not isinstance(value, str):
        return value
    tensor = names.parse_tensor(value)
    entry = names.parse_entry(tensor.entry if tensor is not None else value)
    if entry.kind != "module":
        return value
    return ".".join([*entry.path, *([tensor.category, tensor.suffix] if tensor is not None and tensor.suffix else [])])
