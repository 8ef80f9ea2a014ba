"""The serial TransE and the same with strads: few lines differ, and both learn alike."""

import difflib
import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def losses(name):
    """Run an example; returns its losses."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main()


def test_few_lines_differ():
    """Thesis table 7.6 counts the lines that a conversion changes."""
    serial, parallel = ((EXAMPLES / f"{name}.py").read_text().splitlines() for name in ("transe_serial", "transe"))
    changed = [line for line in difflib.ndiff(serial, parallel) if line[:2] == "+ " and line[2:].strip()]
    assert len(changed) == 10, changed  # one of them a docstring
    assert len([line for line in parallel if line.strip()]) <= len([line for line in serial if line.strip()])


def test_both_learn_alike(capsys):
    serial, parallel = losses("transe_serial"), losses("transe")
    assert serial[0] > 0.9
    assert serial[-1] < 0.2 * serial[0]
    assert abs(parallel[-1] - serial[-1]) < 0.1 * serial[0]
