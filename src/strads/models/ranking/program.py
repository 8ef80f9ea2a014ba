"""Bayesian personalized ranking as a SchMP program: users stay with workers, blocks of items rotate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.alias_tables import AliasTable, alias_table
from strads.models.kernels.aligned import aligned_zeros
from strads.models.kernels.grouping import group_by_key
from strads.models.kernels.personalized_ranking import NO_FILTER, make_filter, rank_cell
from strads.models.ranking.dealing import ItemDeal
from strads.rng.philox import mixed_key
from strads.schmp import Job, Program, Schedule, static_rotation

_ITEMS = 1  # purpose of the random numbers
_FIGURES = 3

Factors = NDArray[np.float32]


def popularity(counts: NDArray[np.integer]) -> AliasTable:
    """Return the table that draws items in proportion to their likes; any of them, if none has likes."""
    most = counts.max(initial=0)
    return alias_table(counts / most if most else np.ones(len(counts)))


class ItemRows(NamedTuple):
    """Parameters of some items.

    Attributes
    ----------
    items : int64 ndarray of shape (n,)
    factors : float32 ndarray of shape (n, width)
    biases : float32 ndarray of shape (n,)
    """

    items: NDArray[np.int64]
    factors: Factors
    biases: NDArray[np.float32]


class Result(NamedTuple):
    """What a worker reports of an epoch: the figures of `rank_cell`, and the block it ends with before a new deal."""

    figures: NDArray[np.float64]
    block: ItemRows | None


@dataclass(eq=False)
class UserPart:
    """The data of a worker: its users' factors and likes.

    Attributes
    ----------
    factors : float32 ndarray of shape (users, width)
    users, items : int32 ndarrays of shape (n,)
        The likes, in the order in which they are visited: rows of `factors`, and items.
    dealt : int
        Number of the deal that the arrays below come from.
    offsets : int64 ndarray of shape (blocks + 1,)
        Where the likes of each block start in the arrays below.
    cell_users, cell_rows : int32 ndarrays of shape (n,)
        The likes block by block: rows of `factors`, and rows of the block.
    """

    factors: Factors
    users: NDArray[np.int32]
    items: NDArray[np.int32]

    def __post_init__(self) -> None:
        self.dealt = -1
        self.offsets = np.zeros(0, np.int64)
        self.cell_users, self.cell_rows = np.empty_like(self.users), np.empty_like(self.items)

    def sort(self, items: ItemDeal, number: int) -> None:
        """Sort the likes by block of items."""
        self.offsets = np.zeros(len(items.blocks) + 1, np.int64)
        blocks, rows = items.block_of[self.items], items.row_of[self.items]
        group_by_key(blocks, rows, self.users, self.offsets, self.cell_rows, self.cell_users)
        self.dealt = number

    def cell(self, block: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return users and rows of the likes of one block."""
        first, last = self.offsets[block : block + 2]
        return self.cell_users[first:last], self.cell_rows[first:last]


class ItemBlock:
    """A shard: a block of items, as of a deal; empty before the first.

    Attributes
    ----------
    dealt : int
        Number of the deal that the block comes from; −1 before the first.
    rows : ItemRows
        Parameters of its items; factors are padded to whole SIMD vectors.
    table : AliasTable
        Draws rows of the block in proportion to the likes of their items.
    """

    def __init__(self) -> None:
        self.dealt = -1
        self.rows = ItemRows(np.zeros(0, np.int64), np.zeros((0, 0), np.float32), np.zeros(0, np.float32))
        self.table = AliasTable(np.zeros(0, np.uint32), np.zeros(0, np.int32))

    def take(self, items: NDArray[np.int64], whole: ItemRows, counts: NDArray[np.int64], number: int) -> None:
        """Take the rows of these items from those of all; `counts` are the likes of all."""
        factors = aligned_zeros((len(items), whole.factors.shape[1]), np.float32)
        np.take(whole.factors, items, axis=0, out=factors)
        self.rows = ItemRows(items, factors, whole.biases[items])
        self.table = popularity(counts[items])
        self.dealt = number


