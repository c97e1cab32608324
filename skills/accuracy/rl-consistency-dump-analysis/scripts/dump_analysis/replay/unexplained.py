"""Records that nothing explains: whether they deviate, or whether their kernel is one that nobody has written down."""

from dump_analysis.artefacts.common import Worded
from dump_analysis.replay.noise import GROSS
from dump_analysis.replay.one_side import Replayed
from dump_analysis.replay.routed_told import experts_hit
from dump_analysis.replay.usual import Norms
from dump_analysis.wording import word

_NEARLY = 0.1  # gain
_FEW = 16  # tokens or columns that are listed


def unknown_kernel(one: Replayed, norms: Norms, *, single: bool) -> bool:
    """Whether what nothing explains may be a kernel, or a function, that nobody has written down, or a weight that is another."""
    if one.work.guessed:
        return True
    if one.best.explains or one.shift is not None:
        return False
    if one.kernel is not None and (one.kernel.stands_out or (one.kernel.errs_as_kernels and not _in_one_place(one))):
        return not one.kernel.stands_out
    usual = norms.noises.get(one.best.trial.formula.operator)
    if usual is not None and (one.noise is None or one.noise.rms < GROSS * usual):
        return True
    # What comes nearest is an accident where nothing fits: a module that may be of a kind that is computed rightly elsewhere is known.
    kinds = [one.best.trial.formula.operator, *one.work.operators]
    if kinds[0] in norms.untrusted and not any(kind in norms.functions for kind in kinds[1:]):
        return True
    vouched = any(kind in norms.vouched for kind in kinds)
    return single and not _in_one_place(one) and not (vouched and _is_nearly_right(one))


def errs_as_others(one: Replayed) -> bool:
    """Whether a module that nothing explains computes its function all the same, but for what all modules of its kind err by."""
    return one.kernel is not None and one.kernel.errs_as_kernels and not one.kernel.stands_out


def _is_nearly_right(one: Replayed) -> bool:
    """Whether a record is about what the formula makes, and no line of it: another function, a scale after it, would not be."""
    left = one.residual
    return left is not None and abs(left.gain - 1.0) < _NEARLY and left.left_over > 0.5


def _in_one_place(one: Replayed) -> bool:
    """Whether a few tokens or columns of many hold what nothing explains, and little else: no kernel errs so."""
    if one.where is None:
        return False
    tokens, columns = len(one.where.tokens), len(one.where.columns)
    few = any(touched * 4 <= of and of >= 4 for touched, of in ((tokens, one.where.of_tokens), (columns, one.where.of_columns)))
    return few and one.where.of_tokens > 1 and 2 * one.best.outside >= tokens * columns


def told(label: str, one: Replayed) -> tuple[Worded, ...]:
    best = one.best
    if one.read_in is not None:
        kind = "replay_qkv_read_in_groups" if one.read_in else "replay_qkv_read_in_blocks"
        return (word(kind, side=label, groups=one.read_in, of=best.of),)
    if one.experts_taken is not None:
        return (_experts_told(label, one.experts_taken, best.of),)
    if best.explains and one.work.origin == "tied":
        return (word("replay_head_tied", side=label, of=best.of),)
    if best.explains:
        return (word("replay_mistake", side=label, variant=best.trial.variant.name, of=best.of),)
    if one.shift is not None:
        return (word("replay_rows_shifted", side=label, by=one.shift.by, share=f"{one.shift.share:.0%}", origin=one.work.origin),)
    first = word(
        "replay_unexplained", side=label, unexplained=best.outside, of=best.of, operator=best.trial.formula.operator,
        variant=best.trial.variant.name,
    )  # fmt: skip
    return first, *_beside_others(label, one), *_only_in(label, one), *experts_hit(label, one)


def _experts_told(label: str, taken: tuple[int, ...], of: int) -> Worded:
    """Which experts stand for which: two exchanged, or all counted from another one on."""
    moved = [at for at, expert in enumerate(taken) if at != expert]
    if len(moved) == 2:
        return word("replay_experts_exchanged", side=label, experts=moved, of=of)
    return word("replay_experts_shifted", side=label, by=taken[0], of=of)


def _only_in(label: str, one: Replayed) -> tuple[Worded, ...]:
    """The few tokens or columns that hold what nothing explains."""
    if one.where is None:
        return ()
    tokens, columns = one.where.tokens, one.where.columns
    if len(tokens) < one.where.of_tokens and len(tokens) <= _FEW:
        return (word("replay_only_tokens", side=label, tokens=list(tokens), of=one.where.of_tokens),)
    if len(columns) < one.where.of_columns and len(columns) <= _FEW:
        return (word("replay_only_columns", side=label, columns=list(columns), of=one.where.of_columns),)
    return ()


def _beside_others(label: str, one: Replayed) -> tuple[Worded, ...]:
    """How a module errs beside others of its kind, which no variant explains either."""
    if one.kernel is None:
        return ()
    operator = one.best.trial.formula.operator
    scale, usual, gain = (float(f"{value:.3g}") for value in (one.kernel.scale, one.kernel.usual, one.kernel.gain - 1))
    if one.work.experts is not None and not one.kernel.stands_out:
        return (word("replay_experts_wider", side=label, scale=scale),) if scale > 1 else ()
    if one.noise is not None:
        if not one.kernel.stands_out:
            return ()
        return (word("replay_noise_stands_out", side=label, operator=operator, rms=scale, usual=usual),)
    kind = "replay_stands_out" if one.kernel.stands_out else "replay_within_bound"
    return (word(kind, side=label, operator=operator, scale=scale, usual=usual, gain=gain),)


def would_decide(label: str, one: Replayed) -> Worded:
    if one.work.guessed:
        return word("replay_guessed", side=label, entry=one.work.entry)
    return word("replay_kernel", side=label, operator=one.best.trial.formula.operator)
