"""The parameters of a biased factorization: one table for users and one for items."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.dds import dvector
from strads.models.kernels.initial_rows import draw_rows
from strads.models.kernels.matrix_factorization import BIAS, EXTRA_COLUMNS, NORM, SQUARES, predict_pairs
from strads.rng.philox import mixed_key

_CHUNK = 1 << 16  # pairs that a thread predicts at a time
_START = 1  # purpose of random numbers


@dataclass(frozen=True)
class InitialFactors:
    """What a row holds before the first step; it depends on the seed, the table and the row's number alone.

    With biases the factors are small. Without, they are positive with products near the mean score: otherwise all
    factors would first have to find the common sign of the scores.

    Attributes
    ----------
    spread : float
        Standard deviation of the factors, or of those whose magnitudes they are.
    """

    spread: float
    positive: bool
    seed: int

    @classmethod
    def of(cls, rank: int, scale: float, *, biases: bool, seed: int) -> Self:
        """Choose the spread for scores with the mean `scale`."""
        return cls(0.1 if biases else float(np.sqrt(max(abs(scale), 0.01) / rank)), not biases, seed)

    def fill(self, rows: NDArray[np.float32], rank: int, table: int, first: int) -> None:
        """Write rows of the table of users (0) or items (1), whose numbers start at `first`."""
        key = np.uint64(mixed_key(np.uint64(self.seed), np.uint64(_START), np.uint64(table)))
        widest = math.sqrt(3.0) * self.spread  # of a uniform distribution
        draw_rows(rows, np.arange(first, first + len(rows)), rank, 0.0 if self.positive else -widest, widest, key)
        rows[:, rank:] = 0.0
        rows[:, rank + SQUARES] = 1.0
        rows[:, rank + NORM] = np.square(rows[:, :rank]).sum(1)


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
    def random(cls, n_users: int, n_items: int, rank: int, mean: float, start: "InitialFactors") -> Self:
        """Start from random factors."""
        users, items = np.empty((2, 0, rank + EXTRA_COLUMNS), np.float32)
        return cls.from_arrays(users, items, rank, mean).grown(n_users, n_items, start)

    def grown(self, n_users: int, n_items: int, start: "InitialFactors") -> Self:
        """Return a copy with at least so many rows; the new ones are those that `random` makes."""
        tables = []
        for number, (known, rows) in enumerate(zip(self.arrays, (n_users, n_items), strict=True)):
            table = np.empty((max(len(known), rows), known.shape[1]), np.float32)
            table[: len(known)] = known
            start.fill(table[len(known) :], self.rank, number, len(known))
            tables.append(table)
        return type(self).from_arrays(tables[0], tables[1], self.rank, self.mean)

    @classmethod
    def from_arrays(cls, users: NDArray[np.float32], items: NDArray[np.float32], rank: int, mean: float) -> Self:
        """Wrap arrays as returned by `arrays`.

        Raises
        ------
        ValueError
            If they are not float32, or their shapes do not match the rank.
        """
        for table in (users, items):
            if table.ndim != 2 or table.shape[1] != rank + EXTRA_COLUMNS or table.dtype != np.float32:
                raise ValueError(f"a table of {table.dtype}, {table.shape}, does not hold {rank} factors a row")
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
