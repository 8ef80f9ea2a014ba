"""Prediction and recommendation with a factorization."""

import numbers
from abc import ABC
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from strads.errors import ArgumentError, InputError
from strads.models._continuing import ContinuedEstimator
from strads.models.factorization.factor_tables import FactorTables
from strads.models.factorization.rated_items import RatedItems
from strads.models.factorization.ratings import as_pairs, as_ratings, check_ids


class FactorPredictor(RegressorMixin, ContinuedEstimator, ABC):
    """The use of factors, wherever they come from; a subclass sets `_tables` and `_rated`."""

    _tables: FactorTables
    _rated: RatedItems | None

    @property
    def user_factors_(self) -> NDArray[np.float32]:
        """Factors of the users, (n_users, n_components)."""
        self._check_fitted()
        return self._tables.factors[0]

    @property
    def item_factors_(self) -> NDArray[np.float32]:
        """Factors of the items, (n_items, n_components)."""
        self._check_fitted()
        return self._tables.factors[1]

    @property
    def user_biases_(self) -> NDArray[np.float32]:
        """Biases of the users, (n_users,)."""
        self._check_fitted()
        return self._tables.biases[0]

    @property
    def item_biases_(self) -> NDArray[np.float32]:
        """Biases of the items, (n_items,)."""
        self._check_fitted()
        return self._tables.biases[1]

    def predict(self, X: Any) -> NDArray[np.float32]:
        """Predict scores.

        Parameters
        ----------
        X
            An (n, 2) integer array of user and item, a pair (users, items), or a sparse matrix whose stored
            entries are the pairs.

        Returns
        -------
        ndarray of shape (n,), float32

        Raises
        ------
        InputError
            For ids that were not in the training data's range.
        """
        self._check_fitted()
        users, items = as_pairs(X)
        check_ids("user", users, len(self._tables.users))
        check_ids("item", items, len(self._tables.items))
        return self._tables.predict(users, items, self._team())

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination R² of the prediction; the arguments are those of `fit`."""
        ratings = as_ratings(X, y).to_numpy()
        predicted = self.predict((ratings["user"], ratings["item"]))
        return float(r2_score(ratings["score"], predicted, sample_weight=sample_weight))

    def rmse(self, X: Any, y: ArrayLike | None = None) -> float:
        """Root mean squared error of the prediction; the arguments are those of `fit`."""
        ratings = as_ratings(X, y).to_numpy()
        return _rmse(ratings["score"], self.predict((ratings["user"], ratings["item"])))

    def recommend(
        self, user: int, n: int = 10, *, exclude_rated: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the items with the highest predicted scores.

        Parameters
        ----------
        user
            Id of the user.
        n
            Largest number of items to return.
        exclude_rated
            Whether to leave out the items that the user rated in the training data (needs `remember_ratings`).

        Returns
        -------
        items : ndarray of shape (≤ n,), int64
            Best first.
        scores : ndarray of shape (≤ n,), float32
        """
        self._check_fitted()
        if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1:
            raise ArgumentError(f"n={n!r}: give a whole number of items, 1 or more")
        if isinstance(user, bool) or not isinstance(user, numbers.Integral):
            raise ArgumentError(f"user={user!r}: give the id of one user, a whole number")
        if not 0 <= user < len(self._tables.users):
            raise InputError(f"user id {user} is outside 0 … {len(self._tables.users) - 1}")
        scores = self._tables.predict_all(int(user))
        candidates = np.ones(len(scores), bool)
        if exclude_rated:
            if self._rated is None:
                raise ArgumentError("the model was fitted with remember_ratings=False: pass exclude_rated=False")
            candidates[self._rated.of_user(int(user))] = False
        items = np.flatnonzero(candidates)
        best = np.argsort(-scores[items], kind="stable")[:n]
        return items[best], scores[items[best]]


def _rmse(truth: NDArray[np.floating], predicted: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(truth - predicted, dtype=np.float64))))
