"""Kaczmarz's method for linear equations, a row at a time (Strohmer and Vershynin, 2009); rows are ragged dvectors."""

from typing import Any

import numpy as np

import strads


def body(k, columns, values, b, x):
    """Project x onto the solutions of equation k."""
    c, a = columns[k], values[k]
    residual, norm = b[k], 0.0
    for j in range(len(c)):
        residual -= a[j] * x[c[j]]
        norm += a[j] * a[j]
    step = residual / norm
    for j in range(len(c)):
        x[c[j]] += step * a[j]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Equations in about 12 unknowns near each other, as those of a finite-element mesh, and a few anywhere."""
    rng = np.random.default_rng(seed)
    n, unknowns = int(3_300_000 * scale), int(1_100_000 * scale)
    lengths = rng.integers(8, 17, n)
    owner = np.repeat(np.arange(n), lengths)
    near = owner * unknowns // n + rng.integers(-50, 51, len(owner))
    c = np.where(rng.random(len(owner)) < 0.05, rng.integers(0, unknowns, len(owner)), near % unknowns).astype("i4")
    a = rng.normal(0, 1, len(owner)).astype("f8")
    b = np.bincount(owner, a * rng.normal(0, 1, unknowns)[c], n)
    cuts = np.cumsum(lengths)[:-1]
    tables = (strads.dvector(rows) for rows in (np.split(c, cuts), np.split(a, cuts), b))
    return n, (*tables, strads.dvector.zeros(unknowns, "f8"))


def objective(columns, values, b, x) -> float:
    """Root mean squared residual."""
    c, a = columns.storage, values.storage
    owner = np.repeat(np.arange(len(b)), np.diff(c.offsets))
    products = np.bincount(owner, a.values * x.to_numpy()[c.values], len(b))
    return float(np.sqrt(np.mean((b.to_numpy() - products) ** 2)))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: residual {objective(*arguments):.6f}")
