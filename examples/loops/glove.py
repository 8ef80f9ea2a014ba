"""GloVe: vectors of words from how often they occur together, with AdaGrad (Pennington et al., EMNLP 2014)."""

from math import log, sqrt
from typing import Any

import numpy as np

import strads


def body(k, cells, W, C, b, d, W2, C2, b2, d2, rate):
    """One pair of words."""
    x = cells[k]
    w, c, w2, c2 = W[x.word], C[x.context], W2[x.word], C2[x.context]
    err = b[x.word] + d[x.context] - log(x.count)
    for f in range(len(w)):
        err += w[f] * c[f]
    err *= min(1.0, (x.count / 100.0) ** 0.75)
    for f in range(len(w)):
        gw, gc = err * c[f], err * w[f]
        w[f] -= rate * gw / sqrt(w2[f])
        c[f] -= rate * gc / sqrt(c2[f])
        w2[f] += gw * gw
        c2[f] += gc * gc
    b[x.word] -= rate * err / sqrt(b2[x.word])
    d[x.context] -= rate * err / sqrt(d2[x.context])
    b2[x.word] += err * err
    d2[x.context] += err * err


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Pairs of words that are as frequent as by Zipf's law, in random order; planted vectors."""
    rng = np.random.default_rng(seed)
    n, words, rank = int(3_000_000 * scale), int(40_000 * scale), 32
    cells = np.empty(n, [("word", "i4"), ("context", "i4"), ("count", "f4")])
    names, planted = rng.permutation(words), rng.normal(0, 0.7, (words, 4))
    one, two = (words ** rng.random((2, n))).astype(int) - 1
    cells["word"], cells["context"] = names[one], names[two]
    logarithm = 9 - 0.5 * np.log(one + 1.0) - 0.5 * np.log(two + 1.0)
    cells["count"] = np.exp(logarithm + np.einsum("nf,nf->n", planted[one], planted[two]) * 0.5)
    vectors = [strads.dvector.uniform((words, rank), -0.5 / rank, 0.5 / rank, seed=s) for s in range(2)]
    biases = [strads.dvector.zeros(words) for _ in range(2)]
    sums = [strads.dvector.full(shape, 1.0, "f4") for shape in ((words, rank), (words, rank), words, words)]
    return n, (strads.dvector(cells, copy=False), *vectors, *biases, *sums, 0.05)


def objective(cells, W, C, b, d, *_: Any) -> float:
    """Mean weighted squared error of the first million pairs."""
    x = cells.to_numpy()[:1_000_000]
    W, C, b, d = (table.to_numpy() for table in (W, C, b, d))
    err = np.einsum("nf,nf->n", W[x["word"]], C[x["context"]]) + b[x["word"]] + d[x["context"]] - np.log(x["count"])
    return float(np.mean(np.minimum(1, (x["count"] / 100) ** 0.75) * err**2))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
