"""A factorization machine on rows of a fixed number of fields (Rendle, ICDM 2010)."""

from math import exp
from typing import Any

import numpy as np

import strads


def body(k, fields, labels, w, V, rate, penalty):
    """One row."""
    row = fields[k]
    total = np.zeros(V.shape[1], V.dtype)
    margin = 0.0
    for i in range(len(row)):
        margin += w[row[i]]
        v = V[row[i]]
        for f in range(len(v)):
            total[f] += v[f]
            margin -= 0.5 * v[f] * v[f]
    for f in range(len(total)):
        margin += 0.5 * total[f] * total[f]
    step = rate * (labels[k] - 1.0 / (1.0 + exp(-margin)))
    for i in range(len(row)):
        w[row[i]] += step
        v = V[row[i]]
        for f in range(len(v)):
            v[f] += step * (total[f] - v[f]) - rate * penalty * v[f]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Clicks with 10 categorical fields of 10 to 100,000 values, each by a power law; planted factors."""
    rng = np.random.default_rng(seed)
    n, rank = int(3_000_000 * scale), 8
    sizes = np.maximum(2, np.geomspace(10, 100_000 * scale, 10).astype(int))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    fields = np.stack([s + (c * rng.random(n) ** 3).astype("i4") for s, c in zip(starts, sizes, strict=False)], 1)
    w, V = rng.normal(0, 0.3, starts[-1]), rng.normal(0, 0.15, (starts[-1], 4))
    margins = w[fields].sum(1)
    for f in range(4):
        x = V[fields, f]
        margins += 0.5 * (x.sum(1) ** 2 - (x**2).sum(1))
    labels = (rng.logistic(size=n) < margins).astype("f4")
    tables = (strads.dvector(fields, dtype="i4"), strads.dvector(labels), strads.dvector.zeros(starts[-1]))
    return n, (*tables, strads.dvector.normal((starts[-1], rank), std=0.05, seed=seed), 0.02, 1e-4)


def objective(fields, labels, w, V, rate, penalty) -> float:
    """Mean logistic loss of the first 300,000 rows."""
    fields, labels, w, V = (table.to_numpy() for table in (fields, labels, w, V))
    fields, labels = fields[:300_000], labels[:300_000]
    x = V[fields]
    margins = w[fields].sum(1) + 0.5 * (x.sum(1) ** 2 - (x**2).sum(1)).sum(1)
    return float(np.mean(np.logaddexp(0, margins) - labels * margins))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
