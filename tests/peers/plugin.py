"""A pytest plugin: a peer's tests meet our classes under the names of the peer's, and what became of them is noted."""

import functools
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from suites import SUITES

_reached: list[bool] = [False]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    parser.addoption("--peer", choices=sorted(SUITES), help="the suite whose classes are replaced")
    parser.addoption("--unreplaced", action="store_true", help="only note which tests reach those classes")
    parser.addoption("--outcomes", type=Path, help="file for the outcome of each test that reaches them")


def pytest_configure(config: pytest.Config) -> None:
    """Replace the classes before any test is imported."""
    swaps = SUITES[config.getoption("--peer")].swaps
    wanted = [(swap.peer, swap.adapter()) for swap in swaps] if not config.getoption("--unreplaced") else []
    for place, adapter in wanted:
        _watch(adapter)
        module, name = place.split(":")
        setattr(importlib.import_module(module), name, adapter)
    config.pluginmanager.register(_Outcomes(config.getoption("--outcomes"), only_reached=bool(wanted)))


def _watch(adapter: type) -> None:
    """Note when a test constructs or fits an object of a class."""
    for name in ("__init__", "fit"):
        function: Any = getattr(adapter, name)

        def noting(*args: Any, _function: Any = function, **keywords: Any) -> Any:
            _reached[0] = True
            return _function(*args, **keywords)

        setattr(adapter, name, functools.wraps(function)(noting))


class _Outcomes:
    """The outcomes of the tests, or of those that reach our classes."""

    def __init__(self, path: Path, *, only_reached: bool):
        self._path, self._only_reached = path, only_reached
        self._found: dict[str, str] = {}
        self._outcome = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        _reached[0], self._outcome = False, "passed"
        result = yield
        if _reached[0] or not self._only_reached:
            self._found[item.nodeid.split("/")[-1]] = self._outcome
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a phase of a test."""
        if report.outcome != "passed":
            self._outcome = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write all outcomes."""
        self._path.write_text(json.dumps(self._found))
