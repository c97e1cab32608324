"""What must not leave the machine in a report: found before anything is rendered, and named by its place, never shown.

Aggregates, labels, digests, versions and names of operators pass. What a text says cannot be known in general; a guard that
looks for forms finds what was pasted by mistake, and is no proof that a text is harmless.
"""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from itertools import pairwise
from typing import Any

from dump_analysis.artefacts.faults import Fault

_ROW = 8  # numbers one after the other that are a row of a tensor and no shape, interval or slice
_START = r"(?<![A-Za-z0-9_.\-/<\\])"  # where a path or address may begin; letters of other scripts may stand before it
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_NUMBERS = re.compile(rf"(?<![\w.]){_NUMBER}(?:[,;\s\[\]]+{_NUMBER}){{{_ROW - 1},}}(?![\w.])", re.ASCII)
_KEYS_OF_TEXT = frozenset(
    {"prompt", "prompts", "completion", "response_text", "messages", "input_ids", "token_ids", "prompt_token_ids", "tokens_text"}
)

# --- credentials ---

_SECRET_WORDS = (
    r"(?:password|passwd|passphrase|pwd|secret|credential|api[_ -]?key|access[_ -]?key|private[_ -]?key"
    r"|(?:access|auth|api|bearer|hf|session|refresh|secret)[_ -]?token|密码|口令|密钥|令牌)s?[\"']?\s*"
)
_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bhf_[A-Za-z0-9]{16,}|\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}"
    r"|\bA(?:KIA|SIA)[A-Z0-9]{12,}|\bLTAI[A-Za-z0-9]{12,}|\bAIza[\w-]{30,}|\bxox[abprs]-[\w-]{10,}|\bnvapi-[\w-]{16,}"
    r"|\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*"
    r"|(?i:\b(?:bearer|basic)\s+[A-Za-z0-9+/_=.-]{16,})"
    rf"|(?i:(?<![A-Za-z]){_SECRET_WORDS}[:=：]\s*[\"']?[^\s\"',;，。；]{{3,}})"
    rf"|(?i:(?<![A-Za-z]){_SECRET_WORDS}(?:\bis\b|为|是)\s*[\"']?(?=[^\s\"']*\d)[^\s\"',;，。；]{{3,}})",
    re.ASCII,
)
_BASIC_AUTH = re.compile(r"\b[a-z][a-z0-9+.-]{0,15}://[^\s/@:]+:[^\s/@]+@", re.ASCII | re.IGNORECASE)

# --- places of the machine ---

