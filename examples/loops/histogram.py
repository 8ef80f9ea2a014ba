"""A histogram of numbers."""

from typing import Any

import numpy as np

import strads


def body(k, values, counts):
    """One number from [0, 1)."""
    counts[int(values[k] * len(counts))] += 1


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Squares of uniform numbers, 1,000 bins."""
    values = np.random.default_rng(seed).random(int(600_000_000 * scale), np.float32) ** 2
    return len(values), (strads.dvector(values, copy=False), strads.dvector.zeros(1000, "i8"))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"fullest bin: {arguments[1].to_numpy().argmax()}")
