"""The problems of the regression benchmark: real text, real genes, and generated columns that are correlated."""

import gzip
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TRAIN_REVIEWS = 25_000
COLUMNS_AT_A_TIME = 1 << 13


@dataclass(frozen=True, eq=False)
class Problem:
    """Data of a Lasso ("quadratic", y centred), of ℓ1-penalized logistic regression ("logistic", y is ±1), or of a
    linear support vector machine ("squared_hinge", y is ±1).

    Attributes
    ----------
    X : array in Fortran order, or CSC matrix, of shape (samples, features)
    y : float64 array of shape (samples,)
    """

    name: str
    loss: str
    X: Any
    y: NDArray[np.float64]

    @cached_property
    def X_by_rows(self) -> Any:
        """X in C order, or as a CSR matrix, for solvers that would convert it at each call."""
        return self.X.tocsr() if sp.issparse(self.X) else np.ascontiguousarray(self.X)

    @cached_property
    def largest_penalty(self) -> float:
        """The smallest penalty on Σ|w_j| at which w = 0 is optimal, of the loss summed over the samples.

        There is none on ‖w‖² / 2; then it is 1, the inverse of which is C.
        """
        if self.loss == "squared_hinge":
            return 1.0
        return largest_correlation(self.X, self.y if self.loss == "quadratic" else self.y / 2.0)


def largest_correlation(X: Any, vector: NDArray[np.float64]) -> float:
    """max_j |x_jᵀ v| in double precision whatever X is, without a copy of X."""
    parts = range(0, X.shape[1], COLUMNS_AT_A_TIME)
    return max(float(np.abs(X[:, start : start + COLUMNS_AT_A_TIME].T @ vector).max()) for start in parts)


def imdb(loss: str, cache: Path | None = None) -> Problem:
    """Tf-idf of words and pairs of words of the IMDB training reviews: 25,000 × 266,936, 7.7 M entries.

    The regression is on the rating, from 1 to 10; the labels are positive from rating 7 on.
    """
    X, ratings = _reviews(cache)
    y = ratings - ratings.mean() if loss == "quadratic" else np.where(ratings >= 7.0, 1.0, -1.0)
    return Problem("IMDB ratings" if loss == "quadratic" else "IMDB sentiment", loss, X, y)


def _reviews(cache: Path | None) -> tuple[sp.csc_matrix, NDArray[np.float64]]:
    if cache is not None and cache.exists():
        with np.load(cache) as file:
            matrix = sp.csc_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
            return matrix, file["ratings"]
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(DATA / "imdb" / "reviews.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        records = [line.split("\t", 1) for line, _ in zip(lines, range(TRAIN_REVIEWS), strict=False)]
    ratings = np.array([float(rating) for rating, _ in records])
    vectorizer = TfidfVectorizer(token_pattern=r"\w+", ngram_range=(1, 2), min_df=3)
    X = sp.csc_matrix(vectorizer.fit_transform(text for _, text in records))
    X.sort_indices()
    assert X.shape == (TRAIN_REVIEWS, 266_936)
    if cache is not None:
        np.savez(cache, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, ratings=ratings)
    return X, ratings


def genes(loss: str) -> Problem:
    """Gene expression of leukemia, ALL or AML: 72 × 7,129, columns standardized."""
    content = scipy.io.loadmat(DATA / "genes" / "ALLAML.mat")
    X = np.asarray(content["fea"], np.float64)
    X = X - X.mean(axis=0)
    spread = X.std(axis=0)
    X = np.asfortranarray(X / np.where(spread > 0.0, spread, 1.0))
    labels = np.where(content["gnd"].ravel() == 1, 1.0, -1.0)
    return Problem("genes", loss, X, labels - labels.mean() if loss == "quadratic" else labels)


def correlated(
    samples: int = 463, features: int = 200_000, *, dtype: Any = np.float64, seed: int = 0, block: int = 12
) -> Problem:
    """Columns in blocks that share a factor, correlated by 0.72 within; 50 of them make y, with noise 3."""
    rng = np.random.default_rng(seed)
    X = np.empty((samples, features), dtype, order="F")
    for start in range(0, features, 1200 * block):  # in parts, to need no second matrix of this size
        part = X[:, start : start + 1200 * block]
        count = part.shape[1]
        factors = np.repeat(rng.normal(size=(samples, -(-count // block))), block, axis=1)[:, :count]
        columns = 0.85 * factors + 0.53 * rng.normal(size=(samples, count))
        columns -= columns.mean(axis=0)
        part[:] = columns / columns.std(axis=0)
    chosen = rng.choice(features, 50, replace=False)
    y = X[:, chosen].astype(np.float64) @ rng.normal(size=50) + 3.0 * rng.normal(size=samples)
    return Problem(f"correlated {samples} × {features:,}", "quadratic", X, y - y.mean())


def tall(samples: int = 10_000, features: int = 50, *, seed: int = 0) -> Problem:
    """Many samples of few features, of which the labels are a noisy linear function."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features))
    y = np.where(X @ rng.normal(size=features) + 3.0 * rng.normal(size=samples) > 0.0, 1.0, -1.0)
    return Problem(f"tall {samples:,} × {features}", "squared_hinge", X, y)
