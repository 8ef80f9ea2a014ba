"""SVD++: a user is also what they have rated; a task is a user (Koren, KDD 2008)."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, items, scores, user_bias, item_bias, P, Q, Y, rate, penalty, mean):
    """One user: the factors of the rated items are added up before, and changed after the ratings."""
    first, end = offsets[k], offsets[k + 1]
    scale = (end - first) ** -0.5
    p = P[k]
    implicit, change = np.zeros_like(p), np.zeros_like(p)
    for n in range(first, end):
        y = Y[items[n]]
        for f in range(len(p)):
            implicit[f] += scale * y[f]
    for n in range(first, end):
        i = items[n]
        q = Q[i]
        err = scores[n] - mean - user_bias[k] - item_bias[i]
        for f in range(len(p)):
            err -= q[f] * (p[f] + implicit[f])
        user_bias[k] += rate * (err - penalty * user_bias[k])
        item_bias[i] += rate * (err - penalty * item_bias[i])
        for f in range(len(p)):
            qf = q[f]
            change[f] += scale * err * qf
            q[f] += rate * (err * (p[f] + implicit[f]) - penalty * qf)
            p[f] += rate * (err * qf - penalty * p[f])
    for n in range(first, end):
        y = Y[items[n]]
        for f in range(len(p)):
            y[f] += rate * (change[f] / (end - first) - penalty * y[f])


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Ratings with planted factors; users rate about 100 items, items are popular by a power law."""
    rng = np.random.default_rng(seed)
    users, items, rank = int(140_000 * scale), int(20_000 * scale), 32
    offsets = np.concatenate([[0], np.cumsum(rng.geometric(0.01, users))])
    n = offsets[-1]
    item = rng.permutation(items)[(items * rng.random(n) ** 3).astype(int)].astype("i4")
    user = np.repeat(np.arange(users), np.diff(offsets))
    U, V = rng.normal(0, 0.7, (users, 4)).astype("f4"), rng.normal(0, 0.7, (items, 4)).astype("f4")
    scores = (3.5 + rng.normal(0, 0.3, items)[item] + rng.normal(0, 0.3, n)).astype("f4")
    for f in range(4):
        scores += U[user, f] * V[item, f]
    data = (strads.dvector(offsets), strads.dvector(item), strads.dvector(scores))
    biases = (strads.dvector.zeros(users), strads.dvector.zeros(items))
    factors = (strads.dvector.normal((m, rank), std=0.1, seed=s) for s, m in enumerate((users, items, items)))
    return users, (*data, *biases, *factors, 0.02, 0.02, 3.5)


def objective(offsets, items, scores, user_bias, item_bias, P, Q, Y, rate, penalty, mean) -> float:
    """Root mean squared error of the first 2,000 users."""
    offsets, items, scores = offsets.to_numpy()[:2001], items.to_numpy(), scores.to_numpy()
    n, lengths = offsets[-1], np.diff(offsets)[:, None]
    items, scores, user = items[:n], scores[:n], np.repeat(np.arange(len(lengths)), lengths[:, 0])
    implicit = np.add.reduceat(Y.to_numpy()[items], offsets[:-1]) / np.sqrt(lengths)
    found = mean + user_bias.to_numpy()[user] + item_bias.to_numpy()[items]
    found = found + np.einsum("nf,nf->n", Q.to_numpy()[items], (P.to_numpy()[: len(lengths)] + implicit)[user])
    return float(np.sqrt(np.mean((scores - found) ** 2)))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: RMSE {objective(*arguments):.4f}")
