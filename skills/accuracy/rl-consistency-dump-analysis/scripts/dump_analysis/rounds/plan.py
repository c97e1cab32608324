"""What to override next: on which side, where, and what each outcome would mean."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import DIVERGED
from dump_analysis.artefacts.common import SideName, Worded
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.round_plan import Ablation
from dump_analysis.artefacts.stub_instruction import Expected
from dump_analysis.rounds.ablations import ablation
from dump_analysis.rounds.cuts import Cut, Given, cuts_of
from dump_analysis.rounds.feeds import Feeds
from dump_analysis.rounds.history import forced_into, seats_in
from dump_analysis.rounds.levels import ROUNDS, open_in
from dump_analysis.rounds.open_points import Ground, Open, differences, open_points, sources
from dump_analysis.rounds.reach import Reach
from dump_analysis.rounds.writing import Wanted
from dump_analysis.wording import word

_TOLD = 12  # outcomes whose meaning is told


class Planned(NamedTuple):
    """The next round, None where none adds anything; what it adds; and how good it is beside the other side's: less is better.

    ``cost``: of a cut, the boundaries that it hides and its inputs; of forced rounds, what they leave undecided, how many they are, what
    they leave undecided where all that is open differs by itself, how many boundaries they never see, and the first one's inputs.
    ``later``: what rounds after it are still to add. ``beyond``: what no override of this side decides.
    """

    wanted: Wanted | None
    adds: Worded | None
    cost: tuple[int, ...]
    later: list[Worded]
    beyond: list[Ablation]


def better(found: Sequence[Planned]) -> Planned:
    """The side to override: the one that leaves less undecided, then takes fewer rounds, then sees more, then takes fewer tensors."""
    able = [one for one in found if one.wanted is not None]
    return min(able, key=lambda one: one.cost) if able else found[0]


# --- one cut ---


def next_cut(ground: Ground, feeds: Feeds) -> Planned:
    """The earliest complete cut behind what is known to differ, before what is still open; every cut is made once.

    A cut behind what is open shows what follows, whichever side it is made on.
    """
    left = open_points(ground)
    compared = ground.compared
    cuts = [cut for cut in cuts_of(feeds) if cut.boundary in compared]
    made, made_at_all = _made(ground, feeds.target_side), _made(ground, "train") | _made(ground, "infer")
    known = differences(ground)
    beyond: list[Ablation] = []
    for aim in _aims(ground, left):
        finding = _finding_at(aim, left)
        cut = _cut_before(compared[aim].order, known, cuts, ground)
        if cut is None or (finding is not None and cut.order >= compared[aim].order):  # a cut behind a finding hides it
            beyond.append(ablation(aim, feeds.target_side))
        elif cut.boundary not in (made if cut.order < compared[aim].order else made_at_all):
            seen_at = aim if finding else [name for name, row in compared.items() if row.status in DIVERGED][-1]
            expected, reason = _expected_of_cut(cut, seen_at, finding), _reason(cut, known, ground, finding)
            wanted = Wanted(feeds, cut.given, cut.boundary, expected, reason)
            adds = (
                word("adds_finding", finding=finding.id, boundary=cut.boundary) if finding else word("adds_behind", boundary=cut.boundary)
            )
            later = [word("adds_later", finding=one.id) for one in left.findings if one is not finding]
            return Planned(wanted, adds, (_hidden(cut, known, ground), len(cut.given)), later, beyond)
    return Planned(None, None, (), [], beyond)


def _aims(ground: Ground, left: Open) -> list[str]:
    """Where something is open, in the order of the model: open findings, else what was not judged."""
    order = list(ground.compared)
    return sorted({finding.boundary for finding in left.findings} | set(left.unjudged), key=order.index)


def _finding_at(boundary: str, left: Open) -> Finding | None:
    return next((finding for finding in left.findings if finding.boundary == boundary), None)


def _made(ground: Ground, target: SideName) -> set[str]:
    """Where effective rounds have cut this side already."""
    done = [one.instruction for one in ground.rounds if one.effective and one.instruction.target_side == target]
    return {one.isolate_boundary.boundary for one in done if one.isolate_boundary is not None}


def _cut_before(order: int, known: Sequence[str], cuts: Sequence[Cut], ground: Ground) -> Cut | None:
    """The earliest cut from the last known difference before a place on, and before that place if one is.

    Where something between the difference and the cut is hidden by it, that is said by what stays unjudged.
    """
    compared = ground.compared
    last = max((compared[name].order for name in known if compared[name].order < order), default=-1)
    behind = [cut for cut in cuts if cut.order >= last]
    before = [cut for cut in behind if cut.order < order]
    if before:
        return before[0]
    at_all = [cut for cut in cuts if cut.order < order and cut.order < last and _clean(cut, order, known, ground)]
    return at_all[-1] if at_all else behind[0] if behind else None


def _clean(cut: Cut, order: int, known: Sequence[str], ground: Ground) -> bool:
    """Whether nothing known to differ lies between a cut and what a value at a place is made from."""
    compared = ground.compared
    name = next(name for name, row in compared.items() if row.order == order)
    waiting, found = [name], set[str]()
    while waiting:
        for one in sources(waiting.pop(), compared) - found:
            found.add(one)
            if compared[one].order > cut.order:
                waiting.append(one)
    return not found & set(known)


def _hidden(cut: Cut, known: Sequence[str], ground: Ground) -> int:
    """How many differing boundaries between the last known difference and the cut no round of this side then sees."""
    compared = ground.compared
    last = max((compared[name].order for name in known if compared[name].order <= cut.order), default=-1)
    return sum(last < row.order < cut.order and row.status in DIVERGED for row in compared.values())


def _expected_of_cut(cut: Cut, aim: str, finding: Finding | None) -> list[Expected]:
    yes, no = ("finding_contradicted", "finding_independent") if finding else ("nothing_behind", "another_behind")
    values = {"finding": finding.id} if finding else {"boundary": cut.boundary}
    return [
        Expected(cut.boundary, "EXACT", word("override_effective", boundary=cut.boundary)),
        Expected(cut.boundary, "NOT_EXACT", word("override_ineffective", boundary=cut.boundary)),
        Expected(aim, "EXACT", _meaning(yes, values, aim)),
        Expected(aim, "NOT_EXACT", _meaning(no, values, aim)),
    ]


def _meaning(kind: str, values: dict[str, str], aim: str) -> Worded:
    return word(kind, **{"at": aim, **values})


def _reason(cut: Cut, known: Sequence[str], ground: Ground, finding: Finding | None) -> Worded:
    compared = ground.compared
    before = [name for name in known if compared[name].order <= cut.order]
    how = word("cut_by_zeros") if any(given.operand.combine == "zeros" for given in cut.given) else word("cut_whole")
    after = finding.id if finding else word("cut_rest")
    if not before:
        return word("cut_first", boundary=cut.boundary, after=after, how=how)
    return word("cut_between", before=before[-1], after=after, boundary=cut.boundary, how=how)


# --- all at once ---


def next_forced(ground: Ground, feeds: Feeds) -> Planned:
    """Every argument that the mapping feeds, but those that stay open in this turn: each module's output is then its own difference.

    A turn that decides nothing that is still open is not planned.
    """
    left = open_points(ground)
    aims = {*left.unjudged, *(finding.boundary for finding in left.findings)}
    turns = [turn for turn in _turns(ground, feeds, left.unjudged) if turn.decides & aims]
    decides, surely = (set[str]().union(*found) for found in ([turn.decides for turn in turns], [turn.surely for turn in turns]))
    beyond = [ablation(name, feeds.target_side) for name in ground.compared if name in aims - decides]
    if not turns:
        return Planned(None, None, (), [], beyond)
    given, stay = turns[0].given, turns[0].stay
    expected = [pair for finding in left.findings[:_TOLD] for pair in _expected_of_finding(finding)]
    reason = word("forced_all", n=len(given), side=feeds.target_side, left=len(feeds.left), open=len(stay))
    later = [word("adds_other_turn", boundaries=sorted(stay, key=list(ground.compared).index)) for _ in turns[1:]]
    cost = (len(aims - decides), len(turns), len(aims - surely), len(ground.compared) - len(decides), len(given))
    return Planned(Wanted(feeds, given, None, expected, reason), word("adds_all", n=len(given)), cost, later, beyond)


class _Turn(NamedTuple):
    """A forced round that may be: what it overrides, what stays as it is in it, and what it sees made from equal inputs.

    ``surely``: even where everything that is still open differs by itself.
    """

    given: list[Given]
    stay: set[str]
    decides: set[str]
    surely: set[str]


def _turns(ground: Ground, feeds: Feeds, unjudged: Sequence[str]) -> Iterator[_Turn]:
    """The forced rounds of a side that were not made yet. ``unjudged``: what may differ by itself."""
    done = [seats_in(one.instruction) for one in forced_into(ground.rounds, feeds.target_side)]
    alone = {name for feed in feeds.feeds for name in feed.alone}
    apart, reach = set(differences(ground)), Reach(feeds)
    for turn in range(ROUNDS if alone else 1):
        stay = open_in(alone, ground.compared, turn)
        given = [feed for feed in feeds.feeds if not stay & set(feed.alone)]
        seats = frozenset(feed.seat for feed in given)
        if seats not in done:
            told = [reach.decided(ground.compared, seats, differing) for differing in (apart, apart.union(unjudged))]
            yield _Turn([Given(feed.argument, feed.operand) for feed in given], stay, told[0], told[1])


def _expected_of_finding(finding: Finding) -> list[Expected]:
    values = {"finding": finding.id}
    return [
        Expected(finding.boundary, "EXACT", _meaning("finding_contradicted", values, finding.boundary)),
        Expected(finding.boundary, "NOT_EXACT", _meaning("finding_independent", values, finding.boundary)),
    ]
