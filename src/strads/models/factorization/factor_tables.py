"""The parameters of a biased factorization: one table for users and one for items."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.dds import dvector
from strads.models.kernels.matrix_factorization import (
    BIAS,
    EXTRA_COLUMNS,
    NORM,
    SQUARES,
    predict_pairs,
)

_CHUNK = 1 << 16  # pairs that a thread predicts at a time


@dataclass(frozen=True)
class FactorTables:
    """Rows of `rank` factors and the additional columns of the steps, in float32.

    Attributes
    ----------
    users, items
        Tables of shape (n_users, rank + 3) and (n_items, rank + 3); the kernels define the columns.
    rank
        Number of factors.
    mean
        Constant term of all predictions.
    """

    users: dvector
    items: dvector
    rank: int
    mean: float

    @classmethod
    def random(
        cls, n_users: int, n_items: int, rank: int, mean: float, *, biases: bool, scale: float, seed: int
    ) -> Self:
        """Start from random factors.

        With biases they are small. Without, the factors are positive with products near `scale`, the mean score:
        otherwise all factors would first have to find the common sign of the scores.
        """
        rng = np.random.default_rng(seed)
        spread = 0.1 if biases else np.sqrt(max(abs(scale), 0.01) / rank)
        tables = []
        for rows in (n_users, n_items):
            table = np.zeros((rows, rank + EXTRA_COLUMNS), np.float32)
            table[:, :rank] = rng.standard_normal((rows, rank), dtype=np.float32)
            table[:, :rank] *= spread
            if not biases:
                np.abs(table, out=table)
            table[:, rank + SQUARES] = 1.0
            table[:, rank + NORM] = np.square(table[:, :rank]).sum(1)
            tables.append(dvector(table, copy=False))
        return cls(tables[0], tables[1], rank, mean)

    @classmethod
    def from_arrays(cls, users: NDArray[np.float32], items: NDArray[np.float32], rank: int, mean: float) -> Self:
        """Wrap arrays as returned by `arrays`.

        Raises
        ------
        ValueError
            If their shapes do not match the rank.
        """
        for table in (users, items):
            if table.ndim != 2 or table.shape[1] != rank + EXTRA_COLUMNS or table.dtype != np.float32:
                raise ValueError(f"a table of shape {table.shape} does not hold {rank} factors a row")
        return cls(dvector(users, copy=False), dvector(items, copy=False), rank, mean)

    @property
    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The rows of users and of items."""
        users, items = self.users.storage, self.items.storage
        assert isinstance(users, np.ndarray)
        assert isinstance(items, np.ndarray)
        return users, items

    @property
    def factors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Factors of users and of items, (n, rank) each."""
        users, items = self.arrays
        return users[:, : self.rank], items[:, : self.rank]

    @property
    def biases(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Biases of users and of items, (n,) each."""
        users, items = self.arrays
        return users[:, self.rank + BIAS], items[:, self.rank + BIAS]

    def copy(self) -> "FactorTables":
        """Return independent tables with the same content and location."""
        return FactorTables(self.users.copy(), self.items.copy(), self.rank, self.mean)

    def at_home(self) -> "FactorTables":
        """Return tables with this content that are held in this process only."""
        if not (self.users.is_distributed or self.items.is_distributed):
            return self
        return FactorTables.from_arrays(*self.arrays, self.rank, self.mean)

    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer], team: ThreadTeam) -> NDArray[np.float32]:
        """Return the predicted scores of pairs of valid ids, computed by all threads of the team."""
        scores = np.empty(len(users), np.float32)
        user_ids = np.ascontiguousarray(users, np.int32)
        item_ids = np.ascontiguousarray(items, np.int32)
        user_rows, item_rows = self.arrays
        mean = np.float32(self.mean)

        def work(chunk: int) -> None:
            first = chunk * _CHUNK
            last = min(first + _CHUNK, len(scores))
            predict_pairs(user_rows, item_rows, mean, self.rank, user_ids, item_ids, scores, first, last)

        team.for_each(work, -(-len(scores) // _CHUNK))
        return scores

    def predict_all(self, user: int) -> NDArray[np.float32]:
        """Return the predicted scores of all items for one user, (n_items,)."""
        user_factors, item_factors = self.factors
        user_biases, item_biases = self.biases
        scores: NDArray[np.float32] = item_factors @ user_factors[user]
        scores += item_biases + (user_biases[user] + np.float32(self.mean))
        return scores
