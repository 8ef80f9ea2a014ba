"""Minibatches: their rows, the worker of each, and the order in which they are processed (thesis §7.1.3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from strads.partition import distinct, offsets_of
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.parts import as_sparse


@dataclass(frozen=True)
class Minibatches:
    """Rows cut into minibatches, which are divided among workers in contiguous parts.

    The division depends only on the numbers of rows and workers, so it is the same on any number of nodes.

    Parameters
    ----------
    rows, size
        Number of rows of the data, and of a minibatch; the last minibatch may be smaller.
    workers
        Number of workers of all nodes. They need not be threads: a thread may work for several in turn.
    seed
        Determines the order in which a worker takes its minibatches; None: in storage order.
    """

    rows: int
    size: int
    workers: int
    seed: int | None = None

    @property
    def count(self) -> int:
        """Number of minibatches."""
        return -(-self.rows // self.size)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First row of each minibatch."""
        return np.arange(self.count, dtype=np.int64) * self.size

    @cached_property
    def stops(self) -> NDArray[np.int64]:
        """One past the last row of each minibatch."""
        return np.minimum(self.starts + self.size, self.rows)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Worker w has the minibatches `bounds[w]:bounds[w + 1]`."""
        return np.arange(self.workers + 1, dtype=np.int64) * self.count // self.workers

    def worker_bounds(self, nodes: int) -> NDArray[np.int64]:
        """Node p has the workers `result[p]` to `result[p + 1]` - 1."""
        return np.arange(nodes + 1, dtype=np.int64) * self.workers // nodes

    def row_bounds(self, nodes: int) -> NDArray[np.int64]:
        """Node p has the rows `result[p]:result[p + 1]`, those of its workers' minibatches."""
        return np.minimum(self.bounds[self.worker_bounds(nodes)] * self.size, self.rows)

    def order(self, worker: int) -> NDArray[np.int64]:
        """Minibatches of a worker in the order in which it takes them."""
        own = np.arange(self.bounds[worker], self.bounds[worker + 1])
        return own if self.seed is None else np.random.default_rng([self.seed, worker]).permutation(own)

    def participants(self, together: int = 1) -> NDArray[np.int64]:
        """Return, for each round, how many groups of `together` neighbouring workers have a minibatch in it."""
        rounds = np.sort(np.diff(self.bounds).reshape(-1, together).max(axis=1))
        return len(rounds) - np.searchsorted(rounds, np.arange(rounds[-1]), side="right")


@dataclass(frozen=True)
class TouchedRows:
    """Rows of a table that each of several minibatches touches: `rows[offsets[i]:offsets[i + 1]]`, ascending.

    Attributes
    ----------
    first
        Number of the first minibatch.
    """

    first: int
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows touched by any of the given minibatches, ascending."""
        places = numbers - self.first
        parts = [self.rows[self.offsets[place] : self.offsets[place + 1]] for place in places]
        return parts[0] if len(parts) == 1 else distinct(np.concatenate([*parts, np.empty(0, np.int64)]))


def touched_rows(parts: Iterable[AccessRecords], tables: int, first: int) -> list[TouchedRows]:
    """Return the rows of each table that minibatches touch.

    Parameters
    ----------
    parts
        Records of consecutive minibatches, which are large: each is only looked at once.
    tables
        Number of recorded tables.
    first
        Number of the first minibatch.
    """
    counts: list[list[NDArray[np.int64]]] = [[] for _ in range(tables)]
    rows: list[list[NDArray[np.int64]]] = [[] for _ in range(tables)]
    for records in map(as_sparse, parts):
        minibatch = np.repeat(np.arange(records.tasks), np.diff(records.offsets))
        for table in range(tables):
            own, size = records.tags >> 1 == table, max(records.tables[table].rows, 1)
            found = distinct(minibatch[own] * size + records.rows[own])  # each row once
            counts[table].append(np.bincount(found // size, minlength=records.tasks))
            rows[table].append(found % size)
    ends = [offsets_of(np.concatenate(of_table)) for of_table in counts]
    return [TouchedRows(first, *of_table) for of_table in zip(ends, map(np.concatenate, rows), strict=True)]
