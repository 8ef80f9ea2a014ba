"""Ids that users of a model give: of whom, and of what to choose from."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError, InputError


class Choice:
    """Of which items (or users) the best are wanted: some, or all but some."""

    def __init__(self, name: str, only: ArrayLike | None, without: ArrayLike | None):
        if only is not None and without is not None:
            raise ArgumentError(f"{name} and filter_{name} exclude each other: give one of them")
        self._name, self._only, self._without = name, only, without

    def among(self, count: int) -> NDArray[np.int64] | None:
        """Return the ids to choose from, ascending; None: all of `count`."""
        if self._only is not None:
            ids = np.unique(checked_ids(self._name, self._only, count)[0])
            if len(ids) == 0:
                raise ArgumentError(f"{self._name} is empty: give the ids to choose from, or leave it away")
            return ids
        if self._without is None or np.size(self._without) == 0:
            return None
        return np.setdiff1d(np.arange(count), checked_ids(f"filter_{self._name}", self._without, count)[0])


def checked_ids(name: str, given: Any, count: int) -> tuple[NDArray[np.int64], bool]:
    """Return valid ids as an array, and whether a single one was given."""
    ids = np.asarray(given)
    if ids.ndim > 1 or (ids.dtype.kind not in "iu" and ids.size > 0):
        raise ArgumentError(f"{name}={given!r}: give a whole number, or a one-dimensional array of them")
    wrong = np.atleast_1d((ids < 0) | (ids >= count))
    if wrong.any():
        raise InputError(f"{name}: id {np.atleast_1d(ids)[wrong][0]} is outside 0 … {count - 1}")
    return np.atleast_1d(ids).astype(np.int64), ids.ndim == 0
