"""One training run of Bayesian personalized ranking on the Static Engine: from likes to factors."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.models._iterative import EngineSolver, Epoch
from strads.models.kernels.aligned import padded_rows
from strads.models.kernels.initial_rows import draw_rows
from strads.models.kernels.personalized_ranking import CORRECT, LOG_LIKELIHOOD, SKIPPED
from strads.models.ranking.dealing import count_workers, deal
from strads.models.ranking.evaluation import mean_auc
from strads.models.ranking.likes import Likes
from strads.models.ranking.program import (
    Factors,
    ItemBlock,
    ItemRows,
    RankingRotation,
    UserPart,
    collected,
)
from strads.rng.philox import mixed_key
from strads.schmp import StaticEngine

_USERS, _ORDER, _FACTORS = 2, 3, 4  # purposes of random numbers, as is 1 in the program
_EPOCHS_PER_DEAL = 4  # after so many epochs items are dealt to other blocks


@dataclass(frozen=True)
class RankingFactors:
    """The learnt parameters: the score of item i for user u is w_u·h_i + b_i.

    Attributes
    ----------
    users : float32 ndarray of shape (n_users, factors)
    items : float32 ndarray of shape (n_items, factors)
    biases : float32 ndarray of shape (n_items,)
    """

    users: Factors
    items: Factors
    biases: NDArray[np.float32]

    @classmethod
    def none(cls, factors: int) -> "RankingFactors":
        """Return tables without users and items."""
        return cls(np.zeros((0, factors), np.float32), np.zeros((0, factors), np.float32), np.zeros(0, np.float32))

    @classmethod
    def at_random(
        cls, likes: Likes, factors: int, seed: int, known: "RankingFactors | None" = None
    ) -> "RankingFactors":
        """Return initial values: those known, if there are any, and of others with likes random ones."""
        known = known or cls.none(factors)
        tables = []
        for number, (counts, old) in enumerate(((likes.of_users, known.users), (likes.of_items, known.items))):
            table = np.zeros((len(counts), factors), np.float32)
            table[: len(old)] = old
            liked = np.flatnonzero(counts)
            rows = table[liked]
            start_rows(rows, liked, number, seed)
            table[liked] = rows
            tables.append(table)
        biases = np.zeros(likes.n_items, np.float32)
        biases[: len(known.biases)] = known.biases
        return cls(tables[0], tables[1], biases)


def start_rows(rows: Factors, numbers: NDArray[np.integer], table: int, seed: int) -> None:
    """Draw the rows that are 0, so had no likes, from −1/2 to 1/2, divided by the number of factors.

    Parameters
    ----------
    rows : float32 ndarray of shape (n, factors)
        Some rows of the table of users (0) or of items (1); changed.
    numbers : integer ndarray of shape (n,)
        The numbers of these rows: with the seed, they determine what is drawn.
    """
    factors = rows.shape[1]
    key = np.uint64(mixed_key(np.uint64(seed), np.uint64(_FACTORS), np.uint64(table)))
    new = np.flatnonzero(~rows.any(axis=1))
    drawn = np.empty((len(new), factors), np.float32)
    draw_rows(drawn, numbers[new].astype(np.int64), factors, -0.5 / factors, 0.5 / factors, key)
    rows[new] = drawn


class RankingSolver(EngineSolver):
    """Likes, factors and their program on the nodes of `strads.init`.

    Parameters
    ----------
    held_out : Likes, optional
        On which the AUC is measured after each epoch.
    start : RankingFactors
        Initial values.
    rate, regularization, verify, seed
        As of `RankingRotation`.
    workers : int, optional
        Number of logical workers; by default that of `count_workers`.
    threads : int, optional
        Threads of a single process.
    team : ThreadTeam
        Threads of this process, for the AUC.
    """

    def __init__(
        self,
        likes: Likes,
        held_out: Likes | None,
        start: RankingFactors,
        *,
        rate: float,
        regularization: float,
        verify: bool,
        workers: int | None,
        seed: int,
        threads: int | None,
        team: ThreadTeam,
    ):
        self._likes, self._held_out = likes, held_out
        self._factors, self._team = start.users.shape[1], team
        count = workers or count_workers(likes)
        program = RankingRotation(
            count,
            ItemRows(np.arange(likes.n_items), padded_rows(start.items), start.biases),
            likes.of_items,
            rate=rate,
            regularization=regularization,
            verify=verify,
            epochs_per_deal=_EPOCHS_PER_DEAL,
            seed=seed,
        )
        self._users = deal(likes.of_users, count, (seed, _USERS))
        parts = [_part(likes, users, start.users, (seed, _ORDER, worker)) for worker, users in enumerate(self._users)]
        self._engine = StaticEngine(program, parts, [[ItemBlock() for _ in range(count)]], threads=threads)

    def run_epoch(self, number: int) -> Epoch:
        """Visit each like once."""
        nodes = self._engine.iterate().nodes
        figures = self._engine.each_node(lambda program: program.figures)[0]
        likes = len(self._likes.items)
        found = means(figures, likes)
        return Epoch(number * likes, found.pop("objective"), found, nodes)

    def evaluate(self, number: int) -> Mapping[str, float]:
        """The AUC of the held-out likes, if there are any."""
        if self._held_out is None:
            return {}
        return {"validation_auc": mean_auc(self.learnt(), self._likes, self._held_out, self._team)}

    def learnt(self) -> RankingFactors:
        """Return the factors, gathered from the nodes."""
        users = np.empty((self._likes.n_users, self._factors), np.float32)
        found = self._engine.each_worker(lambda program, part: part.factors)
        for of_worker, factors in zip(self._users, found, strict=True):
            users[of_worker] = factors[:, : self._factors]
        items = collected(self._engine.each_shard(lambda program, block: block.rows))
        return RankingFactors(users, np.ascontiguousarray(items.factors[:, : self._factors]), items.biases)

    @property
    def is_intact(self) -> bool:
        """Whether there was an epoch, and none was broken off."""
        return super().is_intact and self._engine.iterations > 0


def means(figures: NDArray[np.float64], likes: int) -> dict[str, float]:
    """Return the entries of a record, given the sums over so many likes."""
    steps = max(likes - figures[SKIPPED], 1)
    return {
        "objective": float(figures[LOG_LIKELIHOOD] / steps),
        "correct": float(figures[CORRECT] / steps),
        "skipped": float(figures[SKIPPED] / likes),
    }


def _part(likes: Likes, users: NDArray[np.int64], factors: Factors, seed: tuple[int, ...]) -> UserPart:
    """Return the data of a worker with these users; their likes in random order."""
    own = likes.select(users)
    order = np.random.default_rng(seed).permutation(len(own.items))
    rows = np.repeat(np.arange(len(users), dtype=np.int32), own.of_users)
    return UserPart(padded_rows(factors[users]), rows[order], own.items[order])
