"""The Potts model on a torus: a Metropolis sweep over all sites (Wu, Rev. Mod. Phys. 1982)."""

from math import exp
from typing import Any

import numpy as np

import strads

STATES = 8


def body(k, spins, proposals, uniform, width, coupling):
    """One site: moves to the proposed state if energy or chance allow it."""
    n = len(spins)
    row, column = k // width, k % width
    left, right = spins[row * width + (column - 1) % width], spins[row * width + (column + 1) % width]
    up, down = spins[(k - width) % n], spins[(k + width) % n]
    old, new = spins[k], proposals[k]
    loss = (left == old) + (right == old) + (up == old) + (down == old)
    gain = (left == new) + (right == new) + (up == new) + (down == new)
    if gain >= loss or uniform[k] < exp(coupling * (gain - loss)):
        spins[k] = new


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A grid of random states."""
    rng = np.random.default_rng(seed)
    width = max(8, int(3700 * scale**0.5))
    spins = strads.dvector(rng.integers(0, STATES, width * width, "i1"), copy=False)
    proposals = strads.dvector.zeros(width * width, "i1")
    uniform = strads.dvector.zeros(width * width)
    arguments = (spins, proposals, uniform, width, 1.2)
    next_epoch(0, *arguments)
    return width * width, arguments


def next_epoch(epoch: int, spins: Any, proposals: strads.dvector, uniform: strads.dvector, *_: Any) -> None:
    """Draw anew."""
    rng = np.random.default_rng(1000 + epoch)
    proposals[:] = rng.integers(0, STATES, len(proposals), "i1")
    uniform[:] = rng.random(len(uniform), "f4")


def objective(spins: strads.dvector, proposals: Any, uniform: Any, width: int, coupling: float) -> float:
    """Energy of a site."""
    grid = spins.to_numpy().reshape(-1, width)
    return -float(np.mean(grid == np.roll(grid, 1, 0)) + np.mean(grid == np.roll(grid, 1, 1)))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        next_epoch(epoch, *arguments)
        strads.async_for(n, body, *arguments)
        print(f"sweep {epoch + 1}: energy {objective(*arguments):.4f}")
