"""Artefacts of the collection: written whole or not at all, refused by name where they are another's."""

import json
import os
from pathlib import Path

import pytest
from dump_collection import files
from msprobe_files.errors import DumpError


def test_what_is_written_is_read_back_and_digested(tmp_path: Path) -> None:
    value = {"schema": "change_ledger/1", "roots": ["/päth"], "n": 1}
    digest = files.write(tmp_path / "deep" / "ledger.json", value)
    assert files.read(tmp_path / "deep" / "ledger.json", "change_ledger/1") == value
    assert files.digest_of_file(tmp_path / "deep" / "ledger.json") == digest
    assert os.listdir(str(tmp_path / "deep")) == ["ledger.json"]


def test_another_schema_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps({"schema": "task_card/1"}))
    with pytest.raises(DumpError, match=r"card\.json: schema: expected 'change_ledger/1', found 'task_card/1'"):
        files.read(tmp_path / "card.json", "change_ledger/1")


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    """NaN has no form in JSON; the file of before stays, and no part lies beside it."""
    files.write(tmp_path / "a.json", {"schema": "x/1"})
    with pytest.raises(ValueError, match=r"NaN|nan|JSON"):
        files.write(tmp_path / "a.json", {"schema": "x/1", "n": float("nan")})
    assert files.read(tmp_path / "a.json", "x/1") == {"schema": "x/1"}
    assert os.listdir(str(tmp_path)) == ["a.json"]


def test_names_that_are_no_utf8_are_read_back(tmp_path: Path) -> None:
    """A command line or a file name in another encoding holds lone surrogates; JSON has escapes for them."""
    value = {"schema": "x/1", "why": os.fsdecode("调试".encode("gbk")), "name": "\ud800"}
    digest = files.write(tmp_path / "a.json", value)
    assert files.read(tmp_path / "a.json", "x/1") == value
    assert files.digest_of_file(tmp_path / "a.json") == digest
