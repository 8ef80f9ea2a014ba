"""Forward substitution with a sparse lower triangular matrix, as in an incomplete Cholesky preconditioner."""

from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, offsets, columns, values, diagonal, b, x):
    """One unknown, from those before it."""
    total = b[k]
    for p in range(offsets[k], offsets[k + 1]):
        total -= values[p] * x[columns[p]]
    x[k] = total / diagonal[k]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """The lower half of a grid's matrix with nine neighbours each, row by row of the grid."""
    rng = np.random.default_rng(seed)
    side = max(8, int(7000 * scale**0.5))
    n = side * side
    cells = np.arange(n)
    before = np.stack([cells - side - 1, cells - side, cells - side + 1, cells - 1], 1)
    beside = np.stack([cells % side > 0, cells >= 0, cells % side < side - 1, cells % side > 0], 1)
    there = (before >= 0) & beside
    offsets = np.concatenate([[0], np.cumsum(there.sum(1))])
    columns, values = before[there].astype("i4"), -rng.uniform(0.1, 0.24, offsets[-1]).astype("f4")
    tables = (
        strads.dvector(a, copy=False) for a in (offsets, columns, values, rng.uniform(1, 2, n), rng.normal(0, 1, n))
    )
    return n, (*tables, strads.dvector.zeros(n, "f8"))


def objective(offsets, columns, values, diagonal, b, x) -> float:
    """Largest residual."""
    x = x.to_numpy()
    row = np.repeat(np.arange(len(x)), np.diff(offsets.to_numpy()))
    products = np.bincount(row, values.to_numpy() * x[columns.to_numpy()], len(x)) + diagonal.to_numpy() * x
    return float(np.abs(b.to_numpy() - products).max())


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments, order="sequential"))
    print(f"largest residual: {objective(*arguments):.3g}")
