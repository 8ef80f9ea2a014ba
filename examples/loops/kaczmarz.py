"""Kaczmarz's method for linear equations, a row at a time (Strohmer and Vershynin, 2009); rows are CSR."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, columns, values, b, x):
    """Project x onto the solutions of equation k."""
    residual, norm = b[k], 0.0
    for p in range(offsets[k], offsets[k + 1]):
        residual -= values[p] * x[columns[p]]
        norm += values[p] * values[p]
    step = residual / norm
    for p in range(offsets[k], offsets[k + 1]):
        x[columns[p]] += step * values[p]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Equations in about 12 unknowns anywhere, as those of a tomography."""
    rng = np.random.default_rng(seed)
    n, unknowns = int(8_000_000 * scale), int(2_600_000 * scale)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(8, 17, n))])
    columns = rng.integers(0, unknowns, offsets[-1], "i4")
    values = rng.normal(0, 1, offsets[-1])
    b = np.add.reduceat(values * rng.normal(0, 1, unknowns)[columns], offsets[:-1])
    tables = (strads.dvector(table, copy=False) for table in (offsets, columns, values, b))
    return n, (*tables, strads.dvector.zeros(unknowns, "f8"))


def objective(offsets, columns, values, b, x) -> float:
    """Root mean squared residual."""
    products = np.add.reduceat(values.to_numpy() * x.to_numpy()[columns.to_numpy()], offsets.to_numpy()[:-1])
    return float(np.sqrt(np.mean((b.to_numpy() - products) ** 2)))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: residual {objective(*arguments):.6f}")
