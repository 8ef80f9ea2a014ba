"""The edit distance of two texts, one cell of the table at a time (Wagner and Fischer, JACM 1974)."""

from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, one, other, distance):
    """The distance of the first i + 1 and the first j + 1 letters."""
    i, j = k // len(other), k % len(other)
    best = distance[i, j] + (one[i] != other[j])
    best = min(best, distance[i, j + 1] + 1)
    best = min(best, distance[i + 1, j] + 1)
    distance[i + 1, j + 1] = best


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Two texts of four letters, the other one with a third of its letters changed."""
    rng = np.random.default_rng(seed)
    n = max(10, int(9500 * scale**0.5))
    one = rng.integers(0, 4, n, "i1")
    other = np.where(rng.random(n) < 0.3, rng.integers(0, 4, n, "i1"), one)
    distance = np.zeros((n + 1, n + 1), "i4")
    distance[0], distance[:, 0] = np.arange(n + 1), np.arange(n + 1)
    return n * n, (strads.dvector(one), strads.dvector(other), strads.dvector(distance, copy=False))


def objective(one: Any, other: Any, distance: strads.dvector) -> float:
    """The distance of the whole texts."""
    return float(distance[-1][-1])


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments, order="sequential"))
    print(f"distance: {objective(*arguments):.0f}")
