"""Bayesian personalized ranking against items drawn near, from the block at hand (Lerer et al., SysML 2019)."""

from math import exp
from typing import Any

import numpy as np

import strads


def body(k, likes, W, H, rng, rate, penalty):
    """One item that a user has taken, and another one."""
    like = likes[k]
    other = rng.near(H)
    if other != like.taken:
        w, i, j = W[like.user], H[like.taken], H[other]
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
    """Users take items of one of 20 groups, which are popular by a power law."""
    rng = np.random.default_rng(seed)
    n, users, items, rank = int(9_000_000 * scale), int(80_000 * scale), int(20_000 * scale), 32
    likes = np.empty(n, [("user", "i4"), ("taken", "i4")])
    likes["user"] = rng.permutation(users)[(users * rng.random(n) ** 2).astype(int)]
    popular = (items * rng.random(n) ** 3).astype(int)
    names = rng.permutation(items)
    likes["taken"] = names[(popular // 20 * 20 + likes["user"] % 20) % items]
    W = strads.dvector.normal((users, rank), std=0.1, seed=seed)
    H = strads.dvector.normal((items, rank), std=0.1, seed=seed + 1)
    return n, (strads.dvector(likes, copy=False), W, H, strads.random(seed), 0.05, 0.002)


def objective(likes, W, H, rng, rate, penalty) -> float:
    """Mean loss of the first million likes against items drawn from all."""
    t, H = likes.to_numpy()[:1_000_000], H.to_numpy()
    others = np.random.default_rng(0).integers(0, len(H), len(t))
    return float(np.logaddexp(0, -(W.to_numpy()[t["user"]] * (H[t["taken"]] - H[others])).sum(1)).mean())


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