_ROOTS = r"(?:home|root|Users|tmp|etc|var|opt|mnt|data|dev|usr|srv|workspace)"
_ABSOLUTE = re.compile(
    rf"{_START}/(?:[A-Za-z0-9_.@+~-]+/)+[A-Za-z0-9_.@+~-]*|{_START}/{_ROOTS}(?![A-Za-z0-9_./-])"
    rf"|{_START}~[A-Za-z0-9_.-]*/|\$\{{?HOME\b|%USERPROFILE%"
    rf"|{_START}[A-Za-z]:[\\/](?![\\/])[^\s]|(?<![\w\\])\\\\[A-Za-z0-9_.-]+\\[A-Za-z0-9_$.-]+",
    re.ASCII,
)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s]", re.ASCII | re.IGNORECASE)
_MAIL = re.compile(r"(?<![\w.%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9][A-Za-z0-9.-]*(?![\w@])", re.ASCII)
_QUAD = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?![\w]|\.\d)(:\d+|/\d+)?", re.ASCII)
_NAME_BEFORE = re.compile(r"(?:^|[^A-Za-z])([A-Za-z][\w+-]*)(\s*[=<>~!]=?=?\s*|\s+)[vV]?$", re.ASCII)
_VERSION_BEFORE = re.compile(r"(?:版本|固件|驱动)(?:号|为|是)?[:：\s]*[vV]?$")
# A name that a version may follow: abbreviations, names with digits or joints, and the plain words among them.
_SOFTWARE = re.compile(
    r"[A-Za-z]*[A-Z][A-Z]\w*|(?=.*[0-9_+-])\w[\w+-]*"
    r"|(?i:version|ver|release|rev|build|driver|firmware|toolkit|runtime|kernel|python|torch|numpy|transformers|vllm|sglang|slime|verl"
    r"|msprobe|megatron|mindspeed|mindspore|mindstudio|ascend|cuda|cudnn|nccl|hccl|rocm|triton)",
    re.ASCII,
)
_PLACE_WORDS = re.compile(r"(?i:(?:host|ip|addr|node|server|machine|master|worker|lan|dns|vpn)[\w-]*)", re.ASCII)
_VERSION = re.compile(r"[vV]?[0-9]+(?:\.[0-9]+){3}", re.ASCII)
_SIX = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:.])", re.ASCII)
_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])", re.ASCII)
_DOMAINS = r"(?:com|cn|org|net|io|local|localdomain|internal|intranet|corp|lan|edu|gov|cloud)"
_HOST = re.compile(
    rf"(?<![\w.@-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+{_DOMAINS}(?![\w-]|\.\w)"
    r"|(?<![\w.-])(?:ip|node|worker|host|server|compute|dgx|gpu|npu|pod|ecs|bms|notebook)(?:-[a-z0-9]+)*-[0-9]{1,5}(?![\w.-])"
    r"|(?i:\b(?:host|hostname|node[_ ]?name|主机名?|节点名)\s*[:=：]\s*[A-Za-z0-9][\w.-]+)|(?i:\blocalhost\b)",
    re.ASCII,
)

# --- prompts ---

_QUOTES = "\"'“‘「『"
_PROMPT = re.compile(
    r"<\|[A-Za-z_]+\|>|\[/?INST\]|<<SYS>>|<(?:bos|eos|pad|start_of_turn|end_of_turn)>"
    r"|(?m:^\s*(?:Human|User|Assistant|System|用户|助手)[:：]\s*\S)"
    r"|(?i:(?<![\w.])(?:prompts?|completions?|response text|token text|tokens? (?:as )?text|提示词|提示文本|回复文本)"
    rf"\s*(?:[:=：]|\bwas\b|\bis\b|\breads\b|为|是)\s*[{_QUOTES}])",
    re.ASCII,
)


def leaks(value: Any, where: str = "") -> list[Fault]:
    """What parsed JSON holds that must not leave the machine; ``where`` goes before each JSON path.

    Where a ``where`` is given, what machines wrote is looked at: there fields called ``path`` may hold absolute paths, which no report
    shows, and a ``token_profile`` is an aggregate by contract.
    """
    found: list[Fault] = []
    _walk(value, (), where, found)
    return found


def of_text(text: str, where: str) -> list[Fault]:
    """The same of the lines of a rendered text; numbers may stand in rows there, as in tables."""
    found = ((at, _kind(line, rows=False)) for at, line in enumerate(text.splitlines(), 1))
    return [_fault(f"line {at}", where, kind) for at, kind in found if kind is not None]


# A place: its parent's place, and the key or number in it; put into words only where something is found.
Place = tuple[Any, ...]


def _walk(value: Any, place: Place, where: str, found: list[Fault]) -> None:
    if isinstance(value, str):
        kind = _kind(value)
        if kind is not None:
            found.append(_fault(_path(place), where, kind))
    elif isinstance(value, dict):
        for key, item in value.items():
            _entry(key, item, (place, key), where, found)
    elif isinstance(value, list):
        if _is_row(value):
            found.append(_fault(_path(place), where, "a row of numbers, as tensors and token ids are"))
            return
        for at, item in enumerate(value):
            if isinstance(item, str | dict | list):
                _walk(item, (place, at), where, found)


