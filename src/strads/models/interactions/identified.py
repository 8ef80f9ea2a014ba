"""Models of users and items that know the ids of both."""

from abc import ABC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError
from strads.models._continuing import ContinuedEstimator
from strads.models.interactions.id_column import IdColumn
from strads.models.interactions.id_index import IdIndex, Numbered
from strads.models.interactions.interactions import Interactions

_MAX_ROWS = np.iinfo(np.int32).max


class IdentifiedModel(ContinuedEstimator, ABC):
    """A model with a row for each user and each item, by ids.

    Attributes
    ----------
    user_ids_, item_ids_ : ndarray of shape (n_users,), (n_items,)
        The ids of rows: int64, or objects of type str.
    """

    _user_ids: IdIndex
    _item_ids: IdIndex

    @property
    def user_ids_(self) -> NDArray[Any]:
        """The id of each row of users, (n_users,): int64, or objects of type str."""
        self._check_fitted()
        return self._user_ids.names

    @property
    def item_ids_(self) -> NDArray[Any]:
        """The id of each row of items, (n_items,): int64, or objects of type str."""
        self._check_fitted()
        return self._item_ids.names

    def has_users(self, ids: Any) -> NDArray[np.bool_]:
        """Return which of an array of ids are users of the model, (n,)."""
        self._check_fitted()
        return self._user_ids.rows(IdColumn.of("user", ids)) >= 0

    def has_items(self, ids: Any) -> NDArray[np.bool_]:
        """Return which of an array of ids are items of the model, (n,)."""
        self._check_fitted()
        return self._item_ids.rows(IdColumn.of("item", ids)) >= 0

    def rows_of_pairs(self, pairs: Any) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Return the rows of users and of items, in the formats of `predict`; −1 for those that are unknown."""
        self._check_fitted()
        given = Interactions.of(pairs, what="pair")
        return self._user_ids.rows(given.users), self._item_ids.rows(given.items)

    def _saved_ids(self) -> dict[str, NDArray[Any]]:
        """Return what a model file holds of ids."""
        return self._user_ids.saved() | self._item_ids.saved()

    def _restore_ids(self, arrays: dict[str, NDArray[Any]], n_users: int, n_items: int) -> None:
        """Set what `_saved_ids` returned."""
        self._user_ids = IdIndex.restored("user", arrays, n_users)
        self._item_ids = IdIndex.restored("item", arrays, n_items)


class IdIndexes:
    """The ids of users and of items in one call of a model, which takes them over when the call succeeds.

    Parameters
    ----------
    users, items : IdIndex
    """

    def __init__(self, users: IdIndex, items: IdIndex):
        self.users, self.items = users, items

    @classmethod
    def of(cls, origin: IdentifiedModel | None, *, copy: bool = True) -> "IdIndexes":
        """Return those of a model, or empty ones."""
        if origin is None:
            return cls(IdIndex("user"), IdIndex("item"))
        users, items = origin._user_ids, origin._item_ids
        return cls(users.copy(), items.copy()) if copy else cls(users, items)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of users and items."""
        return len(self.users), len(self.items)

    def number(self, given: Interactions) -> tuple[Numbered, Numbered]:
        """Return the rows of users and items, also of new ones, which `append` adds."""
        numbered = self.users.number(given.users, given.shape[0]), self.items.number(given.items, given.shape[1])
        for kind, each in zip(("users", "items"), numbered, strict=True):
            if each.count > _MAX_ROWS:
                raise InputError(f"there are {each.count:,} {kind}: up to {_MAX_ROWS:,} are possible")
        return numbered

    def append(self, numbered: tuple[Numbered, Numbered]) -> None:
        """Append what `number` has found to be new."""
        self.users.append(numbered[0])
        self.items.append(numbered[1])

    def add(self, given: Interactions) -> tuple[Numbered, Numbered]:
        """Return the rows of users and items, and append new ones."""
        numbered = self.number(given)
        self.append(numbered)
        return numbered

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what model files hold of ids."""
        return self.users.saved() | self.items.saved()