class RankingRotation(Program):
    """Stochastic gradient ascent of Σ ln σ(x_ui − x_uj) − λ/2 ‖Θ‖² (Rendle et al. 2009); the data are `UserPart`s, the
    shards `ItemBlock`s, one for each worker.

    A job visits the likes (u, i) of one worker and one block once. The other item j is drawn from the same block, with
    a probability proportional to its likes (as PyTorch-BigGraph draws within a bucket; Lerer et al. 2019, §3.1). Every
    `epochs_per_deal` epochs the items are dealt to new blocks: all nodes then exchange all rows, once.

    Parameters
    ----------
    workers : int
        P, also the number of blocks of items.
    items : ItemRows
        Initial values of all items, in order.
    counts : int64 ndarray of shape (n_items,)
        Likes of each item.
    rate, regularization : float
        η and λ.
    verify : bool
        Whether the other item must not be a like of the user.
    epochs_per_deal : int
        Number of epochs between two deals.
    seed : int
        Determines all random numbers.

    Attributes
    ----------
    figures : float64 ndarray of shape (3,)
        Of the last epoch; see `rank_cell`.
    iteration : int
        Number of the current epoch, from 0.
    dealt : int
        Number of the current deal, from 0; −1 before the first.
    """

    def __init__(
        self,
        workers: int,
        items: ItemRows,
        counts: NDArray[np.int64],
        *,
        rate: float,
        regularization: float,
        verify: bool,
        epochs_per_deal: int,
        seed: int,
    ):
        self.workers = workers
        self.counts = counts
        self.rate, self.regularization = np.float32(rate), np.float32(regularization)
        self.verify = verify
        self.epochs_per_deal = epochs_per_deal
        self.seed = seed
        self.figures = np.zeros(_FIGURES)
        self.iteration = 0
        self.dealt = -1
        self._whole: ItemRows | None = items  # from the end of one deal to the first epoch of the next
        self._deal: ItemDeal

    def schedule(self, iteration: int) -> Schedule:
        """Rotate the blocks of items over the workers; deal the items when it is time."""
        self.iteration = iteration
        if iteration % self.epochs_per_deal == 0:
            self.dealt = iteration // self.epochs_per_deal
            self._deal = ItemDeal.at_random(self.counts, self.workers, (self.seed, _ITEMS, self.dealt))
        return static_rotation(self.workers)

    def update(self, job: Job, data: UserPart, *shards: ItemBlock) -> Result:
        """Make a step for each of the worker's likes in the block."""
        (number,), (block,) = job.shards, shards
        if data.dealt != self.dealt:
            data.sort(self._deal, self.dealt)
        if block.dealt != self.dealt:
            assert self._whole is not None
            block.take(self._deal.blocks[number], self._whole, self.counts, self.dealt)
        figures = np.zeros(_FIGURES)
        users, rows = data.cell(number)
        if len(users):
            self._rank(job, data, block, users, rows, figures)
        is_last = (number - job.worker) % self.workers == self.workers - 1
        return Result(figures, block.rows if is_last and self._is_last_of_deal else None)

    def _rank(
        self,
        job: Job,
        data: UserPart,
        block: ItemBlock,
        users: NDArray[np.int32],
        rows: NDArray[np.int32],
        figures: NDArray[np.float64],
    ) -> None:
        items = block.rows
        cell = job.worker * self.workers + job.shards[0]
        key = mixed_key(np.uint64(self.seed), np.uint64(cell), np.uint64(self.iteration))
        likes = make_filter(users, rows, len(data.factors), len(items.items)) if self.verify else NO_FILTER
        rank_cell(
            users, rows, data.factors, items.factors, items.biases, block.table, likes, self.verify,
            self.rate, self.regularization, np.uint64(key), figures,
        )  # fmt: skip

    @property
    def _is_last_of_deal(self) -> bool:
        return (self.iteration + 1) % self.epochs_per_deal == 0

    def merge(self, earlier: Result, later: Result) -> Result:
        """Add the figures; the block is that of the worker's last job."""
        return Result(earlier.figures + later.figures, later.block)

    def aggregate(self, results: Sequence[Result | None]) -> None:
        """Sum the figures; before a new deal, collect the rows of all items."""
        found = [result for result in results if result is not None]
        self.figures = np.sum([result.figures for result in found], axis=0)
        self._whole = None
        if self._is_last_of_deal:
            self._whole = collected([result.block for result in found if result.block is not None])


def collected(blocks: Sequence[ItemRows]) -> ItemRows:
    """Return the rows of all items in order, given those of all blocks."""
    items = np.concatenate([block.items for block in blocks])
    factors = np.empty((len(items), blocks[0].factors.shape[1]), np.float32)
    biases = np.empty(len(items), np.float32)
    for block in blocks:
        factors[block.items], biases[block.items] = block.factors, block.biases
    return ItemRows(np.arange(len(items)), factors, biases)
