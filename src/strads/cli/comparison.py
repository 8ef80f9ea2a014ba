"""Comparison in a demo of a model that was trained twice: on all threads and nodes, and on other threads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cli.cluster_options import count_of
from strads.progress import format_rate, samples_per_second

History = Sequence[Mapping[str, Any]]


def threads_of(count: int) -> str:
    """Such as "2 threads"."""
    return count_of(count, "thread")


def throughput(history: History, unit: str) -> str:
    """Samples per second, for people."""
    return format_rate(samples_per_second(history), unit)


def sameness(first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]], pair: str, what: str) -> str:
    """Say whether two trainings gave bitwise equal results; tables of different shapes differ everywhere."""
    count = sum(table.size for table in first)
    different = sum(_different(a, b) for a, b in zip(first, second, strict=True))
    if different == 0:
        return f"yes: {pair} give {count:,} {what} equal bit for bit"
    return f"NO: {different:,} of {count:,} {what} differ between {pair}; please report this"


def _different(first: NDArray[Any], second: NDArray[Any]) -> int:
    if first.shape != second.shape or first.dtype != second.dtype:
        return first.size
    a, b = (np.ascontiguousarray(table).view(f"u{table.itemsize}") for table in (first, second))
    return int(np.count_nonzero(a != b))
