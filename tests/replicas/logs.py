"""Logs of batches for each model: a batch is a function of the seed and its number."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from strads.models import (
    BayesianPersonalizedRanking,
    LatentDirichletAllocation,
    MatrixFactorization,
    Word2Vec,
)

MODELS: dict[str, Callable[[int | None], Any]] = {
    "mf": lambda n_jobs: MatrixFactorization(n_components=8, learning_rate=0.05, max_iter=2, n_jobs=n_jobs),
    "bpr": lambda n_jobs: BayesianPersonalizedRanking(factors=8, iterations=2, n_jobs=n_jobs),
    "lda": lambda n_jobs: LatentDirichletAllocation(n_components=8, max_iter=3, n_jobs=n_jobs),
    "word2vec": lambda n_jobs: Word2Vec(vector_size=8, min_count=1, epochs=2, n_jobs=n_jobs),
}

_EMPTY, _ONE, _FIT = 17, 11, 97  # every how many batches one is empty, has one row, or is learnt by fit(init=…)


def feed(model: Any, name: str, seed: int, number: int) -> Any:
    """Return the model after a batch of its log."""
    batch = batch_of(name, seed, number)
    if is_fit(number):
        return MODELS[name](model.n_jobs).fit(*batch, init=model)
    return model.partial_fit(*batch)


def is_fit(number: int) -> bool:
    """Whether a batch is learnt by `fit` with `init`, which needs some rows."""
    return number % _FIT == _FIT - 1


def batch_of(name: str, seed: int, number: int) -> tuple[Any, ...]:
    """Return the arguments of `partial_fit` for a batch; later ones have new users, items or words."""
    rng = np.random.default_rng((seed, number))
    rows = int(rng.integers(20, 120))
    if not is_fit(number):
        rows = 0 if number % _EMPTY == _EMPTY - 2 else 1 if number % _ONE == _ONE - 1 else rows
    if name in ("lda", "word2vec"):
        return ([_text(rng, number) for _ in range(rows)],)
    users, items = rng.integers(0, 40 + number, rows), rng.integers(0, 30 + number // 2, rows)
    if name == "mf":
        return (users, items), rng.normal(3.0, 1.0, rows)
    if number % 3 or not rows:
        return ((users, items),)
    shape = 45 + number, 35 + number
    return (scipy.sparse.csr_array((np.ones(rows), (users, items)), shape=shape),)


def _text(rng: np.random.Generator, number: int) -> str:
    words = (rng.random(int(rng.integers(0, 20))) ** 2 * (60 + number)).astype(int)
    return " ".join(f"word{word}" for word in words)
