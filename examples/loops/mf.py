"""Matrix factorization by stochastic gradient descent (Koren, Bell and Volinsky, IEEE Computer 2009)."""

from typing import Any

import numpy as np

import strads


def body(k, ratings, W, H, rate, penalty, loss):
    """One rating."""
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += rate * (err * h[f] - penalty * wf)
        h[f] += rate * (err * wf - penalty * h[f])
    loss.add(err * err)


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Ratings with planted factors; users and items are popular by a power law."""
    rng = np.random.default_rng(seed)
    n, users, items, rank = int(40_000_000 * scale), int(70_000 * scale), int(20_000 * scale), 32
    ratings = np.empty(n, [("user", "i4"), ("item", "i4"), ("score", "f4")])
    ratings["user"] = rng.permutation(users)[(users * rng.random(n) ** 2).astype(int)]
    ratings["item"] = rng.permutation(items)[(items * rng.random(n) ** 3).astype(int)]
    U, V = rng.normal(0, 0.7, (users, 4)).astype("f4"), rng.normal(0, 0.7, (items, 4)).astype("f4")
    ratings["score"] = rng.normal(0, 0.3, n)
    for f in range(4):
        ratings["score"] += U[ratings["user"], f] * V[ratings["item"], f]
    W = strads.dvector.normal((users, rank), std=0.1, seed=seed)
    H = strads.dvector.normal((items, rank), std=0.1, seed=seed + 1)
    return n, (strads.dvector(ratings, copy=False), W, H, 0.03, 0.01, strads.accumulator(0.0))


def objective(ratings: strads.dvector, W: strads.dvector, H: strads.dvector, *_: Any) -> float:
    """Root mean squared error on the first million ratings."""
    r = ratings.to_numpy()[:1_000_000]
    products = np.einsum("nf,nf->n", W.to_numpy()[r["user"]], H.to_numpy()[r["item"]])
    return float(np.sqrt(np.mean((r["score"] - products) ** 2)))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        arguments[-1].reset()
        strads.async_for(n, body, *arguments)
        print(
            f"epoch {epoch + 1}: training RMSE {(arguments[-1].value / n) ** 0.5:.4f}, RMSE {objective(*arguments):.4f}"
        )
