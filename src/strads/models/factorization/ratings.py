"""Ratings in any input format, checked and converted to records."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.dds import dvector
from strads.errors import ArgumentError, InputError

RATING = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")], align=True)
_MAX_ID = np.iinfo(np.int32).max


def as_ratings(X: Any, y: Any = None, *, allow_empty: bool = False) -> dvector:
    """Convert ratings to a dvector of (user, item, score) records; such a dvector is returned unchanged.

    Parameters
    ----------
    X
        A SciPy sparse matrix or array of scores, users × items, whose *stored* entries are the ratings (a stored
        zero is a rating of zero; missing entries are unknown, not zero); or, with scores in `y`, an integer
        array of shape (n, 2) or a pair of arrays (users, items); or a dvector of records with the fields
        user, item, score.
    y
        Scores, shape (n,), for the array forms of X.
    allow_empty
        Whether there may be no ratings.

    Raises
    ------
    ArgumentError, InputError
        For other types; for NaN or infinite scores, negative or too large ids, and empty input.
    """
    if isinstance(X, dvector):
        if y is not None:
            raise ArgumentError("a dvector of ratings holds its scores: leave y away")
        return _check(_from_records(X), allow_empty)
    if scipy.sparse.issparse(X):
        if y is not None:
            raise ArgumentError("a sparse matrix of ratings holds its scores: leave y away")
        matrix = X.tocoo()
        return _check(_pack(matrix.row, matrix.col, matrix.data), allow_empty)
    if y is None:
        raise ArgumentError(
            "give ratings as a SciPy sparse matrix, as fit((users, items), scores), or as a dvector of records "
            "with the fields user, item, score"
        )
    users, items = as_pairs(X)
    scores = np.asarray(y)
    if len(scores) != len(users):
        raise InputError(f"{len(users)} pairs of user and item, but {len(scores)} scores")
    return _check(_pack(users, items, scores), allow_empty)


def as_pairs(X: Any) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return users and items of an (n, 2) integer array, a pair of arrays, a sparse matrix or a dvector."""
    if isinstance(X, dvector) and X.dtype.names is not None:
        data = _from_records(X).to_numpy()
        return data["user"], data["item"]
    if scipy.sparse.issparse(X):
        matrix = X.tocoo()
        return matrix.row, matrix.col
    if isinstance(X, tuple) and len(X) == 2:
        users, items = np.asarray(X[0]), np.asarray(X[1])
    else:
        pairs = np.asarray(X)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ArgumentError(f"pairs of user and item have the shape (n, 2), not {pairs.shape}")
        users, items = pairs[:, 0], pairs[:, 1]
    for name, ids in (("user", users), ("item", items)):
        if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size > 0):
            raise ArgumentError(
                f"{name} ids must be a one-dimensional array of integers, not {ids.ndim}-D {ids.dtype}; "
                "map other ids to 0, 1, 2, … first (np.unique(ids, return_inverse=True))"
            )
    if len(users) != len(items):
        raise InputError(f"{len(users)} users, but {len(items)} items")
    return users, items


def check_ids(name: str, ids: NDArray[np.integer], bound: int) -> None:
    """Reject ids below 0 or not below `bound`, naming the first."""
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= bound):
        row = int(np.argmax((ids < 0) | (ids >= bound)))
        raise InputError(f"rating {row}: {name} id {ids[row]} is outside 0 … {bound - 1}")


def _from_records(data: dvector) -> dvector:
    names = set(data.dtype.names or ())
    missing = {"user", "item", "score"} - names
    if missing:
        raise ArgumentError(f"ratings need the fields user, item, score; missing: {', '.join(sorted(missing))}")
    if data.dtype["user"].kind in "iu" and data.dtype["item"].kind in "iu":
        return data
    raise ArgumentError("the fields user and item of ratings must be integers")


def _pack(users: NDArray[Any], items: NDArray[Any], scores: NDArray[Any]) -> dvector:
    if scores.dtype.kind not in "fiub" or scores.ndim != 1:
        raise ArgumentError(f"scores must be a one-dimensional array of numbers, not {scores.ndim}-D {scores.dtype}")
    check_ids("user", users, _MAX_ID)
    check_ids("item", items, _MAX_ID)
    records = np.empty(len(users), RATING)
    with np.errstate(over="ignore"):  # a score that is too large becomes infinite and is rejected
        records["user"], records["item"], records["score"] = users, items, scores
    return dvector(records, copy=False)


def _check(ratings: dvector, allow_empty: bool) -> dvector:
    if len(ratings) == 0:
        if allow_empty:
            return ratings
        raise InputError("there are no ratings")
    data = ratings.to_numpy()
    check_ids("user", data["user"], _MAX_ID)
    check_ids("item", data["item"], _MAX_ID)
    finite = np.isfinite(data["score"])
    if not finite.all():
        row = int(np.argmin(finite))
        user, item, score = data["user"][row], data["item"][row], data["score"][row]
        raise InputError(
            f"rating {row} (user {user}, item {item}) has the score {score}: remove NaN and infinite scores"
        )
    return ratings
