"""Skip-gram with negative sampling, a sentence at a time (Mikolov et al., NIPS 2013)."""

from math import exp
from typing import Any

import numpy as np

import strads


def body(k, offsets, words, negatives, W, C, window, rate):
    """One sentence: each word predicts those around it, against the negatives of its place."""
    first, end = offsets[k], offsets[k + 1]
    for p in range(first, end):
        w = W[words[p]]
        for q in range(max(first, p - window), min(end, p + window + 1)):
            if q == p:
                continue
            for n in range(negatives.shape[1] + 1):
                target = words[q] if n == 0 else negatives[p, n - 1]
                c = C[target]
                score = 0.0
                for f in range(len(w)):
                    score += w[f] * c[f]
                step = -rate / (1.0 + exp(-score))
                if n == 0:
                    step += rate
                for f in range(len(w)):
                    wf = w[f]
                    w[f] += step * c[f]
                    c[f] += step * wf


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Sentences of about 15 words of one of 50 topics each; words are as frequent as by Zipf's law."""
    rng = np.random.default_rng(seed)
    sentences, vocabulary, rank, drawn = int(28_000 * scale), int(30_000 * scale), 64, 5
    offsets = np.concatenate([[0], np.cumsum(rng.integers(5, 26, sentences))])
    n = offsets[-1]
    order = (vocabulary ** rng.random(n)).astype(int) - 1
    topic = np.repeat(rng.integers(0, 50, sentences), np.diff(offsets))
    names = rng.permutation(vocabulary).astype("i4")
    words = names[np.where(rng.random(n) < 0.5, order, order // 50 * 50 + topic) % vocabulary]
    negatives = names[(vocabulary ** rng.random((n, drawn))).astype(int) - 1]
    W = strads.dvector.uniform((vocabulary, rank), -0.5 / rank, 0.5 / rank, seed=seed)
    C = strads.dvector.zeros((vocabulary, rank))
    return sentences, (*map(strads.dvector, (offsets, words, negatives)), W, C, 3, 0.025)


def objective(offsets, words, negatives, W, C, window, rate) -> float:
    """Mean loss of each word with the next, against the negatives of its place."""
    words, negatives, W, C = (table.to_numpy() for table in (words, negatives, W, C))
    w = W[words[:-1]]
    loss = np.logaddexp(0, -np.einsum("nf,nf->n", w, C[words[1:]]))
    for drawn in negatives[:-1].T:
        loss = loss + np.logaddexp(0, np.einsum("nf,nf->n", w, C[drawn]))
    return float(loss.mean())


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
