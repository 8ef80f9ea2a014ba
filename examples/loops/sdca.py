"""A linear SVM by stochastic dual coordinate ascent on sparse rows (Hsieh et al., ICML 2008)."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, columns, values, labels, squares, alpha, w, C):
    """One row's dual variable."""
    margin = 0.0
    for p in range(offsets[k], offsets[k + 1]):
        margin += values[p] * w[columns[p]]
    gradient = labels[k] * margin - 1.0
    old = alpha[k]
    new = min(max(old - gradient / squares[k], 0.0), C)
    if new != old:
        alpha[k] = new
        for p in range(offsets[k], offsets[k + 1]):
            w[columns[p]] += (new - old) * labels[k] * values[p]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Rows of about 40 words, each word as frequent as by Zipf's law; labels of a planted model."""
    rng = np.random.default_rng(seed)
    n, features = int(3_500_000 * scale), int(300_000 * scale)
    offsets = np.concatenate([[0], np.cumsum(rng.poisson(40, n) + 1)])
    columns = rng.permutation(features)[(features ** rng.random(offsets[-1])).astype(int) - 1].astype("i4")
    values = rng.uniform(0.1, 0.3, offsets[-1]).astype("f4")
    margins = np.add.reduceat(values * rng.normal(0, 3, features)[columns], offsets[:-1])
    labels = np.where(rng.logistic(size=n) < margins, 1.0, -1.0).astype("f4")
    squares = np.add.reduceat(values**2, offsets[:-1])
    tables = (strads.dvector(table, copy=False) for table in (offsets, columns, values, labels, squares))
    return n, (*tables, strads.dvector.zeros(n), strads.dvector.zeros(features), 0.1)


def objective(offsets, columns, values, labels, squares, alpha, w, C) -> float:
    """Primal minus dual objective, for each row."""
    w, alpha = w.to_numpy().astype("f8"), alpha.to_numpy()
    margins = labels.to_numpy() * np.add.reduceat(values.to_numpy() * w[columns.to_numpy()], offsets.to_numpy()[:-1])
    return float((w @ w + C * np.maximum(0, 1 - margins).sum() - alpha.sum(dtype="f8")) / len(margins))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: duality gap {objective(*arguments):.6f}")
