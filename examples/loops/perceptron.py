"""The multi-class perceptron on sparse rows (Crammer and Singer, JMLR 2003)."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, columns, values, labels, W):
    """One row: on a mistake the right class gains it, the wrong one loses it."""
    best, top = 0, -np.inf
    for c in range(len(W)):
        score = 0.0
        for p in range(offsets[k], offsets[k + 1]):
            score += values[p] * W[c, columns[p]]
        if score > top:
            best, top = c, score
    label = labels[k]
    if best != label:
        right, wrong = W[label], W[best]
        for p in range(offsets[k], offsets[k + 1]):
            right[columns[p]] += values[p]
            wrong[columns[p]] -= values[p]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Rows of about 30 words, as frequent as by Zipf's law, in 20 classes of planted weights."""
    rng = np.random.default_rng(seed)
    n, features, classes = int(500_000 * scale), 50_000, 20
    offsets = np.concatenate([[0], np.cumsum(rng.poisson(30, n) + 1)])
    columns = rng.permutation(features)[(features ** rng.random(offsets[-1])).astype(int) - 1].astype("i4")
    values = rng.uniform(0.5, 1.5, offsets[-1]).astype("f4")
    planted = rng.normal(0, 1, (classes, features)).astype("f4")
    scores = np.stack([np.add.reduceat(values * w[columns], offsets[:-1]) for w in planted])
    tables = (strads.dvector(table, copy=False) for table in (offsets, columns, values, scores.argmax(0)))
    return n, (*tables, strads.dvector.zeros((classes, features)))


def objective(offsets, columns, values, labels, W) -> float:
    """Share of wrong labels."""
    offsets, columns, values = (table.to_numpy() for table in (offsets, columns, values))
    scores = np.stack([np.add.reduceat(values * w[columns], offsets[:-1]) for w in W.to_numpy()])
    return float(np.mean(scores.argmax(0) != labels.to_numpy()))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: wrong {objective(*arguments):.4f}")
