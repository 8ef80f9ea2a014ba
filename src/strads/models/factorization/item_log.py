"""Pairs of user and item that come batch by batch: appended in constant time, and found by user."""

import numpy as np
from numpy.typing import NDArray

from strads.models._growth import GrowingArray
from strads.models.kernels.item_chains import link, unlink, walk


class ItemLog:
    """A log of pairs; each entry knows the previous entry of the same user.

    Parameters
    ----------
    users, items : int32 ndarrays of shape (n,), optional
        The first entries.
    """

    def __init__(self, users: NDArray[np.int32] | None = None, items: NDArray[np.int32] | None = None):
        self._users, self._items = GrowingArray(np.zeros(0, np.int32)), GrowingArray(np.zeros(0, np.int32))
        self._before = GrowingArray(np.zeros(0, np.int64))  # for each entry, −1 if there is none
        self._last = GrowingArray(np.zeros(0, np.int64))  # for each user, −1 if there is none
        if users is not None and items is not None:
            self.append(users, items)

    def __len__(self) -> int:
        return len(self._users)

    @property
    def users(self) -> NDArray[np.int32]:
        """The user of each entry."""
        return self._users.rows

    @property
    def items(self) -> NDArray[np.int32]:
        """The item of each entry."""
        return self._items.rows

    @property
    def before(self) -> NDArray[np.int64]:
        """The previous entry of the same user; −1 if there is none."""
        return self._before.rows

    @property
    def last(self) -> NDArray[np.int64]:
        """The last entry of each user, −1 if there is none; users beyond its end have none."""
        return self._last.rows

    def append(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> None:
        """Append entries."""
        start, known = len(self), len(self._last)
        self._users.append(users)
        self._items.append(items)
        self._before.append(np.empty(len(users), np.int64))
        more = int(users.max(initial=-1)) + 1 - known
        if more > 0:
            self._last.append(np.full(more, -1, np.int64))
        link(users, start, self.before, self.last)

    def shorten(self, count: int) -> None:
        """Remove all entries but the first `count`."""
        unlink(self.users, count, self.before, self.last)
        for each in (self._users, self._items, self._before):
            each.resize(count)

    def of_user(self, user: int) -> NDArray[np.int32]:
        """Return the items of one user, the last one first."""
        return walk(self.items, self.before, self.last[user]) if user < len(self._last) else np.zeros(0, np.int32)
