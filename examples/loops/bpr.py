"""Bayesian personalized ranking: an item the user has taken against one they have not (Rendle et al., UAI 2009)."""

from math import exp
from typing import Any

import numpy as np

import strads


def body(k, triples, W, H, rate, penalty):
    """One triple of user, taken item, other item."""
    t = triples[k]
    w, i, j = W[t.user], H[t.taken], H[t.other]
    score = 0.0
    for f in range(len(w)):
        score += w[f] * (i[f] - j[f])
    step = 1.0 / (1.0 + exp(score))
    for f in range(len(w)):
        wf, difference = w[f], i[f] - j[f]
        w[f] += rate * (step * difference - penalty * wf)
        i[f] += rate * (step * wf - penalty * i[f])
        j[f] -= rate * (step * wf + penalty * j[f])


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Users take items of one of 20 groups, which are popular by a power law; other items are any."""
    rng = np.random.default_rng(seed)
    n, users, items, rank = int(18_000_000 * scale), int(80_000 * scale), int(20_000 * scale), 32
    triples = np.empty(n, [("user", "i4"), ("taken", "i4"), ("other", "i4")])
    triples["user"] = rng.permutation(users)[(users * rng.random(n) ** 2).astype(int)]
    popular = (items * rng.random(n) ** 3).astype(int)
    names = rng.permutation(items)
    triples["taken"] = names[(popular // 20 * 20 + triples["user"] % 20) % items]
    triples["other"] = rng.integers(0, items, n)
    W = strads.dvector.normal((users, rank), std=0.1, seed=seed)
    H = strads.dvector.normal((items, rank), std=0.1, seed=seed + 1)
    return n, (strads.dvector(triples, copy=False), W, H, 0.05, 0.002)


def objective(triples, W, H, rate, penalty) -> float:
    """Mean loss of the first million triples."""
    t, H = triples.to_numpy()[:1_000_000], H.to_numpy()
    return float(np.logaddexp(0, -(W.to_numpy()[t["user"]] * (H[t["taken"]] - H[t["other"]])).sum(1)).mean())


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
