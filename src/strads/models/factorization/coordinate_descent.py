"""Matrix factorization by coordinate descent, as a SchMP program: workers hold users, every node holds all items."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import schmp
from strads.models._iterative import EngineSolver, Epoch
from strads.models.factorization.factor_tables import FactorTables
from strads.models.kernels.coordinate_descent import (
    FACTOR,
    add_products,
    item_step,
    rank_one_pass,
    squared_sum,
)
from strads.models.kernels.grouping import group_by_key
from strads.models.kernels.matrix_factorization import BIAS

# Fixed, so that the result is the same for any number of threads and nodes up to this.
_WORKERS = 16
_GroupedRatings = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True)
class Regularization:
    """λ of a user or an item: `a_row` + its number of ratings · `a_rating`."""

    a_row: float
    a_rating: float

    def of(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return λ of users or items, given their numbers of ratings."""
        return np.asarray(self.a_row + self.a_rating * counts, np.float64)


@dataclass
class Part:
    """The users of one worker.

    Attributes
    ----------
    offsets, items, residuals
        Ratings of the worker's user u are those at `offsets[u]:offsets[u + 1]`.
    factors
        Shape (rank, users); with biases (rank + 2, users): the biases, and ones.
    held_out
        Offsets, items and scores minus the mean of held-out ratings; or None.
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    residuals: NDArray[np.float32]
    factors: NDArray[np.float32]
    held_out: _GroupedRatings | None

    def __post_init__(self) -> None:
        self.counts = np.diff(self.offsets)  # ratings of each user
        self.longest = int(self.counts.max(initial=0))


class CoordinateDescent(schmp.Program):
    """min Σ (a_ij − w_i·h_j)² + Σ λ_i‖w_i‖² + Σ λ_j‖h_j‖², one factor at a time (supplement §2, eq. 2–5).

    A round updates one factor: first of the users, by each worker independently for its own users, then of the items,
    from the sums over all workers (equations 4 and 5), identically on every node. Both are exact minimizations over one
    factor with everything else fixed, so the objective never increases except by rounding, with any number of workers.

    The biases are two factors with one side fixed at 1. They share a round.

    Parameters
    ----------
    items : float32 array of shape (rank, n_items)
        Initial factors.
    counts : int64 array of shape (n_items,)
        Ratings of each item.
    penalty : Regularization
        What λ_i and λ_j are.
    biases : bool
        Whether there are biases of users and items.
    workers : int
        Number of workers, each with a `Part` of the users.

    Attributes
    ----------
    factors : float32 array of shape (rank, n_items), or (rank + 2, n_items)
        Factors of the items; the last two rows are ones and the biases.
    squared_error, objective : float
        Σ (a_ij − w_i·h_j)² after the last iteration, and the same plus the penalties.
    """

    def __init__(
        self,
        items: NDArray[np.float32],
        counts: NDArray[np.int64],
        penalty: Regularization,
        *,
        biases: bool,
        workers: int,
    ):
        rank = len(items)
        self.workers = workers
        self.factors = np.where(counts > 0, items, np.float32(0.0))  # items without ratings would never be updated
        # Rows of the users' and of the items' factors that are updated in each round.
        self.rows = [(k, k) for k in range(rank)]
        if biases:
            n_items = len(counts)
            self.factors = np.concatenate([self.factors, np.ones((1, n_items), "f4"), np.zeros((1, n_items), "f4")])
            self.rows.insert(0, (rank, rank + 1))
        self.counts = counts
        self.penalty = penalty
        self.squared_error = self.objective = np.inf
        self._round = 0
        self._table = np.zeros((len(counts), 2), np.float32)
        self._table[:, FACTOR] = self.factors[self.rows[0][0]]

    def schedule(self, iteration: int) -> schmp.Schedule:
        """Return one round per factor."""
        return _rounds(self.workers, len(self.rows))

    def update(self, job: schmp.Job, data: Part, *shards: Any) -> tuple[Any, ...]:
        """Update a factor of the worker's users; after the last one of an iteration, also measure the error."""
        of_users, of_items = self.rows[job.parameters]
        _, last = self.rows[job.parameters - 1]
        sums = np.zeros((len(self.counts), 2), np.float32)
        rank_one_pass(
            data.offsets,
            data.items,
            data.residuals,
            data.factors[last],
            data.factors[of_users],
            data.factors[of_items],
            self._table,
            np.float32(self.penalty.a_row),
            np.float32(self.penalty.a_rating),
            sums,
            data.longest,
        )
        if job.parameters < len(self.rows) - 1:
            return (sums,)
        moving = data.factors[[row for row, _ in self.rows]]
        return sums, squared_sum(data.residuals), _penalties(moving, self.penalty.of(data.counts))

    def aggregate(self, results: Sequence[tuple[Any, ...]]) -> None:
        """Update the same factor of the items."""
        total = np.zeros((len(self.counts), 2))
        with np.errstate(invalid="ignore"):  # what is not finite is found at the end of the epoch
            for sums, *_ in results:
                total += sums
        _, of_items = self.rows[self._round]
        self._round = (self._round + 1) % len(self.rows)
        next_factor = self.factors[self.rows[self._round][0]]
        penalties = self.penalty.a_row, self.penalty.a_rating
        fall = item_step(total, self.counts, *penalties, self.factors[of_items], next_factor, self._table)
        if self._round == 0:
            squares, of_users = (sum(values) for values in list(zip(*results, strict=True))[1:])
            moving = self.factors[[row for _, row in self.rows]]
            self.squared_error = max(squares - fall, 0.0)
            self.objective = self.squared_error + of_users + _penalties(moving, self.penalty.of(self.counts))


