"""Skip-gram pairs with negatives that are drawn anew before every epoch (Mikolov et al., NIPS 2013)."""

from math import exp
from typing import Any

import numpy as np

import strads


def body(k, pairs, negatives, W, C, rate):
    """One pair of centre and context."""
    pair = pairs[k]
    w, c = W[pair[0]], C[pair[1]]
    score = 0.0
    for f in range(len(w)):
        score += w[f] * c[f]
    step = rate - rate / (1.0 + exp(-score))
    for f in range(len(w)):
        wf = w[f]
        w[f] += step * c[f]
        c[f] += step * wf
    for n in range(negatives.shape[1]):
        c = C[negatives[k, n]]
        score = 0.0
        for f in range(len(w)):
            score += w[f] * c[f]
        step = -rate / (1.0 + exp(-score))
        for f in range(len(w)):
            wf = w[f]
            w[f] += step * c[f]
            c[f] += step * wf


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Pairs of one of 100 topics each; words are as frequent as by Zipf's law."""
    rng = np.random.default_rng(seed)
    n, words, rank = int(2_000_000 * scale), int(50_000 * scale), 64
    order = (words ** rng.random((n, 2))).astype(int) - 1
    pairs = (order // 100 * 100 + rng.integers(0, 100, (n, 1))) % words
    W = strads.dvector.uniform((words, rank), -0.5 / rank, 0.5 / rank, seed=seed)
    negatives = strads.dvector.zeros((n, 5), "i4")
    arguments = (strads.dvector(pairs, dtype="i4"), negatives, W, strads.dvector.zeros((words, rank)), 0.025)
    next_epoch(0, *arguments)
    return n, arguments


def next_epoch(epoch: int, pairs: Any, negatives: strads.dvector, W: strads.dvector, *_: Any) -> None:
    """Draw other negatives."""
    negatives[:] = (len(W) ** np.random.default_rng(1000 + epoch).random(negatives.shape)).astype("i4") - 1


def objective(pairs, negatives, W, C, rate) -> float:
    """Mean loss of the first 200,000 pairs."""
    pairs, negatives, W, C = pairs.to_numpy()[:200_000], negatives.to_numpy()[:200_000], W.to_numpy(), C.to_numpy()
    w = W[pairs[:, 0]]
    loss = np.logaddexp(0, -np.einsum("nf,nf->n", w, C[pairs[:, 1]]))
    for drawn in negatives.T:
        loss = loss + np.logaddexp(0, np.einsum("nf,nf->n", w, C[drawn]))
    return float(loss.mean())


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        next_epoch(epoch, *arguments)
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
