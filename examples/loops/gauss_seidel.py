"""Poisson's equation on a grid by Gauss-Seidel sweeps in loop order."""

from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, u, f):
    """One inner cell."""
    width = u.shape[1] - 2
    i, j = k // width + 1, k % width + 1
    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A square with random sources, zero at its border."""
    side = max(8, int(9000 * scale**0.5))
    f = np.random.default_rng(seed).normal(0, 1, (side, side))
    return (side - 2) ** 2, (strads.dvector.zeros((side, side), "f8"), strads.dvector(f, copy=False))


def objective(u: strads.dvector, f: strads.dvector) -> float:
    """Root mean squared residual."""
    u, f = u.to_numpy(), f.to_numpy()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return float(np.sqrt(np.mean((around + f[1:-1, 1:-1] - 4 * u[1:-1, 1:-1]) ** 2)))


if __name__ == "__main__":
    n, arguments = make()
    for sweep in range(5):
        strads.async_for(n, body, *arguments, order="sequential")
        print(f"sweep {sweep + 1}: residual {objective(*arguments):.4f}")
