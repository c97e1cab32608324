"""One check of a pair: its answer, the evidence, and the stage to go back to."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from dump_collection.wording import word

Worded = Dict[str, Any]
Finding = Tuple[Optional[bool], Worded]  # of one side
_NOT_ASKED = frozenset(("nothing_to_look_at", "nothing_without_ids", "warm_up_alone"))  # another check says why


class Check(NamedTuple):
    """``ok`` None: the files cannot say. ``shuts`` False: a remark, the pair can be compared all the same."""

    id: str
    ok: Optional[bool]
    evidence: Worded
    back_to: int
    shuts: bool = True

    @property
    def shut(self) -> bool:
        return self.ok is False and self.shuts

    @property
    def asked(self) -> bool:
        """False where an earlier check has said why there is nothing to look at."""
        told = self.evidence["values"].get("found", [self.evidence])
        return not all(one["kind"] in _NOT_ASKED for one in told)

    def as_json(self) -> Dict[str, Any]:
        """``back_to_stage`` is null where nothing has to be repaired: the check holds, or is a remark."""
        stage = None if self.ok is True or (self.ok is False and not self.shuts) else self.back_to
        return {"id": self.id, "ok": self.ok, "evidence": self.evidence, "back_to_stage": stage}


def over(check: str, back_to: int, findings: Sequence[Finding], shuts: bool = True) -> Check:
    """One check over several findings: the worst answer, with the evidence of all that gave it."""
    answers = [ok for ok, _ in findings]
    ok = False if False in answers else None if None in answers else True
    told: List[Worded] = [evidence for answer, evidence in findings if answer is ok]
    evidence = told[0] if len(told) == 1 else word("each_side", found=told)
    return Check(check, ok, evidence, back_to, shuts)
