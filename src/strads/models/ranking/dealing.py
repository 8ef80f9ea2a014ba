"""The items of each block, dealt anew every few epochs; the users and likes of each worker."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from strads.models.ranking.likes import Likes

_DEFAULT_MAX_WORKERS = 64
_MIN_ITEMS = 32  # in a block: the other items of triples are drawn from it
_MIN_LIKES = 5_000  # in a job: a job then takes 30 to 50 times as long as starting it


def count_workers(likes: Likes) -> int:
    """Number of logical workers for a problem: it depends on the data alone, so threads do not change the result."""
    by_work = math.isqrt(len(likes.items) // _MIN_LIKES)
    return max(1, min(by_work, likes.n_items // _MIN_ITEMS, likes.n_users, _DEFAULT_MAX_WORKERS))


def deal(counts: NDArray[np.integer], parts: int, seed: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """Divide users or items at random into parts with about the same number of likes.

    Parameters
    ----------
    counts : ndarray of shape (n,)
        Likes of each.
    seed : tuple of int

    Returns
    -------
    list of int64 ndarrays
        Their numbers, part by part.
    """
    order = np.random.default_rng(seed).permutation(len(counts))
    work = np.concatenate([[0], np.cumsum(counts[order] + 1)])
    cuts = np.searchsorted(work, np.linspace(0, work[-1], parts + 1))
    cuts[0], cuts[-1] = 0, len(counts)
    return [order[first:last] for first, last in pairwise(cuts)]


@dataclass(frozen=True, eq=False)
class ItemDeal:
    """The blocks of items for some epochs.

    Attributes
    ----------
    blocks : list of int64 ndarrays
        The items of each block.
    block_of, row_of : int32 ndarrays of shape (n_items,)
        The block of each item, and its row there.
    """

    blocks: list[NDArray[np.int64]]
    block_of: NDArray[np.int32]
    row_of: NDArray[np.int32]

    @classmethod
    def at_random(cls, counts: NDArray[np.integer], blocks: int, seed: tuple[int, ...]) -> Self:
        """Deal items that have `counts` likes."""
        dealt = deal(counts, blocks, seed)
        block_of, row_of = np.empty(len(counts), np.int32), np.empty(len(counts), np.int32)
        for block, items in enumerate(dealt):
            block_of[items] = block
            row_of[items] = np.arange(len(items))
        return cls(dealt, block_of, row_of)
