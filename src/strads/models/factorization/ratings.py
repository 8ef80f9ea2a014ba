"""Ratings as records, in terms of the rows of a model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.dds import dvector
from strads.errors import InputError
from strads.models.interactions.id_index import Numbered
from strads.models.interactions.interactions import Interactions

RATING = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")], align=True)


def as_ratings(X: Any, y: Any = None, *, allow_empty: bool = False) -> Interactions:
    """Convert ratings; see `Interactions.of`.

    Raises
    ------
    ArgumentError, InputError
        For other types; for NaN or infinite scores, ids that are none, and empty input.
    """
    ratings = Interactions.of(X, y)
    if len(ratings) == 0:
        if allow_empty:
            return ratings
        raise InputError("there are no ratings")
    finite = np.isfinite(as_scores(ratings))
    if not finite.all():
        row = int(np.argmin(finite))
        assert ratings.scores is not None
        raise InputError(
            f"rating {row} ({ratings.pair(row)}) has the score {ratings.scores[row]}: remove NaN, infinite and too "
            "large scores"
        )
    return ratings


def as_scores(ratings: Interactions) -> NDArray[np.float32]:
    """Return the scores as float32; those that are too large are infinite."""
    assert ratings.scores is not None
    with np.errstate(over="ignore"):
        return ratings.scores.astype(np.float32)


def as_records(ratings: Interactions, users: Numbered, items: Numbered) -> dvector:
    """Return records (user, item, score) of rows; a dvector of such records is returned unchanged."""
    if ratings.records is not None and users.rows is ratings.users.codes and items.rows is ratings.items.codes:
        return ratings.records
    records = np.empty(len(ratings), RATING)
    records["user"], records["item"], records["score"] = users.rows, items.rows, as_scores(ratings)
    return dvector(records, copy=False)
