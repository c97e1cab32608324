"""What must hold before a round is worth its run: cheap causes are ruled out, and the target's msprobe can override."""

from collections.abc import Collection
from typing import Any

from msprobe_files import release, task_card
from msprobe_files.errors import DumpError

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Conclusion, Hypothesis
from dump_analysis.sides import Side
from dump_analysis.wording import word

# What --despite calls them: the hypothesis that must be excluded.
CHEAP = {"weights": "weights_out_of_sync", "inputs": "input_misaligned", "config": "config"}
_WITHOUT_LOAD = ("<=8.3", "<=26.0", "26.0", "26.1")
_FIRST = (26, 2)  # the first release with load (mindstudio-probe 26.2.0)


def check_cheap_causes(conclusion: Conclusion, despite: Collection[str]) -> list[Worded]:
    """What was not ruled out and is no reason to wait, told. Raises DumpError for weights or inputs that are not ruled out, and for a
    configuration that is the likely cause, unless they are named in ``despite``.
    """
    states = {hypothesis.name: hypothesis for hypothesis in conclusion.hypotheses}
    told = []
    refused: dict[str, str] = {}
    for short, name in CHEAP.items():
        found = states.get(name)
        if found is not None and found.state == "excluded":
            continue
        state: str = found.state if found is not None else "not judged"
        why: Worded | str = found.because if found is not None else "the conclusion does not hold it"
        if short in despite or (short == "config" and found is not None and not _of_the_model(found, conclusion)):
            told.append(word("round_despite", name=name, state=state, why=why))
            continue
        refused[short] = f"{name} is {state}: {why.text if isinstance(why, Worded) else why}"
    if refused:
        named = " ".join([*(short for short in CHEAP if short in despite), *refused])
        raise DumpError(
            f"Cannot plan a round: {'; '.join(refused.values())}. Mend that first and dump again, or plan all the same with "
            f"--despite {named}."
        )
    return told


def _of_the_model(hypothesis: Hypothesis, conclusion: Conclusion) -> bool:
    """Whether a configuration is supported by more than one module: a constant that one module alone has is no configuration's."""
    named = [finding for finding in conclusion.findings if finding.id in hypothesis.findings]
    wide = [finding for finding in named if len(finding.boundaries) > 1 or "config" in finding.confirmed_by]
    return hypothesis.state == "supported" and (bool(wide) or len(named) != 1)


def without_load(side: Side, card: dict[str, Any]) -> Worded | None:
    """Why a side cannot be overridden; None where nothing says so. ``card``: the task card.

    The dump's own marks go before what the card states; msprobe before 26.2.0 ignores the load section without a word.
    """
    for unit in side.units:
        told = release.release_of(unit, release.inputs_are(unit))
        if told == ">=26.2":
            return None
        if told in _WITHOUT_LOAD:
            return word("round_no_load", side=side.label, release=told)
    stated = card["environments"][side.label]["msprobe"]
    numbers = [int(part) for part in str(stated).split(".")[:2] if part.isdigit()]
    if stated != task_card.UNKNOWN and len(numbers) == 2 and tuple(numbers) < _FIRST:
        return word("round_no_load", side=side.label, release=str(stated))
    return None
