"""A skip is a failure: a test that did not run proves nothing. (Also loaded on Python 3.8.)"""

from __future__ import annotations

from pathlib import Path

import pytest

BROWSER = Path(__file__).parent / "browser"


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `interpreters.py` asks for: a part of the cases that still runs every test function."""
    parser.addoption("--ends", action="store_true", help="of each test function only the first and the last case")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The browser tests run only where they are asked for by name: they need Chromium (`make browser`, `make browser-tests`)."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return True if collection_path == BROWSER and not any(BROWSER in (path, *path.parents) for path in named) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases between."""
    if not config.getoption("--ends"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    ends = {end.nodeid for found in cases.values() for end in (found[0], found[-1])}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ends])
    items[:] = [item for item in items if item.nodeid in ends]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """CI fails on a skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = 1
