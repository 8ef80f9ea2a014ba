"""Ranking that continues learning: a batch of likes touches only its own users and items, and those drawn against."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.models._growth import GrowingArray, check_growth
from strads.models.kernels.aligned import padded_rows
from strads.models.kernels.online_ranking import draw_others
from strads.models.kernels.personalized_ranking import make_steps
from strads.models.ranking.likes import KnownLikes
from strads.models.ranking.training import RankingFactors, start_rows
from strads.rng.philox import mixed_key

_OTHERS = 5  # purpose of random numbers


@dataclass(frozen=True)
class Batch:
    """The rows that a batch touches, after its steps.

    Attributes
    ----------
    n_users, n_items : int
        Numbers of rows of the whole tables.
    users, items : int32 ndarrays
        Which rows these are.
    factors : RankingFactors
        The rows.
    figures : float64 ndarray of shape (3,)
        See `make_steps`.
    """

    n_users: int
    n_items: int
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    factors: RankingFactors
    figures: NDArray[np.float64]


class OnlineRanking:
    """Factors with room for more users and items.

    Parameters
    ----------
    factors : RankingFactors
        Their memory is used, and changed, until there are too many rows.
    likes : KnownLikes
        The later ones grow.
    start_seed : int
        Of new rows; see `start_rows`.
    """

    def __init__(self, factors: RankingFactors, likes: KnownLikes, start_seed: int):
        self._users, self._items = GrowingArray(factors.users), GrowingArray(factors.items)
        self._biases = GrowingArray(factors.biases)
        self._likes, self._start_seed = likes, start_seed

    @property
    def factors(self) -> RankingFactors:
        """The factors, as views."""
        return RankingFactors(self._users.rows, self._items.rows, self._biases.rows)

    def step(
        self,
        users: NDArray[np.int32],
        items: NDArray[np.int32],
        shape: tuple[int, int],
        *,
        rate: float,
        regularization: float,
        verify: bool,
        seed: int,
    ) -> Batch:
        """Make a step for each like of a batch, in random order, on copies; the likes are known from now on.

        The other item of a triple is drawn from all known likes, so by popularity.
        """
        for what, table, wanted in (("user", self._users, shape[0]), ("item", self._items, shape[1])):
            check_growth(what, len(table), wanted, len(users))
        order = np.random.default_rng((seed, _OTHERS)).permutation(len(users))
        users, items = users[order], items[order]
        self._likes.later.append(users, items)
        others, key = (
            np.empty(len(users), np.int32),
            np.uint64(mixed_key(np.uint64(seed), np.uint64(_OTHERS), np.uint64(0))),
        )
        first, later = self._likes.first, self._likes.later
        draw_others(users, first.offsets, first.items, later.items, later.before, later.last, verify, key, others)
        own_users, user_rows = np.unique(users, return_inverse=True)
        own_items, rows = np.unique(np.concatenate([items, others[others >= 0]]), return_inverse=True)
        others[others >= 0] = rows[len(items) :]
        touched = self._touched(own_users, own_items)
        figures = np.zeros(3)
        make_steps(
            user_rows.astype(np.int32), rows[: len(items)].astype(np.int32), others,
            touched.users, touched.items, touched.biases, np.float32(rate), np.float32(regularization), figures,
        )  # fmt: skip
        n_users, n_items = max(shape[0], len(self._users)), max(shape[1], len(self._items))
        return Batch(n_users, n_items, own_users, own_items, touched, figures)

    def _touched(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> RankingFactors:
        """Return copies of rows; those without likes so far, which are 0, start at random."""
        tables = []
        for number, (memory, ids) in enumerate(((self._users, users), (self._items, items))):
            rows = np.zeros((len(ids), memory.rows.shape[1]), np.float32)
            known = ids < len(memory)
            rows[known] = memory.rows[ids[known]]
            start_rows(rows, ids, number, self._start_seed)
            tables.append(padded_rows(rows))
        biases = np.zeros(len(items), np.float32)
        known = items < len(self._biases)
        biases[known] = self._biases.rows[items[known]]
        return RankingFactors(tables[0], tables[1], biases)

    def take(self, batch: Batch) -> None:
        """Take over what was learnt from a batch."""
        learnt, width = batch.factors, self._users.rows.shape[1]
        for memory, count, ids, rows in (
            (self._users, batch.n_users, batch.users, learnt.users[:, :width]),
            (self._items, batch.n_items, batch.items, learnt.items[:, :width]),
            (self._biases, batch.n_items, batch.items, learnt.biases),
        ):
            whole = memory.room(count)
            whole[len(memory) :] = 0.0
            whole[ids] = rows
            memory.resize(count)
