"""Models that have one seed, fitted to small data that are drawn anew in each process, and their SHA-256."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from loading import load
from numpy.typing import NDArray

from strads.models import (
    BayesianPersonalizedRanking,
    LatentDirichletAllocation,
    MatrixFactorization,
    MultinomialLogisticRegression,
    TransE,
    Word2Vec,
)

_EXAMPLES = Path(__file__).parents[2] / "examples"


def _pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Users and items, of which some are frequent."""
    rng = np.random.default_rng(0)
    return (900 * rng.random(count) ** 2).astype(np.int64), (500 * rng.random(count) ** 2).astype(np.int64)


def _texts() -> list[str]:
    rng = np.random.default_rng(1)
    return [" ".join(f"w{word}" for word in (800 * rng.random(60) ** 3).astype(int)) for _ in range(400)]


def _mf() -> Iterable[Any]:
    users, items = _pairs(30_000)
    ratings = np.random.default_rng(2).normal(3.0, 1.0, len(users))
    model = MatrixFactorization(n_components=16, max_iter=4, random_state=7).fit((users, items), ratings)
    return [model.digest()]


def _lda() -> Iterable[Any]:
    return [LatentDirichletAllocation(n_components=20, max_iter=5, random_state=7).fit(_texts()).digest()]


def _word2vec() -> Iterable[Any]:
    found = [Word2Vec(vector_size=24, min_count=2, epochs=3, sg=sg, random_state=7).fit(_texts()) for sg in (0, 1)]
    return [model.digest() for model in found]


def _transe() -> Iterable[Any]:
    heads, tails = _pairs(20_000)
    triples = np.stack([heads, np.random.default_rng(3).integers(0, 12, len(heads)), tails], axis=1)
    model = TransE(24, max_iter=5, random_state=7).fit(triples)
    return [model.entity_vectors_, model.relation_vectors_]


def _mlr() -> Iterable[Any]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 150)).astype(np.float32)  # several blocks of rows, also of the sparse matrix
    y = (X @ rng.normal(size=(150, 10)) + rng.gumbel(size=(20_000, 10))).argmax(1)
    sparse = scipy.sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    for penalty, data, labels in (("l2", X, y), ("l2", sparse, y), ("l1", X[:1_500], y[:1_500])):
        model = MultinomialLogisticRegression(penalty, max_iter=8).fit(data, labels)
        yield from (model.coef_, model.intercept_)


def _bpr() -> Iterable[Any]:
    return [BayesianPersonalizedRanking(24, iterations=5, random_state=7).fit(_pairs(30_000)).digest()]


def _umap_layout() -> Iterable[Any]:
    example = load(_EXAMPLES / "umap_layout.py")
    points = np.random.default_rng(5).normal(size=(1_200, 10))
    points[:, 0] += np.arange(1_200) % 6
    return [example.layout(example.neighbour_graph(points), points[:, :2].astype(np.float32), epochs=20, seed=7)]


MODELS: dict[str, Callable[[], Iterable[Any]]] = {
    "word2vec": _word2vec,
    "transe": _transe,
    "mlr": _mlr,
    "bpr": _bpr,
    "umap-layout": _umap_layout,
    "mf": _mf,
    "lda": _lda,
}


def sha256(name: str) -> str:
    """Fit a model on the nodes and threads of `strads.init`; return the SHA-256 of what it has learnt."""
    total = hashlib.sha256()
    for part in MODELS[name]():
        if isinstance(part, str):
            total.update(part.encode())
        else:
            array = np.ascontiguousarray(part)
            total.update(f"{array.dtype.str} {array.shape}".encode())
            total.update(array.tobytes())
    return total.hexdigest()
