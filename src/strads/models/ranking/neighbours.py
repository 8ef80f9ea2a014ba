"""The best rows of a table for given ones: common to similar items, similar users, and recommendations."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError
from strads.models._parameters import check_whole_number
from strads.models.interactions.id_index import IdIndex
from strads.models.interactions.identified import IdentifiedModel
from strads.models.interactions.interactions import Interactions
from strads.models.ranking.evaluation import best_of_all
from strads.models.ranking.likes import Likes
from strads.models.ranking.training import RankingFactors

Ranked = tuple[NDArray[Any], NDArray[np.float32]]
Rows = NDArray[np.float32]
Chosen = NDArray[np.int64] | None  # rows to choose from, ascending; None: all


class Neighbours(IdentifiedModel, ABC):
    """A model whose items, and users, are compared by their factors."""

    @abstractmethod
    def ranking_factors(self) -> RankingFactors:
        """Return the factors of users and items, and the biases of items, which rank items."""

    @abstractmethod
    def known_likes(self) -> Likes:
        """Return what users had in the training data, in terms of rows."""

    def similar_items(
        self,
        itemid: Any,
        N: int = 10,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> Ranked:
        """Return the items whose factors have the highest cosine with those of an item, itself among them.

        Parameters
        ----------
        itemid
            Id of an item, or an array of ids.
        N
            How many items.
        filter_items
            Ids of items to leave out.
        items
            Ids of the only items to choose from.

        Returns
        -------
        ids : ndarray of shape (N,), or (items, N)
            The best first; of equal ones the first row. Where there are fewer than N, one item gets fewer; several get
            −1, or None for texts.
        cosines : ndarray of the same shape, float32
            −∞ where there are too few.

        Raises
        ------
        ArgumentError, InputError
            For ids that were not in the training data, and other invalid arguments.
        """
        self._check_fitted()
        return self._similar(
            self._item_ids, "itemid", itemid, N, chosen_rows(self._item_ids, "items", items, filter_items)
        )

    def similar_users(
        self,
        userid: Any,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> Ranked:
        """Return the users whose factors have the highest cosine with those of a user, who is among them.

        Parameters and results are as in `similar_items`, with users in place of items.
        """
        self._check_fitted()
        return self._similar(
            self._user_ids, "userid", userid, N, chosen_rows(self._user_ids, "users", users, filter_users)
        )

    def _similar(self, index: IdIndex, argument: str, ids: Any, most: int, chosen: Chosen) -> Ranked:
        wanted, is_one = index.rows_of(argument, ids)
        factors = self.ranking_factors()
        rows = factors.users if index.kind == "user" else factors.items
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        directions = rows / np.maximum(norms, np.finfo(np.float32).tiny)
        none = Likes.none(len(wanted), len(rows))
        found = self._best(directions[wanted], directions, None, most, none, chosen)
        return self._ranked(index, *found, is_one)

    def _best_items(
        self, users: NDArray[np.int64], most: int, excluded: Likes, only: ArrayLike | None, without: ArrayLike | None
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the rows of the best items for users, −1 where there are fewer than `most`, and scores.

        `only` and `without` are the arguments `items` and `filter_items` of the caller.
        """
        factors, chosen = self.ranking_factors(), chosen_rows(self._item_ids, "items", only, without)
        return self._best(factors.users[users], factors.items, factors.biases, most, excluded, chosen)

    def _best(
        self, queries: Rows, rows: Rows, biases: Rows | None, most: int, excluded: Likes, chosen: Chosen
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the best rows, −1 where there are fewer than `most`, and scores."""
        check_whole_number("N", most)
        if chosen is not None:
            rows, biases = rows[chosen], None if biases is None else biases[chosen]
            excluded = excluded.among(chosen)
        most = min(int(most), len(rows))
        found, scores = best_of_all(queries, rows, biases, most, excluded, self._team())
        return (found if chosen is None else np.where(found >= 0, chosen[found], -1)), scores

    @staticmethod
    def _ranked(index: IdIndex, found: NDArray[np.int64], scores: Rows, is_one: bool) -> Ranked:
        if is_one:
            count = int((found[0] >= 0).sum())
            return index.names_of(found[0, :count]), scores[0, :count]
        return index.names_of(found), scores


def chosen_rows(index: IdIndex, name: str, only: ArrayLike | None, without: ArrayLike | None) -> Chosen:
    """Return the rows of the items (or users) among which the best are sought: only some, or all but some."""
    if only is not None and without is not None:
        raise ArgumentError(f"{name} and filter_{name} exclude each other: give one of them")
    if only is not None:
        rows = np.unique(index.rows_of(name, only)[0])
        if len(rows) == 0:
            raise ArgumentError(f"{name} is empty: give the ids to choose from, or leave it out")
        return rows
    if without is None or np.size(without) == 0:
        return None
    return np.setdiff1d(np.arange(len(index)), index.rows_of(f"filter_{name}", without)[0])


def likes_of(model: Neighbours, given: Interactions) -> Likes:
    """Return pairs in terms of a model's rows, without those whose user or item it does not know."""
    users, items = model.rows_of_pairs(given)
    inside = (users >= 0) & (items >= 0)
    return Likes.of(users[inside], items[inside], (len(model._user_ids), len(model._item_ids)))
