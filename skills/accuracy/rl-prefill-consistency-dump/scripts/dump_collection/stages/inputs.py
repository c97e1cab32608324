"""Stage 4: the switches of the launch command that make both sides run one prompt, unpadded, eager and undisturbed."""

import os
import re
import shlex
from typing import List, NamedTuple, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.task_card import UNKNOWN

from .site import roots_of
from .workdir import CARD, Missing, Workdir

# NAME=1, name: True, and as JSON has it: "NAME": "1"
_ON, _OFF = (r"['\"]?\s*[=:\s]\s*['\"]?(?:%s)\b" % values for values in ("true|1", "false|0"))


class Switch(NamedTuple):
    """``of``: words of a framework or engine that needs it, empty: all do. ``shown``: as it is written there."""

    of: Tuple[str, ...]
    pattern: str
    shown: str
    why: str


# verl 0.5 to 0.9, slime 0.2.2, vime, vLLM, vllm-ascend and SGLang spell them so; names are looked for, not their place
SWITCHES = (
    Switch((), r"\bPROMPTS_ONLY" + _ON, "PROMPTS_ONLY=1", "the trainer runs the prompt alone, as the engine's prefill does"),
    Switch((), r"\bTORCHDYNAMO_DISABLE" + _ON, "TORCHDYNAMO_DISABLE=1", "hooks inside compiled graphs do not fire"),
    Switch(("vllm",), r"\benforce[-_]eager(?!" + _OFF + ")", "enforce_eager=True", "msprobe records in eager mode alone"),
    Switch(
        ("sglang",),
        r"\b(?:disable[-_]cuda[-_]graph(?!"
        + _OFF
        + r")|msprobe[-_]dump[-_]config|cuda[-_]graph[-_]backend[-_]decode\s*[=\s]\s*disabled)\b",
        "--disable-cuda-graph (slime: --sglang-disable-cuda-graph)",
        "msprobe records in eager mode alone",
    ),
    Switch(
        ("verl",), r"\buse_remove_padding" + _ON, "actor_rollout_ref.model.use_remove_padding=True", "padding makes shapes differ (P18)"
    ),
    Switch(("verl",), r"\bbalance_batch" + _OFF, "trainer.balance_batch=False", "one request stays on one card"),
    Switch(("verl",), r"\bval_before_train" + _OFF, "trainer.val_before_train=False", "a validation run would be dumped first"),
    Switch(
        ("slime", "vime"), r"\bdata-pad-size-multiplier\s*[=\s]\s*1\b", "--data-pad-size-multiplier 1", "padding makes shapes differ (P18)"
    ),
)


def gate(work: Workdir) -> Missing:
    """Every switch that these frameworks need stands in the command, and the prompt's length is counted."""
    command = work.of("baseline_command")
    if command in (UNKNOWN, ""):
        yield "%s: baseline_command is not known" % CARD, work.mend(4)
        return
    text = _with_scripts(str(command), roots_of(work))
    used = " ".join(str(work.of(*path)) for path in (("train", "framework"), ("train", "backend"), ("infer", "engine"))).lower()
    for switch in SWITCHES:
        needed = not switch.of or any(word in used for word in switch.of)
        if needed and not re.search(switch.pattern, text, re.IGNORECASE):
            repair = "Put it into the command (a script counts: name it there) and into %s, then run: %s" % (
                work.shown(CARD),
                work.check(4),
            )
            yield "%s: baseline_command does not set %s: %s" % (CARD, switch.shown, switch.why), repair
    if work.lacks("sample.prompt_length"):
        repair = "Count the prompt's tokens with the model's tokenizer, write the number into %s, then run: %s"
        yield "%s: sample.prompt_length is not known" % CARD, repair % (work.shown(CARD), work.check(4))


def _with_scripts(command: str, roots: List[str]) -> str:
    """The command and the scripts that it names, as far as they are here; comments do not set anything."""
    texts = [command]
    for word in _words(command):
        paths = [os.path.join(root, word) for root in roots] if word.endswith((".sh", ".bash")) else []
        found = next((path for path in paths if os.path.isfile(path)), None)
        if found is not None:
            try:
                with open(found, encoding="utf-8", errors="replace") as file:
                    texts.append(re.sub(r"(?m)(?:^|(?<=\s))#.*$", "", file.read()))
            except OSError as error:
                raise DumpError("Cannot read %s: %s. Check its permissions." % (found, error.strerror))
    return "\n".join(texts)


def _words(command: str) -> List[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: a command that was cut still names its scripts
        return command.split()
