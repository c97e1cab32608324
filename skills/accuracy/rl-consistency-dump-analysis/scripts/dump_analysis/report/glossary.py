"""The six words that a reader must know."""

from dump_analysis.report.said import Voice
from dump_analysis.wording import word


def glossary(voice: Voice) -> tuple[tuple[str, str], ...]:
    """Each word with what it means here."""
    told = [
        (word("read_fault"), word("read_fault_is")),
        (word("read_boundary"), word("read_boundary_is")),
        (word("read_local"), word("read_local_is")),
        (word("read_replay"), word("read_replay_is")),
        (word("read_ulp"), word("read_ulp_is")),
        (word("read_bound"), word("read_bound_is")),
    ]
    return tuple((voice.say(name), voice.say(meaning)) for name, meaning in told)
