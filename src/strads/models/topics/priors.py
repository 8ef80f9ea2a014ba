"""The Dirichlet priors of LDA."""

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError


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
    """Return the priors that an estimator's parameters stand for; None stands for 1 / K.

    Raises
    ------
    ArgumentError
        If they are not positive, or there is not one α for each topic.
    """
    found = np.asarray(1 / topics if alpha is None else alpha, np.float64) if _is_numeric(alpha) else None
    if found is None or found.ndim > 1 or not np.isfinite(found).all() or not (found > 0).all():
        raise ArgumentError(f"doc_topic_prior={alpha!r}: give a positive number, or one for each topic")
    if found.ndim == 1 and len(found) != topics:
        raise ArgumentError(f"doc_topic_prior has {len(found)} numbers, but there are n_components={topics} topics")
    if beta is not None and not (
        isinstance(beta, numbers.Real) and not isinstance(beta, bool) and math.isfinite(beta) and beta > 0
    ):
        raise ArgumentError(f"topic_word_prior={beta!r}: give a positive number")
    return Priors(np.broadcast_to(found, topics).copy(), 1 / topics if beta is None else float(beta))


def _is_numeric(value: Any) -> bool:
    return value is None or (np.asarray(value).dtype.kind in "fiu")
