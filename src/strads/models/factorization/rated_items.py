"""The items rated by each user."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.matrix_factorization import group_items_by_user


@dataclass(frozen=True)
class RatedItems:
    """The items of user u are `items[offsets[u]:offsets[u + 1]]`."""

    offsets: NDArray[np.int64]
    items: NDArray[np.int32]

    @classmethod
    def of(cls, ratings: NDArray[Any], n_users: int) -> Self:
        """Group the items of rating records by user."""
        offsets = np.zeros(n_users + 1, np.int64)
        items = np.empty(len(ratings), np.int32)
        group_items_by_user(ratings["user"], ratings["item"], offsets, items)
        return cls(offsets, items)

    @classmethod
    def from_arrays(cls, offsets: NDArray[np.int64], items: NDArray[np.int32], n_users: int, n_items: int) -> Self:
        """Wrap arrays from a file.

        Raises
        ------
        ValueError
            If they contain out-of-range indices.
        """
        rising = offsets.shape == (n_users + 1,) and bool((np.diff(offsets) >= 0).all())
        in_range = len(items) == 0 or (items.min() >= 0 and items.max() < n_items)
        if not (rising and in_range and offsets[0] == 0 and offsets[-1] == len(items)):
            raise ValueError("the rated items do not fit the factors")
        return cls(offsets, items)

    def of_user(self, user: int) -> NDArray[np.int32]:
        """Return the items that one user has rated."""
        return self.items[self.offsets[user] : self.offsets[user + 1]]