def _entry(key: str, item: Any, place: Place, where: str, found: list[Fault]) -> None:
    if where and key in ("path", "token_profile"):
        return
    kind = _kind(key)
    if _holds_text(key) and item not in (None, "", [], {}, "unknown"):
        found.append(_fault(_path(place), where, "a prompt or the text of tokens"))
    elif kind is not None:
        found.append(_fault(_path(place), where, kind))
    elif isinstance(item, str) and _is_version(key, item) and _path(place).endswith(f".versions.{key}"):
        return  # four numbers that a package is said to be of
    elif isinstance(item, str | dict | list):
        _walk(item, place, where, found)


def _path(place: Place) -> str:
    """A place as a JSON path."""
    if not place:
        return ""
    parent, last = _path(place[0]), place[1]
    return f"{parent}[{last}]" if isinstance(last, int) else f"{parent}.{last}" if parent else str(last)


@lru_cache(maxsize=1 << 10)
def _holds_text(key: str) -> bool:
    return key.lower() in _KEYS_OF_TEXT


def _fault(path: str, where: str, kind: str) -> Fault:
    place = f"{where}: {path}" if where else path
    return Fault(place, f"holds {kind}", "Take it out, or write an aggregate, a label or a digest in its place.")


def _is_row(values: list[Any]) -> bool:
    """Whether a list is a long row of numbers; whole numbers that only rise number layers, tokens or columns."""
    numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    return len(numbers) == len(values) >= _ROW and not _rises(numbers)


def _rises(numbers: list[Any]) -> bool:
    return all(isinstance(one, int) or float(one).is_integer() for one in numbers) and all(
        before < after for before, after in pairwise(numbers)
    )


@lru_cache(maxsize=1 << 14)
def _kind(text: str, *, rows: bool = True) -> str | None:
    """What a text holds, in words; None where it passes. ``rows``: whether numbers in a row are looked for."""
    if _SECRETS.search(text) or _BASIC_AUTH.search(text):
        return "what looks like a credential"
    if _PROMPT.search(text):
        return "what looks like a prompt or the text of tokens"
    if _URL.search(text) or _MAIL.search(text) or _HOST.search(text) or _holds_address(text):
        return "what looks like an address or the name of a host"
    if ("/" in text or "\\" in text or "$" in text or "%" in text) and _ABSOLUTE.search(text):
        return "what looks like an absolute path"
    if rows and any(not _rises([float(one) for one in re.findall(_NUMBER, found.group())]) for found in _NUMBERS.finditer(text)):
        return "a row of numbers, as tensors and token ids are"
    return None


def _holds_address(text: str) -> bool:
    quads = "." in text and any(_is_address(found, text) for found in _QUAD.finditer(text))
    return quads or (":" in text and (_MAC.search(text) is not None or any(_is_six(found.group()) for found in _SIX.finditer(text))))


def _is_address(found: "re.Match[str]", text: str) -> bool:
    """Four numbers are an address, unless the name of software stands before them, as before a version."""
    try:
        IPv4Address(found.group(1))
    except AddressValueError:
        return False
    said = text[max(0, found.start() - 60) : found.start()]
    name = _NAME_BEFORE.search(said)
    named = name is not None and not _PLACE_WORDS.fullmatch(name.group(1))
    named = named and name is not None and (bool(name.group(2).strip()) or _SOFTWARE.fullmatch(name.group(1)) is not None)
    return found.group(2) is not None or not (named or _VERSION_BEFORE.search(said))


def _is_version(package: str, text: str) -> bool:
    return _VERSION.fullmatch(text) is not None and _PLACE_WORDS.fullmatch(package) is None


def _is_six(text: str) -> bool:
    """Whether colons and hex digits are an IPv6 address; a time or a ratio is none."""
    if "::" not in text and text.count(":") != 7:
        return False
    try:
        return int(IPv6Address(text)) > 0
    except AddressValueError:
        return False
