"""Recommendation, similar items and users, and evaluation with factors of users and items."""

import numbers
from abc import ABC
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError
from strads.models._continuing import ContinuedEstimator
from strads.models.ranking.choice import Choice, checked_ids
from strads.models.ranking.evaluation import best_of_all, mean_auc
from strads.models.ranking.likes import Likes
from strads.models.ranking.online import KnownLikes
from strads.models.ranking.training import RankingFactors

Ranked = tuple[NDArray[np.int64], NDArray[np.float32]]


class Recommender(ContinuedEstimator, ABC):
    """The use of factors, wherever they come from; a subclass sets `_factors` and `_likes`."""

    _factors: RankingFactors
    _likes: KnownLikes

    def recommend(
        self,
        userid: int | ArrayLike,
        user_items: Any = None,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> Ranked:
        """Return the best items for one user, or for each of several.

        Parameters
        ----------
        userid
            Id of a user, or an array of ids.
        user_items
            A sparse matrix with the likes of these users, a row for each, which are to be left out; by default those
            of the training data.
        N
            How many items.
        filter_already_liked_items
            Whether to leave out what a user likes.
        filter_items
            Ids of further items to leave out.
        items
            Ids of the only items to choose from.

        Returns
        -------
        ids : ndarray of shape (N,), or (users, N), int64
            The best first; of several with the same score the lowest id. Where there are fewer than N, one user gets
            fewer; several get −1.
        scores : ndarray of the same shape, float32
            −∞ where there are too few.

        Raises
        ------
        ArgumentError, InputError
            For ids that were not in the range of the training data, and other invalid arguments.
        """
        self._check_fitted()
        users, is_one = checked_ids("userid", userid, len(self._factors.users))
        excluded = self._excluded(users, user_items, filter_already_liked_items)
        return self._best(
            self._factors.users[users], self._factors.items, self._factors.biases, N, excluded,
            Choice("items", items, filter_items), is_one,
        )  # fmt: skip

    def _excluded(self, users: NDArray[np.int64], user_items: Any, leave_out: bool) -> Likes:
        n_items = len(self._factors.items)
        if not leave_out:
            return Likes.none(len(users), n_items)
        if user_items is None:
            return self._likes.select(users, n_items)
        shape = getattr(user_items, "shape", None)
        if shape != (len(users), n_items):
            raise ArgumentError(
                f"user_items has the shape {shape}: give a sparse matrix with a row for each of the {len(users)} users "
                f"and a column for each of the {n_items} items"
            )
        return Likes.of(user_items, (len(users), n_items))

    def similar_items(
        self,
        itemid: int | ArrayLike,
        N: int = 10,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> Ranked:
        """Return the items whose factors have the highest cosine with those of an item, itself among them.

        Parameters and results are as in `recommend`, with an item or an array of items in place of users.
        """
        self._check_fitted()
        return self._similar("itemid", itemid, self._factors.items, N, Choice("items", items, filter_items))

    def similar_users(
        self,
        userid: int | ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> Ranked:
        """Return the users whose factors have the highest cosine with those of a user, who is among them.

        Parameters and results are as in `recommend`.
        """
        self._check_fitted()
        return self._similar("userid", userid, self._factors.users, N, Choice("users", users, filter_users))

    def _similar(self, name: str, ids: Any, rows: NDArray[np.float32], most: int, choice: Choice) -> Ranked:
        numbers, is_one = checked_ids(name, ids, len(rows))
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        directions = rows / np.maximum(norms, np.finfo(np.float32).tiny)
        return self._best(
            directions[numbers], directions, None, most, Likes.none(len(numbers), len(rows)), choice, is_one
        )

    def _best(
        self,
        queries: NDArray[np.float32],
        rows: NDArray[np.float32],
        biases: NDArray[np.float32] | None,
        most: int,
        excluded: Likes,
        choice: Choice,
        is_one: bool,
    ) -> Ranked:
        if isinstance(most, bool) or not isinstance(most, numbers.Integral) or most < 1:
            raise ArgumentError(f"N={most!r}: give a whole number, 1 or more")
        chosen = choice.among(len(rows))
        if chosen is not None:
            rows, biases = rows[chosen], None if biases is None else biases[chosen]
            excluded = excluded.among(chosen)
        most = min(int(most), len(rows))
        found, scores = best_of_all(queries, rows, biases, most, excluded, self._team())
        if chosen is not None:
            found = np.where(found >= 0, chosen[found], -1)
        if is_one:
            count = int((found[0] >= 0).sum())
            return found[0, :count], scores[0, :count]
        return found, scores

    def score(self, X: Any, y: Any = None) -> float:
        """Mean AUC of held-out likes, in the formats of `fit`: see `auc`."""
        return self.auc(X)

    def auc(self, user_items: Any) -> float:
        """Mean over users of the probability that a held-out like ranks above an item that is no like (Rendle et al.).

        Likes of the training data are left out. NaN if there are no others.

        Parameters
        ----------
        user_items
            Held-out likes, as in `fit`, of the same users and items.
        """
        self._check_fitted()
        shape = len(self._factors.users), len(self._factors.items)
        return mean_auc(self._factors, self._likes.all(*shape), Likes.of(user_items, shape), self._team())
