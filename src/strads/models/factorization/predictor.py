"""Prediction and recommendation with a factorization."""

from abc import ABC
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from strads.errors import ArgumentError
from strads.models.factorization.factor_tables import FactorTables
from strads.models.factorization.ratings import as_ratings, as_scores
from strads.models.factorization.score_scale import ScoreScale
from strads.models.interactions.interactions import Interactions
from strads.models.ranking.likes import KnownLikes, Likes
from strads.models.ranking.neighbours import Neighbours, Ranked
from strads.models.ranking.training import RankingFactors

_UNKNOWN = ("error", "mean")


class FactorPredictor(RegressorMixin, Neighbours, ABC):
    """Predictions from factors, wherever they come from; a subclass sets `_tables`, `_rated`, `_scale` and the ids."""

    _tables: FactorTables
    _rated: KnownLikes | None
    _scale: ScoreScale

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

    @property
    def score_range_(self) -> tuple[float, float]:
        """The lowest and the highest score of the training data."""
        self._check_fitted()
        return self._scale.lowest, self._scale.highest

    def predict(self, X: Any, *, unknown: str = "error", clip: bool = True) -> NDArray[np.float32]:
        """Predict scores.

        Parameters
        ----------
        X
            Pairs of user and item, in the formats of `fit`; of a sparse matrix the stored entries.
        unknown : {"error", "mean"}, default "error"
            What to do for users and items that were not in the training data: raise an error that names the first, or
            predict μ and the bias of the other.
        clip : bool, default True
            Whether to replace predictions beyond the scores of the training data by the lowest or highest of them.

        Returns
        -------
        ndarray of shape (n,), float32

        Raises
        ------
        ArgumentError, InputError
            For pairs of another form, and unknown ids.
        """
        self._check_fitted()
        if unknown not in _UNKNOWN:
            raise ArgumentError(f"unknown={unknown!r}: choose one of {', '.join(_UNKNOWN)}")
        pairs = Interactions.of(X, what="pair")
        columns = (self._user_ids, pairs.users), (self._item_ids, pairs.items)
        users, items = (
            index.known_rows(column) if unknown == "error" else index.rows(column) for index, column in columns
        )
        predicted = self._predict_rows(users, items)
        return self._scale.clipped(predicted) if clip else predicted

    def _predict_rows(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return predictions for rows; those of −1 are unknown."""
        known = (users >= 0) & (items >= 0)
        if known.all():
            return self._tables.predict(users, items, self._team())
        predicted = np.full(len(users), self._tables.mean, np.float32)
        for rows, biases in zip((users, items), self._tables.biases, strict=True):
            predicted[rows >= 0] += biases[rows[rows >= 0]]
        predicted[known] = self._tables.predict(users[known], items[known], self._team())
        return predicted

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination R² of `predict(…, unknown="mean")`; the arguments are those of `fit`."""
        ratings = as_ratings(X, y)
        return float(r2_score(as_scores(ratings), self.predict(ratings, unknown="mean"), sample_weight=sample_weight))

    def rmse(self, X: Any, y: ArrayLike | None = None, *, clip: bool = True) -> float:
        """Root mean squared error of `predict(…, unknown="mean", clip=clip)`; the arguments are those of `fit`.

        The errors in `history_` are those without clipping.
        """
        ratings = as_ratings(X, y)
        errors = as_scores(ratings) - self.predict(ratings, unknown="mean", clip=clip)
        return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))

    def recommend(
        self,
        user: Any,
        N: int = 10,
        *,
        exclude_rated: bool = True,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
        clip: bool = True,
    ) -> Ranked:
        """Return the items with the highest predicted scores, for one user or each of several.

        Parameters
        ----------
        user
            Id of a user, or an array of ids.
        N
            Largest number of items to return.
        exclude_rated
            Whether to leave out the items that the user rated in the training data (needs `remember_ratings`).
        filter_items
            Ids of further items to leave out.
        items
            Ids of the only items to choose from.
        clip
            Whether the scores returned are clipped as in `predict`; their order is that of the predictions before.

        Returns
        -------
        items : ndarray of shape (≤ N,), or (users, N)
            Ids, the best first. Where there are fewer than N, one user gets fewer; several get −1, or None for texts.
        scores : ndarray of the same shape, float32
            −∞ where there are too few.

        Raises
        ------
        ArgumentError, InputError
            For ids that were not in the training data, and other invalid arguments.
        """
        self._check_fitted()
        rows, is_one = self._user_ids.rows_of("user", user)
        excluded = self._excluded(rows) if exclude_rated else Likes.none(len(rows), len(self._item_ids))
        found, scores = self._best_items(rows, N, excluded, items, filter_items)
        scores += (self._tables.biases[0][rows] + np.float32(self._tables.mean))[:, None]
        scores = np.where(found >= 0, self._scale.clipped(scores) if clip else scores, np.float32(-np.inf))
        return self._ranked(self._item_ids, found, scores, is_one)

    def _excluded(self, users: NDArray[np.int64]) -> Likes:
        if self._rated is None:
            raise ArgumentError("the model was fitted with remember_ratings=False: pass exclude_rated=False")
        return self._rated.select(users, len(self._item_ids))

    def ranking_factors(self) -> RankingFactors:
        """Return the factors, and the biases of items."""
        self._check_fitted()
        return RankingFactors(*self._tables.factors, self._tables.biases[1])

    def known_likes(self) -> Likes:
        """Return the items that users rated in the training data, in terms of rows (needs `remember_ratings`)."""
        self._check_fitted()
        if self._rated is None:
            raise ArgumentError("the model was fitted with remember_ratings=False: it does not know what users rated")
        return self._rated.all(len(self._user_ids), len(self._item_ids))
