"""Pieces that several artefacts share."""

from typing import Any, Literal

import msgspec

SideName = Literal["train", "infer"]
FindingSide = Literal["train", "infer", "both", "unknown"]


class Worded(msgspec.Struct, frozen=True):
    """A sentence as data: ``kind`` is a key of `wording`, ``text`` the English sentence made of ``values``."""

    kind: str
    values: dict[str, Any]
    text: str


class SideLabel(msgspec.Struct, frozen=True):
    """A side of the analysis. ``digest``: sha-256 over its dump.json files (contract: digest of units)."""

    label: str
    digest: str


class FileDigest(msgspec.Struct, frozen=True):
    """A file that an artefact was made from, by the sha-256 of its bytes."""

    digest: str


class Modules(msgspec.Struct, frozen=True):
    """The innermost recorded entry in which a value is made; None for inputs of the model."""

    train: str | None
    infer: str | None
