"""What the documentation shows runs: code blocks of the README and the guides, examples in docstrings, `examples/`.

The Python blocks of a page share one namespace, in order, in an empty folder; commands of a shell block run between
them. What a page takes for granted stands before a block in a comment, which readers of the rendered page do not see:

    <!-- given
    X, y = …
    -->

A block that cannot run here has `<!-- not run: the reason -->` before it.
"""

import doctest
import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from launching import environment, needs_mpi

from strads import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("[!_]*.py"))
TESTED_ELSEWHERE = {"mlr", "transe", "umap_layout", "word2vec_serial"}  # in files of their own
# What each of the other examples prints before a figure that shows that it learns: one that falls from line to line …
FALLING = {
    "dynamic_program": "objective ",
    "graph_layout": "stress per edge ",
    "matrix_factorization": "RMSE ",
    "mlr_serial": "loss ",
    "schmp_program": "squared error a rating ",
    "transe_serial": "loss ",
    "word2vec": "loss ",
}
# … or one that each line gives for a run of its own, and an upper bound of it that takes learning to reach.
AT_MOST = {"minibatches": ("loss ", 0.3), "parameter_server_lda": ("→ ", 400.0), "parameter_server_mf": ("RMSE ", 0.7)}
STARTS_PROCESSES = re.compile("^(mpiexec|python) |--backend ray", re.MULTILINE)
DOCTESTS = sorted(path for path in (ROOT / "src").rglob("*.py") if ">>> " in path.read_text())

_BLOCK = re.compile(
    r"^<!-- (?P<mark>given|not run: [^\n]+?)(?: -->\n|\n(?P<given>.*?)^-->\n)|^```(?P<kind>\w*)\n(?P<code>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    kind: str
    code: str
    line: int  # of the page, from 1


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks to run, in order."""
    text, is_run = page.read_text(), True
    for found in _BLOCK.finditer(text):
        line = text[: found.start()].count("\n") + 2
        if found["given"] is not None:
            yield Block("python", found["given"], line)
        elif found["mark"] is not None:
            is_run = False
            assert text[found.end() :].startswith("```"), f"{page}:{line - 1}: no block follows"
        else:
            if is_run:
                yield Block(found["kind"], found["code"], line)
            is_run = True


def commands_of(block: Block) -> Iterator[str]:
    lines = block.code.splitlines()
    return (line for line in lines if shlex.split(line, comments=True))


def starts_processes(command: str) -> bool:
    return STARTS_PROCESSES.search(command) is not None


def run_page(page: Path, *, with_processes: bool) -> None:
    """Run the blocks of a page, and of its commands either those that start processes of their own, or the others."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.kind == "python":
            # At the block's line of this file: errors, and strads itself, find the source where it is.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        elif block.kind == "sh":
            for command in commands_of(block):
                if starts_processes(command) and with_processes:
                    run_in_shell(command)
                elif not starts_processes(command) and not with_processes:
                    assert cli.run(shlex.split(command, comments=True)[1:]) == 0, command


def run_in_shell(command: str) -> None:
    beside = Path(sys.executable).parent
    variables = environment() | {"PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    # More processes than this machine may have cores.
    command = command.replace("mpiexec", "mpiexec --oversubscribe")
    subprocess.run(command, shell=True, env=variables, check=True, timeout=300)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with nothing but the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.few(3)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_of_a_page(page: Path) -> None:
    run_page(page, with_processes=False)


@needs_mpi
@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if STARTS_PROCESSES.search(page.read_text())], ids=lambda page: page.stem
)
def test_commands_of_a_page_that_start_processes(page: Path) -> None:
    pytest.importorskip("ray")
    run_page(page, with_processes=True)


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.stem
)
def test_links_lead_somewhere(path: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", path.read_text()):
        found = path.parent / target if target else path
        assert found.exists(), target
        assert not anchor or anchor in anchors_of(found), f"{target}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    """The headings of a page as links to them are written."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCTESTS, ids=lambda path: path.stem)
def test_examples_in_docstrings(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in TESTED_ELSEWHERE)) for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_examples(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.syspath_prepend(path.parent)
    runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    if path.stem in FALLING:
        figures = figures_after(FALLING[path.stem], shown)
        assert figures[-1] < figures[0]
    elif path.stem not in TESTED_ELSEWHERE:
        label, most = AT_MOST[path.stem]
        assert max(figures_after(label, shown)) < most


def figures_after(label: str, shown: str) -> list[float]:
    """The number after each occurrence of a label."""
    return [float(figure) for figure in re.findall(rf"{label}([\d.]+)", shown)]
