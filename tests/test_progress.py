import io
import threading
from dataclasses import replace
from typing import Any

import numba
import pytest
from jupyter_client.manager import start_new_kernel
from rich.console import Console

from strads.errors import ArgumentError
from strads.progress import (
    COMPILING,
    PREPARING,
    EpochProgress,
    Shown,
    format_duration,
    format_figure,
    format_rate,
    samples_per_second,
)

RECORDS = [
    {"iteration": 1, "seconds": 3.0, "samples": 1000, "rmse": 1.0, "validation_rmse": 1.25},
    {"iteration": 2, "seconds": 3.5, "samples": 2000, "rmse": 0.5, "validation_rmse": 0.75},
]
SHOWN = Shown({"rmse": "RMSE", "validation_rmse": "held-out"}, "ratings")


def shown(console: Console) -> str:
    with EpochProgress(20, SHOWN, console=console) as progress:
        for record in RECORDS:
            progress.update(record)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_plain_lines_without_a_terminal() -> None:
    lines = shown(Console(file=io.StringIO(), width=20)).splitlines()
    assert lines[0] == PREPARING
    assert lines[1].startswith("epoch  1/20  RMSE 1.0000  held-out 1.2500  ")
    assert "ratings/s" not in lines[1]
    assert "epoch  2/20  RMSE 0.5000  held-out 0.7500  2.0 k ratings/s" in lines[2]


def test_bar_on_a_terminal_fits_its_width() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, legacy_windows=False, color_system=None)
    text = shown(console)
    assert PREPARING in text
    bar, figures = [line for line in text.splitlines() if "\x1b" not in line or "epoch" in line][-2:]
    assert "epoch  2/20" in bar
    assert "RMSE 0.5000   held-out 0.7500   2.0 k ratings/s" in figures


def test_a_dumb_terminal_gets_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"}, color_system=None)
    assert "━" not in shown(console)


def test_the_record_before_the_first_epoch_is_not_an_epoch() -> None:
    console = Console(file=io.StringIO())
    with EpochProgress(3, SHOWN, console=console) as progress:
        progress.update({"iteration": 0, "seconds": 1.0, "samples": 0})
    assert console.file.getvalue().splitlines() == [PREPARING]  # type: ignore[attr-defined]


def test_another_name_for_the_period() -> None:
    console = Console(file=io.StringIO())
    with EpochProgress(20, replace(SHOWN, period="iteration", beginning="wait"), console=console) as progress:
        progress.update(RECORDS[0])
    first, second = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first == "wait"
    assert second.startswith("iteration  1/20  RMSE 1.0000")


def test_at_least_one_epoch() -> None:
    with pytest.raises(ArgumentError, match="epochs=0"):
        EpochProgress(0, SHOWN)


def test_rate_leaves_compiling_out() -> None:
    assert samples_per_second(RECORDS) == 2000
    assert samples_per_second(RECORDS[:1]) == pytest.approx(1000 / 3)
    assert samples_per_second([]) != samples_per_second([])


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (12.0, "12 x/s"),
        (5.21e7, "52.1 M x/s"),
        (2.5e3, "2.5 k x/s"),
        (1.5e8, "150 M x/s"),
        (float("nan"), "– x/s"),
    ],
)
def test_rates_for_people(rate: float, text: str) -> None:
    assert format_rate(rate, "x") == text


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0:00"), (67, "1:07"), (11_100, "3:05:00"), (-3, "0:00")])
def test_durations_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_without_a_known_number_of_epochs() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, legacy_windows=False, color_system=None)
    with EpochProgress(
        None, Shown({"gap": "gap", "active": "nonzero"}, period="iteration"), console=console
    ) as progress:
        progress.update(RECORDS[0] | {"gap": 0.5, "active": 1203})
        progress.update(RECORDS[1] | {"gap": 3.2e-7, "active": 7})
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "iteration 2 " in text
    assert "left" not in text
    assert "gap 3.2e-07   nonzero 7" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.90418, "0.9042"),
        (-2.5, "-2.5000"),
        (0.0, "0.0000"),
        (1203, "1,203"),
        (9.9e-4, "9.9e-04"),
        (-1e-9, "-1.0e-09"),
    ],
)
def test_figures_for_people(value: float, text: str) -> None:
    assert format_figure(value) == text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_figures_are_not_cut(width: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, legacy_windows=False, color_system=None)
    measures = {"gap": "relative duality gap", "active": "nonzero coefficients", "auc": "held-out AUC"}
    with EpochProgress(9, Shown(measures, "entries"), console=console) as progress:
        for record in RECORDS:
            progress.update(record | {"gap": 3.2e-7, "active": 1203, "auc": 0.75})
    lines = console.file.getvalue().split("epoch 2/9")[-1].splitlines()  # type: ignore[attr-defined]
    text = "   ".join(line.strip() for line in lines)
    for figure in ("relative duality gap 3.2e-07", "nonzero coefficients 1,203", "held-out AUC 0.7500", "entries/s"):
        assert figure in text
    assert all(len(line) <= width for line in lines)


def test_it_says_when_something_is_compiled() -> None:
    console = Console(file=io.StringIO())
    with EpochProgress(2, Shown(), console=console) as progress:
        threads = [threading.Thread(target=numba.njit(lambda x: x + 1), args=(1,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        progress.update(RECORDS[0])
        numba.njit(lambda x: x + 2)(1)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[:2] == [PREPARING, COMPILING]
    assert lines[2].startswith("epoch 1/2")
    assert len(lines) == 3


NOTEBOOK = """
import numpy as np
from strads.models import Lasso
X = np.random.default_rng(0).normal(size=(50, 10))
Lasso(0.01, verbose=True).fit(X, X[:, 0]).n_iter_
"""


def test_one_bar_in_a_notebook() -> None:
    kernel, client = start_new_kernel(kernel_name="python3")
    try:
        messages: list[dict[str, Any]] = []
        reply = client.execute_interactive(NOTEBOOK, timeout=120, output_hook=messages.append)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok"
    drawn = [each["content"] for each in messages if each["msg_type"] in ("display_data", "update_display_data")]
    assert [each["msg_type"] for each in messages].count("display_data") == 1
    assert len({each["transient"]["display_id"] for each in drawn}) == 1
    assert "looking at all columns" in drawn[0]["data"]["text/plain"]
    last = drawn[-1]["data"]
    assert "iteration" in last["text/plain"]
    assert "duality gap" in last["text/plain"]
    assert "<pre>" in last["text/html"]
    assert not any(each["msg_type"] == "stream" for each in messages)
