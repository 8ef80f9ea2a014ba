"""Figures of a training, formatted for the user: rates, measures, times."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def samples_per_second(history: Sequence[Mapping[str, Any]]) -> float:
    """Throughput over the epochs after the first, which includes compilation; NaN for an empty history.

    Parameters
    ----------
    history : sequence of dict
        One record per epoch with `seconds` and `samples`, both counted from the start. For a single epoch the
        rate includes compilation.
    """
    if not history:
        return math.nan
    last = history[-1]
    start = history[0] if len(history) > 1 else {"samples": 0, "seconds": 0.0}
    seconds = last["seconds"] - start["seconds"]
    return (last["samples"] - start["samples"]) / seconds if seconds > 0 else math.nan


def format_rate(rate: float, unit: str) -> str:
    """Format a throughput, such as "52.1 M ratings/s"; an unknown one is a dash."""
    if not math.isfinite(rate):
        return f"– {unit}/s"
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= size:
            value = rate / size
            return f"{value:.{1 if value < 100 else 0}f}{letter} {unit}/s"
    return f"{rate:.0f} {unit}/s"


def format_figure(value: float) -> str:
    """Format a measure, such as "0.9042", "1,203" or "3.2e-07"."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"


def format_duration(seconds: float) -> str:
    """Format a time, such as "0:07", "12:30", "3:05:00"."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
