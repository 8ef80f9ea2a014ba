"""Matrix factorization by stochastic gradient descent, a user with all ratings at a time."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, items, scores, W, H, rate, penalty):
    """One user."""
    w = W[k]
    for p in range(offsets[k], offsets[k + 1]):
        h = H[items[p]]
        err = scores[p]
        for f in range(len(w)):
            err -= w[f] * h[f]
        for f in range(len(w)):
            wf = w[f]
            w[f] += rate * (err * h[f] - penalty * wf)
            h[f] += rate * (err * wf - penalty * h[f])


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Ratings with planted factors; users rate about 150 items, items are popular by a power law."""
    rng = np.random.default_rng(seed)
    users, items, rank = int(180_000 * scale), int(25_000 * scale), 32
    offsets = np.concatenate([[0], np.cumsum(rng.geometric(1 / 150, users))])
    n = offsets[-1]
    item = rng.permutation(items)[(items * rng.random(n) ** 3).astype(int)].astype("i4")
    user = np.repeat(np.arange(users), np.diff(offsets))
    U, V = rng.normal(0, 0.7, (users, 4)).astype("f4"), rng.normal(0, 0.7, (items, 4)).astype("f4")
    scores = rng.normal(0, 0.3, n).astype("f4")
    for f in range(4):
        scores += U[user, f] * V[item, f]
    W = strads.dvector.normal((users, rank), std=0.1, seed=seed)
    H = strads.dvector.normal((items, rank), std=0.1, seed=seed + 1)
    return users, (strads.dvector(offsets), strads.dvector(item), strads.dvector(scores), W, H, 0.03, 0.01)


def objective(offsets, items, scores, W, H, rate, penalty) -> float:
    """Root mean squared error on the first million ratings."""
    user = np.repeat(np.arange(len(W)), np.diff(offsets.to_numpy()))[:1_000_000]
    products = np.einsum("nf,nf->n", W.to_numpy()[user], H.to_numpy()[items.to_numpy()[:1_000_000]])
    return float(np.sqrt(np.mean((scores.to_numpy()[:1_000_000] - products) ** 2)))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: RMSE {objective(*arguments):.4f}")
