"""The gallery shows the loops of `examples/loops` as they are, and they do what it says."""

import inspect
import re
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from loading import load

import strads

ROOT = Path(__file__).resolve().parents[1]
LOOPS = sorted((ROOT / "examples" / "loops").glob("[!_]*.py"))
SMALL = 0.02  # the scale at which the pages explain plans


@pytest.fixture
def module(request: pytest.FixtureRequest) -> ModuleType:
    return load(request.param)


def page_of(module: ModuleType) -> tuple[str, str, str]:
    """The page of a loop, and the body and the program that it shows."""
    page = (ROOT / "docs" / "gallery" / f"{module.__name__}.md").read_text()
    body, program = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return page, body, program


@pytest.mark.parametrize("module", LOOPS, ids=lambda path: path.stem, indirect=True)
def test_a_page_shows_its_loop(module: ModuleType) -> None:
    page, body, program = page_of(module)
    assert f"({module.__name__}.md)" in (ROOT / "docs" / "gallery" / "README.md").read_text()
    assert inspect.getsource(module.body).rstrip() == body.rstrip()
    compile(program, page, "exec")


@pytest.mark.few(2)
@pytest.mark.parametrize("module", LOOPS, ids=lambda path: path.stem, indirect=True)
def test_a_loop_runs_as_its_page_says(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    page, _, program = page_of(module)
    namespace = vars(module) | {"make": partial(module.make, SMALL), "strads": strads}
    exec(compile(program, page, "exec"), namespace)
    assert capsys.readouterr().out
    options = {"order": "sequential"} if getattr(module, "ORDER_MATTERS", False) else {}
    indices, arguments = module.make(SMALL)
    stats = strads.async_for(indices, module.body, *arguments, **options)
    told = re.search(r"^strategy: (\w+)", page, re.MULTILINE)
    assert told is not None
    assert stats.strategy == told[1]


def test_every_page_is_of_a_loop() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.md")} - {"README"}
    assert pages == {path.stem for path in LOOPS}
