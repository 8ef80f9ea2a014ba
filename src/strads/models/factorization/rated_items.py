"""The items rated by each user."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from strads.models.factorization.item_log import ItemLog
from strads.models.kernels.matrix_factorization import group_items_by_user


@dataclass(frozen=True)
class RatedItems:
    """The items of user u are `items[offsets[u]:offsets[u + 1]]`, and those of u in `later`, batches that came since.

    Users from `len(offsets) - 1` on have only later ones.
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    later: ItemLog = field(default_factory=ItemLog)

    @classmethod
    def of(cls, ratings: NDArray[Any], n_users: int) -> Self:
        """Group the items of rating records by user."""
        offsets = np.zeros(n_users + 1, np.int64)
        items = np.empty(len(ratings), np.int32)
        group_items_by_user(ratings["user"], ratings["item"], offsets, items)
        return cls(offsets, items)

    @classmethod
    def from_arrays(
        cls, offsets: NDArray[np.int64], items: NDArray[np.int32], later: ItemLog, n_users: int, n_items: int
    ) -> Self:
        """Wrap arrays from a file.

        Raises
        ------
        ValueError
            If they contain out-of-range indices.
        """
        rising = offsets.ndim == 1 and 0 < len(offsets) <= n_users + 1 and bool((np.diff(offsets) >= 0).all())
        in_range = len(items) == 0 or (items.min() >= 0 and items.max() < n_items)
        if not (rising and in_range and offsets[0] == 0 and offsets[-1] == len(items)):
            raise ValueError("the rated items do not fit the factors")
        return cls(offsets, items, later)

    def of_user(self, user: int) -> NDArray[np.int32]:
        """Return the items that one user has rated."""
        early = self.items[slice(*self.offsets[user : user + 2])] if user + 1 < len(self.offsets) else self.items[:0]
        return np.concatenate([early, self.later.of_user(user)])

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the users and items of all ratings."""
        early = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        return np.concatenate([early, self.later.users]), np.concatenate([self.items, self.later.items])
