"""The moving average of a series."""

from typing import Any

import numpy as np

import strads


def body(k, series, smooth, half):
    """The mean of the values around one."""
    first, end = max(0, k - half), min(len(series), k + half + 1)
    total = 0.0
    for j in range(first, end):
        total += series[j]
    smooth[k] = total / (end - first)


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A random walk."""
    n = int(20_000_000 * scale)
    series = np.random.default_rng(seed).normal(0, 1, n).cumsum()
    return n, (strads.dvector(series, copy=False), strads.dvector.zeros(n, "f8"), 24)


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
