"""The Dirichlet priors of LDA."""

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError

_LEAST, _MOST = 1e-10, 1e10  # possible values of a prior
_POSSIBLE = f"from {_LEAST:g} to {_MOST:g}"


@dataclass(frozen=True, eq=False)
class Priors:
    """α of the documents' mixtures of topics, and β of the topics' words.

    Attributes
    ----------
    alpha : float64 ndarray of shape (K,)
    beta : float
        The same for every word and topic.
    """

    alpha: NDArray[np.float64]
    beta: float


def check_priors(topics: int, alpha: float | ArrayLike | None, beta: float | None) -> Priors:
    """Return the priors given by an estimator's parameters; None means 1 / K.

    Raises
    ------
    ArgumentError
        If they are outside 1e-10 … 1e10, or there is not one α for each topic.
    """
    found = np.asarray(1 / topics) if alpha is None else _as_numbers(alpha)
    if found is None or found.ndim > 1 or not _are_possible(found):
        raise ArgumentError(f"doc_topic_prior={alpha!r}: give a number, or one for each topic, {_POSSIBLE}")
    if found.ndim == 1 and len(found) != topics:
        raise ArgumentError(f"doc_topic_prior has {len(found)} numbers, but there are n_components={topics} topics")
    if beta is not None and not (
        isinstance(beta, numbers.Real) and not isinstance(beta, bool) and _are_possible(np.asarray(float(beta)))
    ):
        raise ArgumentError(f"topic_word_prior={beta!r}: give a number {_POSSIBLE}")
    return Priors(np.broadcast_to(found, topics).copy(), 1 / topics if beta is None else float(beta))


def _as_numbers(value: Any) -> NDArray[np.float64] | None:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return None
    return array.astype(np.float64) if array.dtype.kind in "fiu" else None


def _are_possible(values: NDArray[np.float64]) -> bool:
    """Whether products of α and β, over the tokens, stay well within the range of float32, used to draw topics."""
    return bool(((values >= _LEAST) & (values <= _MOST)).all())
