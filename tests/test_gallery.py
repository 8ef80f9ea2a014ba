"""The gallery shows the loops of `examples/loops` as they are."""

import importlib.util
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOOPS = sorted((ROOT / "examples" / "loops").glob("[!_]*.py"))


@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_a_page_has_the_body_of_its_loop(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "gallery" / f"{path.stem}.md").read_text()
    assert inspect.getsource(module.body).rstrip() in page
    assert f"({path.stem}.md)" in (ROOT / "docs" / "gallery" / "README.md").read_text()


def test_every_page_is_of_a_loop() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.md")} - {"README"}
    assert pages == {path.stem for path in LOOPS}
