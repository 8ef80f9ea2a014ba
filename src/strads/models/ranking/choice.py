"""The candidates of a recommendation: some items (or users), or all but some."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError
from strads.models.interactions.id_index import IdIndex


class Choice:
    """The items (or users) among which the best are sought: only some, or all but some."""

    def __init__(self, name: str, only: ArrayLike | None, without: ArrayLike | None):
        if only is not None and without is not None:
            raise ArgumentError(f"{name} and filter_{name} exclude each other: give one of them")
        self._name, self._only, self._without = name, only, without

    def among(self, index: IdIndex) -> NDArray[np.int64] | None:
        """Return the rows to choose from, ascending; None: all of the index."""
        if self._only is not None:
            rows = np.unique(index.rows_of(self._name, self._only)[0])
            if len(rows) == 0:
                raise ArgumentError(f"{self._name} is empty: give the ids to choose from, or leave it out")
            return rows
        if self._without is None or np.size(self._without) == 0:
            return None
        return np.setdiff1d(np.arange(len(index)), index.rows_of(f"filter_{self._name}", self._without)[0])
