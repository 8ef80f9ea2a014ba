"""Recommendation, similar items and users, and evaluation with factors of users and items."""

from abc import ABC
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError
from strads.models.ranking.evaluation import mean_auc
from strads.models.ranking.likes import KnownLikes, Likes, as_likes
from strads.models.ranking.neighbours import Neighbours, Ranked, likes_of
from strads.models.ranking.training import RankingFactors


class Recommender(Neighbours, ABC):
    """Predictions from factors, wherever they come from; a subclass sets `_factors`, `_likes` and the ids."""

    _factors: RankingFactors
    _likes: KnownLikes

    def recommend(
        self,
        userid: Any,
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
            A sparse matrix with the likes of these users, a row for each and a column for each of `item_ids_`, which
            are to be left out; by default those of the training data.
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
        ids : ndarray of shape (N,), or (users, N)
            The best first; of several with the same score the first row. Where there are fewer than N, one user gets
            fewer; several get −1, or None for texts.
        scores : ndarray of the same shape, float32
            −∞ where there are too few.

        Raises
        ------
        ArgumentError, InputError
            For ids that were not in the training data, and other invalid arguments.
        """
        self._check_fitted()
        users, is_one = self._user_ids.rows_of("userid", userid)
        excluded = self._excluded(users, user_items, filter_already_liked_items)
        return self._ranked(self._item_ids, *self._best_items(users, N, excluded, items, filter_items), is_one)

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
        return Likes.of_matrix(user_items)

    def ranking_factors(self) -> RankingFactors:
        """Return the factors and biases."""
        self._check_fitted()
        return self._factors

    def known_likes(self) -> Likes:
        """Return all likes of the training data, in terms of rows."""
        self._check_fitted()
        return self._likes.all(len(self._factors.users), len(self._factors.items))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean AUC of held-out likes, in the formats of `fit`: see `auc`."""
        return self.auc(X)

    def auc(self, user_items: Any) -> float:
        """Mean over users of the probability that a held-out like ranks above an item that is no like (Rendle et al.).

        Likes of the training data are left out, and so are those of users and items that it does not have. NaN if
        there are no others.

        Parameters
        ----------
        user_items
            Held-out likes, in the formats of `fit`.
        """
        known = self.known_likes()
        return mean_auc(self._factors, known, likes_of(self, as_likes(user_items)), self._team())
