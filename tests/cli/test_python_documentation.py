import sys
from pathlib import Path

import pytest

from strads.cli.python_documentation import python_documentation
from strads.errors import InputError


@pytest.fixture(scope="module")
def documentation() -> list[tuple[str, str]]:
    return python_documentation()


def test_the_standard_library_is_documented(documentation):
    texts = dict(documentation)
    assert len(texts) > 4000
    assert texts["json"].startswith("JSON (JavaScript Object Notation)")
    assert "textwrap.wrap" in texts
    assert "json.decoder.JSONDecoder.decode" in texts
    assert "asyncio.queues.Queue.get" in texts  # a coroutine
    assert all(text == text.strip() and text for text in texts.values())


def test_the_same_in_the_same_order_and_nothing_is_imported(documentation):
    before = set(sys.modules)
    assert python_documentation() == documentation
    assert set(sys.modules) == before


def test_tests_and_programs_are_left_out(documentation):
    packages = {name.split(".")[0] for name, _ in documentation}
    assert not packages & {"test", "idlelib", "lib2to3", "site-packages", "turtledemo", "__phello__"}
    assert not any(name.startswith(("unittest.test.", "ctypes.test.", "distutils.tests.")) for name, _ in documentation)


def test_what_is_found_in_a_file(tmp_path: Path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "__init__.py").write_text(
        '"""Package."""\nclass A:\n    "Class."\n'
        '    async def f(self):\n        """\n        Two\n          lines.\n        """\n'
        'def silent(): pass\ndef blank():\n    " "\ndef outer():\n    def inner():\n        "Inner."\n'
    )
    (tmp_path / "a.py").write_text("raise SystemExit(import_of_this)  # is not run\ndef g():\n    'G.'\n")
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "nul.py").write_bytes(b"\0")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "x.py").write_text("'Not this.'")
    assert python_documentation(tmp_path) == [
        ("a.g", "G."),
        ("b", "Package."),
        ("b.A", "Class."),
        ("b.A.f", "Two\n  lines."),
        ("b.outer.inner", "Inner."),
    ]


@pytest.mark.parametrize("folder", ["", "missing"])
def test_an_installation_without_sources(tmp_path: Path, folder):
    with pytest.raises(InputError, match="there are no Python sources"):
        python_documentation(tmp_path / folder)