@lru_cache(maxsize=8)
def _rounds(workers: int, count: int) -> schmp.Schedule:
    return schmp.round_robin(workers, range(count))


def _penalties(factors: NDArray[np.float32], weights: NDArray[np.float64]) -> float:
    return float((np.square(factors, dtype=np.float64) @ weights).sum())


class CoordinateDescentSolver(EngineSolver):
    """Runs the program on the nodes and threads of `strads.init`.

    Parameters
    ----------
    ratings : records of shape (n,) with the fields user, item, score
    held_out : the same, or None
        Ratings on which the error is measured.
    tables : FactorTables
        Initial and final factors; the tables stay in this process. The users' factors are first set to 0, so that the
        ratings minus the mean are the residuals (Yu et al. 2012). The items' are scaled to variance 1, compared with
        which the penalty of the users is small in the first epoch.
    threads : int or None
        Number of threads on a single process; None: those of `strads.init`.
    """

    def __init__(
        self,
        ratings: NDArray[np.void],
        held_out: NDArray[np.void] | None,
        tables: FactorTables,
        penalty: Regularization,
        *,
        biases: bool,
        threads: int | None,
    ):
        self._tables, self._biases, self._count = tables, biases, len(ratings)
        users, items = tables.factors
        users[:] = 0.0
        items /= max(float(items.std()), 1e-6)
        workers = _WORKERS
        counts = np.bincount(ratings["item"], minlength=len(items))
        self._held_out_count = 0 if held_out is None else len(held_out)
        self._engine = schmp.StaticEngine(
            CoordinateDescent(np.ascontiguousarray(items.T), counts, penalty, biases=biases, workers=workers),
            data=_parts(ratings, held_out, tables, workers, biases=biases),
            threads=threads,
        )

    def run_epoch(self, number: int) -> Epoch:
        """Update every factor once; the objective is that of the program afterwards."""
        nodes = self._engine.iterate().nodes
        squared_error, objective = self._engine.each_node(lambda program: (program.squared_error, program.objective))[0]
        rmse = math.sqrt(squared_error / self._count)
        return Epoch(number * self._count, objective, {"rmse": rmse}, nodes)

    def evaluate(self, number: int) -> dict[str, float]:
        """Return the root mean squared error of the held-out ratings, if any, measured where their users are."""
        if self._held_out_count == 0:
            return {}
        error = sum(self._engine.each_worker(_held_out_error))
        return {"validation_rmse": math.sqrt(error / self._held_out_count)}

    def learnt(self) -> FactorTables:
        """Copy the factors into the tables."""
        users = np.concatenate(self._engine.each_worker(lambda program, part: part.factors), axis=1)
        items = self._engine.each_node(lambda program: program.factors)[0]
        rank = self._tables.rank
        for table, factors, bias in zip(self._tables.arrays, (users, items), (0, 1), strict=True):
            table[:, :rank] = factors[:rank].T
            if self._biases:
                table[:, rank + BIAS] = factors[rank + bias]
        return self._tables


def _parts(
    ratings: NDArray[np.void], held_out: NDArray[np.void] | None, tables: FactorTables, workers: int, *, biases: bool
) -> list[Part]:
    """Group ratings by user, and divide the users into parts of about equal work."""
    n_users = len(tables.users)
    grouped = _by_user(ratings, n_users, tables.mean)
    grouped_held_out = None if held_out is None else _by_user(held_out, n_users, tables.mean)
    offsets = grouped[0]
    cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], workers + 1))
    cuts[0], cuts[-1] = 0, n_users
    parts = []
    for first, last in pairwise(cuts):
        factors = np.zeros((tables.rank + (2 if biases else 0), last - first), np.float32)
        if biases:
            factors[-1] = 1.0
        own_held_out = None if grouped_held_out is None else _cut(grouped_held_out, first, last)
        parts.append(Part(*_cut(grouped, first, last), factors, own_held_out))
    return parts


def _by_user(ratings: NDArray[np.void], n_users: int, mean: float) -> _GroupedRatings:
    offsets = np.zeros(n_users + 1, np.int64)
    items, residuals = np.empty(len(ratings), np.int32), np.empty(len(ratings), np.float32)
    user_ids, item_ids = (np.asarray(ratings[name], np.int32) for name in ("user", "item"))
    scores = np.asarray(ratings["score"], np.float32)
    group_by_key(user_ids, item_ids, scores, offsets, items, residuals)
    residuals -= np.float32(mean)  # those of a model whose users' factors are all 0
    return offsets, items, residuals


def _cut(grouped: _GroupedRatings, first: int, last: int) -> _GroupedRatings:
    offsets, items, values = grouped
    low, high = offsets[first], offsets[last]
    return offsets[first : last + 1] - low, items[low:high], values[low:high]


def _held_out_error(program: CoordinateDescent, part: Part) -> float:
    """Return the sum of squared errors of a worker's held-out ratings."""
    assert part.held_out is not None
    offsets, items, scores = part.held_out
    errors = -scores
    for of_users, of_items in zip(part.factors, program.factors, strict=True):
        add_products(of_users, offsets, items, of_items, errors)
    return float(squared_sum(errors))
