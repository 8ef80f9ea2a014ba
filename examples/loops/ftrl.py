"""Logistic regression by FTRL-proximal on sparse rows (McMahan et al., KDD 2013)."""

from math import exp, sqrt
from typing import Any

import numpy as np

import strads


def body(k, offsets, columns, values, labels, z, n, alpha, beta, l1, l2):
    """One row; the weights follow from z and n."""
    margin = 0.0
    for p in range(offsets[k], offsets[k + 1]):
        j = columns[p]
        if abs(z[j]) > l1:
            shrunk = z[j] - l1 if z[j] > 0 else z[j] + l1
            margin -= values[p] * shrunk / ((beta + sqrt(n[j])) / alpha + l2)
    error = 1.0 / (1.0 + exp(-margin)) - labels[k]
    for p in range(offsets[k], offsets[k + 1]):
        j = columns[p]
        g = error * values[p]
        w = 0.0
        if abs(z[j]) > l1:
            shrunk = z[j] - l1 if z[j] > 0 else z[j] + l1
            w = -shrunk / ((beta + sqrt(n[j])) / alpha + l2)
        z[j] += g - (sqrt(n[j] + g * g) - sqrt(n[j])) / alpha * w
        n[j] += g * g


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Clicks: 20 features a row, each as frequent as by Zipf's law; labels of a planted sparse model."""
    rng = np.random.default_rng(seed)
    rows, features, fields = int(2_500_000 * scale), int(500_000 * scale), 20
    offsets = np.arange(rows + 1) * fields
    columns = rng.permutation(features)[(features ** rng.random(offsets[-1])).astype(int) - 1].astype("i4")
    values = rng.uniform(0.5, 1.0, offsets[-1]).astype("f4")
    planted = rng.normal(0, 1, features) * (rng.random(features) < 0.3)
    margins = (values * planted[columns]).reshape(rows, fields).sum(1)
    labels = (rng.logistic(size=rows) < margins).astype("f4")
    tables = (strads.dvector(table, copy=False) for table in (offsets, columns, values, labels))
    z, n = strads.dvector.zeros(features), strads.dvector.zeros(features)
    return rows, (*tables, z, n, 0.1, 1.0, 0.5, 0.1)


def objective(offsets, columns, values, labels, z, n, alpha, beta, l1, l2) -> float:
    """Mean logistic loss."""
    z, n, labels = z.to_numpy(), n.to_numpy(), labels.to_numpy()
    w = -np.sign(z) * np.maximum(np.abs(z) - l1, 0) / ((beta + np.sqrt(n)) / alpha + l2)
    margins = np.add.reduceat(values.to_numpy() * w[columns.to_numpy()], offsets.to_numpy()[:-1])
    return float(np.mean(np.logaddexp(0, margins) - labels * margins))


if __name__ == "__main__":
    rows, arguments = make()
    for epoch in range(5):
        strads.async_for(rows, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
