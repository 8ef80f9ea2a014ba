"""Seam carving: the path of least energy from the top of an image to its bottom (Avidan and Shamir, SIGGRAPH 2007)."""

from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, energy, least, came_from):
    """One row of pixels: each is reached from the best of the three above it."""
    columns = least.shape[1]
    for j in range(columns):
        best = j
        if k > 0:
            if j > 0 and least[k - 1, j - 1] < least[k - 1, best]:
                best = j - 1
            if j + 1 < columns and least[k - 1, j + 1] < least[k - 1, best]:
                best = j + 1
            least[k, j] = energy[k, j] + least[k - 1, best]
        else:
            least[k, j] = energy[k, j]
        came_from[k, j] = best


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """An image of noise."""
    rows, columns = int(20_000 * scale), 4000
    energy = np.random.default_rng(seed).random((rows, columns), "f4")
    tables = strads.dvector.zeros((rows, columns), "f4"), strads.dvector.zeros((rows, columns), "i4")
    return rows, (strads.dvector(energy, copy=False), *tables)


def objective(energy: strads.dvector, least: strads.dvector, came_from: strads.dvector) -> float:
    """Mean energy of the pixels of the best path."""
    return float(least[-1].min() / len(energy))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments, order="sequential"))
    print(f"energy of a pixel of the seam: {objective(*arguments):.4f}")
