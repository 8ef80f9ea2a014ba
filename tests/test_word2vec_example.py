"""`examples/word2vec.py` is the serial program with few lines changed, and learns the same (thesis fig. 6.1, 6.4)."""

import difflib
import re
from pathlib import Path

import pytest
from loading import load

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def code_of(name: str) -> list[str]:
    """The lines of a program without its docstring and blank lines."""
    text = (EXAMPLES / f"{name}.py").read_text().split('"""', 2)[2]
    return [line for line in text.splitlines() if line.strip()]


def test_few_lines_differ() -> None:
    serial, parallel = code_of("word2vec_serial"), code_of("word2vec")
    changed = [line for line in difflib.ndiff(serial, parallel) if line.startswith("+ ")]
    assert len(parallel) - len(serial) <= 2
    assert len(changed) <= 9


def test_both_learn_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for name in ("word2vec_serial", "word2vec"):
        load(EXAMPLES / f"{name}.py").main(epochs=1)
        found.append([float(number) for number in re.findall(r"\d+\.\d+", capsys.readouterr().out)])
    assert found[0][0] == pytest.approx(found[1][0], abs=0.02)  # loss; the order of pairs differs
    assert found[0][1] == pytest.approx(found[1][1], abs=0.05)
    assert found[1][1] > found[1][2] + 0.2
