"""Logistic regression by stochastic gradient descent on sparse rows (Bottou, COMPSTAT 2010)."""

from math import exp
from typing import Any

import numpy as np

import strads


def body(k, offsets, columns, values, labels, w, rate):
    """One row."""
    margin = 0.0
    for p in range(offsets[k], offsets[k + 1]):
        margin += values[p] * w[columns[p]]
    step = rate * (labels[k] - 1.0 / (1.0 + exp(-margin)))
    for p in range(offsets[k], offsets[k + 1]):
        w[columns[p]] += step * values[p]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Rows of about 40 words, each word as frequent as by Zipf's law; labels of a planted model."""
    rng = np.random.default_rng(seed)
    n, features = int(3_600_000 * scale), int(600_000 * scale)
    offsets = np.concatenate([[0], np.cumsum(rng.poisson(40, n))])
    columns = rng.permutation(features)[(features ** rng.random(offsets[-1])).astype(int) - 1].astype("i4")
    values = rng.uniform(0.1, 0.3, offsets[-1]).astype("f4")
    sums = np.concatenate([[0], np.cumsum(values * rng.normal(0, 3, features)[columns])])
    labels = (rng.logistic(size=n) < sums[offsets[1:]] - sums[offsets[:-1]]).astype("f4")
    tables = (strads.dvector(table, copy=False) for table in (offsets, columns, values, labels))
    return n, (*tables, strads.dvector.zeros(features), 0.1)


def objective(offsets, columns, values, labels, w, rate) -> float:
    """Mean logistic loss."""
    offsets, columns, values, labels, w = (t.to_numpy() for t in (offsets, columns, values, labels, w))
    sums = np.concatenate([[0], np.cumsum(values * w[columns], dtype="f8")])
    margins = sums[offsets[1:]] - sums[offsets[:-1]]
    return float(np.mean(np.logaddexp(0, margins) - labels * margins))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
