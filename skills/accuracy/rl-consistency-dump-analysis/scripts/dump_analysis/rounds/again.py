"""A round's dump: the target's units that ran with the override, and whether every override took effect, bit for bit."""

from collections.abc import Iterator

from msprobe_files import names, units
from msprobe_files.errors import DumpError
from msprobe_files.operands import OperandError

from dump_analysis import floats, sides, tensors
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.stub_instruction import StubInput, StubInstruction, StubModule
from dump_analysis.artefacts.stub_outcome import StubOutcome
from dump_analysis.boundaries import INPUTS
from dump_analysis.rounds.feeds import Feeds
from dump_analysis.rounds.values import digest_of, of_side
from dump_analysis.sides import Place, Side, resolve
from dump_analysis.tensors import Files, cut_stream, stream_of
from dump_analysis.wording import word

_APPLIED_AGAIN = ("overridden_again", "overridden_between")  # warnings of the collection that spoil a round


def open_round(target: Side, path: str) -> Side:
    """The side that was dumped again: its units of the steps and ranks of the first dump. Raises DumpError where it cannot be read."""
    wanted = {(unit.place.step, unit.place.rank) for unit in target.units}
    places = units.find_units(path)
    fitting = [place for place in places if (place.step, place.rank) in wanted] if len(places) > len(wanted) else places
    return sides.side_of(target.label, [units.read_unit(place) for place in fitting])


def stated(outcome: StubOutcome, digest: str, new: Side) -> Worded | None:
    """Why the collection's own proof does not hold; None where it does. ``digest``: of the instruction."""
    if outcome.instruction.digest != digest:
        return word("why_other_instruction")
    if outcome.new_dump is None or outcome.effective is None:
        return word("why_not_verified")
    if not outcome.effective:
        failed = next((effect for effect in outcome.effect if not effect.overridden), None)
        if failed is None:
            return word("why_not_verified")
        if failed.evidence.kind in _APPLIED_AGAIN:
            return word("why_applied_again", told=failed.evidence)
        return word("why_not_overridden", entry=failed.target_entry, input=failed.input, evidence=failed.evidence)
    spoiled = [warning for warning in outcome.warnings if warning.kind in _APPLIED_AGAIN]
    if spoiled:
        return word("why_applied_again", told=spoiled[0])
    return word("why_other_dump") if outcome.new_dump.digest != new.digest else None


def seen(instruction: StubInstruction, feeds: Feeds, new: Side) -> Worded | None:
    """Why the new dump does not show the override, from its own bytes; None where every input is the source's, bit for bit."""
    files = Files()
    try:
        told = next(_other_tokens(feeds, new, files), None)
        for module in instruction.modules if told is None else ():
            for item in module.inputs:
                told = told or _missed(module, item, instruction, feeds, new, files)
        return told
    finally:
        files.close()


def _other_tokens(feeds: Feeds, new: Side, files: Files) -> Iterator[Worded]:
    """Ids or positions that are not those of the first dump: another sequence."""
    for name in INPUTS:
        one = feeds.mapped.get(name)
        if one is None:
            continue
        operand, _ = of_side(one.pair, feeds.target_side)
        places = [resolve(new, source) for source in operand.sources]
        if any(place is None for place in places):
            yield word("why_no_tokens", boundary=name)
            continue
        found = [tensors.header(place) for place in places if place is not None]
        try:
            same = digest_of(stream_of(files, operand, found)) == one.digest
        except OperandError:
            same = False
        if not same:
            yield word("why_other_tokens", boundary=name)


def _missed(module: StubModule, item: StubInput, instruction: StubInstruction, feeds: Feeds, new: Side, files: Files) -> Worded | None:
    """Why one argument was not overridden; None where it was, in the one call alone."""
    where = {"entry": module.target_entry, "input": item.label}
    held = [place for place in new.by_name.get(f"{module.target_entry}.{item.label}", ()) if _of_rank(module, place)]
    if not held:
        return word("why_not_recorded", **where)
    wanted = _prepared(item, feeds.source, files)
    for place in held:
        try:
            tensor = tensors.header(place)
        except DumpError as error:
            return word("why_unreadable", **where, why=str(error))
        if list(tensor.shape) != item.expect.shape or tensor.dtype != item.expect.dtype:
            found = f"{list(tensor.shape)} {tensor.dtype}"
            return word("why_other_form", **where, found=found, wanted=f"{item.expect.shape} {item.expect.dtype}")
        if _bytes(cut_stream(files, tensor, ())) != wanted:
            return word("why_other_bytes", **where)
    return _applied_again(module, item, instruction, feeds.target, new, wanted, files)


def _of_rank(module: StubModule, place: Place) -> bool:
    return not isinstance(module.rank, int) or place.unit.place.rank == module.rank


def _prepared(item: StubInput, source: Side, files: Files) -> bytes:
    """The bytes that an input was to get. Raises DumpError where the source does not hold them any more."""
    operand = item.operand
    if operand.combine == "zeros":
        total = 1
        for size in item.expect.shape:
            total *= size
        return _filled(total, item.expect.dtype)
    places = [resolve(source, one) for one in operand.sources]
    missing = [one.name for one, place in zip(operand.sources, places, strict=True) if place is None]
    if missing:
        raise DumpError(f"Cannot judge the round: the {source.label} dump does not hold {missing[0]}. Hand the pair of the instruction.")
    found = [tensors.header(place) for place in places if place is not None]
    try:
        return _bytes(stream_of(files, operand, found))
    except OperandError as error:
        raise DumpError(f"Cannot judge the round: stub_instruction.json: {error}. Plan it again.") from None


def _filled(count: int, dtype: str) -> bytes:
    """−0.0, in the bytes of a format."""
    import numpy as np

    raw = floats.rounded(np.full(1, -0.0, np.float32), dtype)
    return bytes(np.repeat(raw, count).tobytes())


def _bytes(stream: tensors.Stream) -> bytes:
    return bytes(stream.read(0, tensors.elements_of(stream)).tobytes())


def _applied_again(
    module: StubModule, item: StubInput, instruction: StubInstruction, before: Side, new: Side, wanted: bytes, files: Files
) -> Worded | None:
    """Another call of the module that got the same tensor, which it had not got before: `load` stayed on for a later forward."""
    listed = {one.target_entry for one in instruction.modules}
    own = names.parse_entry(module.target_entry)
    for unit in new.units:
        for entry in unit.entries:
            parsed = names.parse_entry(entry)
            same_call = entry == module.target_entry and unit.place.step in {one.place.step for one in before.units}
            if (
                (parsed.path, parsed.class_name) != (own.path, own.class_name)
                or same_call
                or (entry in listed and entry != module.target_entry)
            ):
                continue
            name = f"{entry}.{item.label}"
            held = [place for place in new.by_name.get(name, ()) if place.unit is unit and _of_rank(module, place)]
            if any(_holds(place, wanted, files) for place in held) and not any(
                _holds(p, wanted, files) for p in before.by_name.get(name, ())
            ):
                return word("why_applied_to", entry=entry, step=unit.place.step, input=item.label)
    return None


def _holds(place: Place, wanted: bytes, files: Files) -> bool:
    try:
        return _bytes(cut_stream(files, tensors.header(place), ())) == wanted
    except DumpError:
        return False  # what cannot be read proves nothing either way
