"""The serial program of `examples/mlr_serial.py` becomes `examples/mlr.py` by few changes (thesis fig. 6.1 to 6.4)."""

import difflib
import re
from pathlib import Path

import numpy as np
import pytest
from loading import load

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_few_lines_differ() -> None:
    serial, parallel = (
        (EXAMPLES / name).read_text(encoding="utf-8").splitlines()[1:] for name in ("mlr_serial.py", "mlr.py")
    )
    changes = [line for line in difflib.ndiff(serial, parallel) if line[0] in "+-" and line[1:].strip()]
    added, removed = (sum(line[0] == sign for line in changes) for sign in "+-")
    assert (added, removed) == (7, 9)
    assert len(parallel) <= len(serial)


def test_both_learn_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    losses = {}
    for name in ("mlr_serial", "mlr"):
        load(EXAMPLES / f"{name}.py").main()
        losses[name] = [float(found) for found in re.findall(r"loss ([\d.]+)", capsys.readouterr().out)]
    assert len(losses["mlr"]) == len(losses["mlr_serial"]) == 10
    assert losses["mlr"][-1] == pytest.approx(losses["mlr_serial"][-1], rel=0.03)
    assert losses["mlr"][-1] < 0.65 * np.log(10)
