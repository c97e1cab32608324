"""Attention of many tokens and wide heads: no false alarm, faults found, memory bounded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from attention_programs import attention_by, unknown_kernel
from dump_analysis.replay.attention_search import Found, found_for
from dump_analysis.replay.heads import Heads, Sequence
from dump_analysis.replay.modules import Work
from dump_analysis.replay.recorded import held
from programs import DTYPES, values, wide
from running import SCRIPTS
from toys import arithmetic

WIDTH, SHORT, LONG, LONGEST = 128, 160, 512, 2000
SCALE = WIDTH**-0.5
_MEMORY = (
    256 << 20
)  # bytes; twice what was measured: 2,000 tokens against 2,000 keys are 32 MB of float64, of which a kernel's emulation holds some


def work(kernel: str, tokens: int, scale: float = SCALE, ahead: int = 0, dtype: str = "bfloat16") -> Work:
    """One head by one kernel."""
    q, k, v = (values(600 + at, tokens, WIDTH, dtype=dtype, scale=1.5 if at < 2 else 1.0) for at in range(3))
    seen = arithmetic.visible(tokens, ahead=ahead)
    if kernel == "unknown":
        made = unknown_kernel(q, k, v, seen, DTYPES[dtype], scale)
    else:
        made = attention_by(kernel, q, k, v, seen, DTYPES[dtype], scale)
    inputs = tuple(held(name, dtype, wide(part)) for name, part in zip("qkv", (q, k, v), strict=True))
    layout = Heads(WIDTH, WIDTH, ("query", "key", "value"), (Sequence(0, tokens, 0, tokens),))
    return Work("attention", (), ("attention",), held("out", dtype, wide(made)), inputs, {}, "absent", (), "pre_call", heads=layout)


def follows(found: Found) -> bool:
    return (found.best.explains and not found.best.trial.fault) or (found.noise is not None and found.noise.is_rounding)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kernel", ["eager", "float32", "flash", "flash_64", "unknown"])
def test_many_tokens_and_wide_heads_raise_no_alarm(kernel: str, dtype: str) -> None:
    found = found_for(work(kernel, LONG, dtype=dtype), {}, {})
    assert follows(found)
    assert found.best.explains == (kernel != "unknown")
    low, high = found.constants["attention_scale"].interval or (0.0, 0.0)
    assert low <= SCALE <= high


@pytest.mark.parametrize("kernel", ["flash", "unknown"])
def test_faults_of_wide_heads_are_seen(kernel: str) -> None:
    """A scale that is off by one percent, and a mask that lets each token see the next."""
    scaled = found_for(work(kernel, SHORT, SCALE * 1.01), {}, {})
    low, high = scaled.constants["attention_scale"].interval or (0.0, 0.0)
    assert low <= SCALE * 1.01 <= high
    assert not low <= SCALE <= high
    assert not follows(found_for(work(kernel, SHORT, ahead=1), {}, {}))


_MEASURED = """
import json, sys, tracemalloc
from test_long_attention_torch import LONGEST, follows, found_for, work
long = work(sys.argv[1], LONGEST)
tracemalloc.start()  # numpy's arrays are traced, too; a high-water mark of the process would hide behind what made the input
found = found_for(long, {}, {})
print(json.dumps([follows(found), tracemalloc.get_traced_memory()[1]]))
"""


@pytest.mark.parametrize("kernel", ["flash", "unknown"])
def test_two_thousand_tokens_raise_no_alarm_and_need_bounded_memory(kernel: str) -> None:
    here = Path(__file__).parent
    paths = json.dumps([str(SCRIPTS), str(here), str(here.parent)])
    code = f"import sys\nsys.path[:0] = {paths}\n{_MEASURED}"
    ran = subprocess.run([sys.executable, "-c", code, kernel], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    alarm_free, needed = json.loads(ran.stdout)
    assert alarm_free
    assert 0 < needed < _MEMORY
