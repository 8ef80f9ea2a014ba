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

    def of_user(self, user: int) -> NDArray[np.int32]:
        """Return the items that one user has rated."""
        early = self.items[slice(*self.offsets[user : user + 2])] if user + 1 < len(self.offsets) else self.items[:0]
        return np.concatenate([early, self.later.of_user(user)])

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the users and items of all ratings."""
        early = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        return np.concatenate([early, self.later.users]), np.concatenate([self.items, self.later.items])
