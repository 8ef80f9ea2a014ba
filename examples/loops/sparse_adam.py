"""Vectors of items by Adam, lazily: only the rows that a sample touches (Kingma and Ba, ICLR 2015)."""

from math import exp, sqrt
from typing import Any

import numpy as np

import strads


def body(k, samples, users, E, M, V, steps, rate, beta1, beta2):
    """One sample: whether a user, whose vector is given, took an item."""
    s = samples[k]
    u, e, m, v = users[s.user], E[s.item], M[s.item], V[s.item]
    score = 0.0
    for f in range(len(e)):
        score += u[f] * e[f]
    err = 1.0 / (1.0 + exp(-score)) - s.label
    steps[s.item] += 1.0
    unbiased1 = 1.0 - beta1 ** steps[s.item]
    unbiased2 = 1.0 - beta2 ** steps[s.item]
    for f in range(len(e)):
        g = err * u[f]
        m[f] = beta1 * m[f] + (1.0 - beta1) * g
        v[f] = beta2 * v[f] + (1.0 - beta2) * g * g
        e[f] -= rate * (m[f] / unbiased1) / (sqrt(v[f] / unbiased2) + 1e-8)


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Items popular by a power law; labels of planted vectors."""
    rng = np.random.default_rng(seed)
    n, users, items, rank = int(2_000_000 * scale), int(50_000 * scale), int(100_000 * scale), 32
    given = rng.normal(0, 1, (users, rank)).astype("f4")
    planted = rng.normal(0, 0.3, (items, rank)).astype("f4")
    samples = np.empty(n, [("user", "i4"), ("item", "i4"), ("label", "f4")])
    samples["user"] = rng.integers(0, users, n)
    samples["item"] = rng.permutation(items)[(items * rng.random(n) ** 3).astype(int)]
    margins = np.zeros(n, "f4")
    for f in range(rank):
        margins += given[samples["user"], f] * planted[samples["item"], f]
    samples["label"] = rng.logistic(size=n) < margins
    moments = [strads.dvector.zeros((items, rank)) for _ in range(3)]
    return n, (strads.dvector(samples), strads.dvector(given), *moments, strads.dvector.zeros(items), 0.002, 0.9, 0.999)


def objective(samples, users, E, *_: Any) -> float:
    """Mean logistic loss of the first 500,000 samples."""
    s = samples.to_numpy()[:500_000]
    margins = np.einsum("nf,nf->n", users.to_numpy()[s["user"]], E.to_numpy()[s["item"]])
    return float(np.mean(np.logaddexp(0, margins) - s["label"] * margins))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
