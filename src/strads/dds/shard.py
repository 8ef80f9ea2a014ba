"""A node's part of a table, and the exchange of rows between nodes."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.dds._indexing import row_number
from strads.dds._layout import Bounds, Layout, inverse, numbers, owners, take
from strads.dds._memory import release, zeros
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.partition import offsets_of, places_of

_FETCH = 1  # tag


@dataclass(eq=False)
class Shard:
    """Rows `low..high - 1` of a table, in arrays that address all its rows (`whole`).

    Attributes
    ----------
    whole
        Arrays of the full table's shape. Rows that lie elsewhere take no memory and read as zeros, unless
        `is_complete`, or unless an engine has fetched them. The offsets of ragged rows are on all nodes.
    bounds : (nodes + 1,) int64
        Node p holds the rows `bounds[p]:bounds[p + 1]`.
    rank
        The node of this shard.
    is_complete
        Whether all rows are up to date here: from `complete` until the next write.
    """

    whole: Storage
    bounds: NDArray[np.int64]
    rank: int
    is_complete: bool = False

    @classmethod
    def zeros(cls, layout: Layout, bounds: Bounds, rank: int) -> "Shard":
        """Make a shard of zeros."""
        if layout.offsets is None:
            return cls(zeros(layout.shape, layout.dtype, reserve=False), bounds, rank)
        values = zeros((layout.values,), layout.dtype, reserve=False)
        return cls(RaggedArray(values, layout.offsets), bounds, rank)

    @property
    def low(self) -> int:
        """First row that this node holds."""
        return int(self.bounds[self.rank])

    @property
    def high(self) -> int:
        """One past the last row that this node holds."""
        return int(self.bounds[self.rank + 1])

    @property
    def rows(self) -> NDArray[Any] | RaggedArray:
        """The rows that this node holds; a view."""
        return self.range(self.low, self.high)

    def range(self, low: int, high: int) -> Storage:
        """Return rows `low..high - 1`; a view (of the values, for ragged rows)."""
        return self.whole[low:high]

    def values(self, low: int, high: int) -> NDArray[Any]:
        """Return all numbers of rows `low..high - 1`, contiguous, as they are sent over the network."""
        if isinstance(self.whole, RaggedArray):
            return self.whole.values[self.whole.offsets[low] : self.whole.offsets[high]]
        return self.whole[low:high]

    def value_rows(self, rows: slice | NDArray[np.int64]) -> tuple[NDArray[Any], slice | NDArray[np.int64]]:
        """Return an array, and the positions in it of the given rows: for ragged rows, of their values."""
        if not isinstance(self.whole, RaggedArray):
            return self.whole, rows
        offsets = self.whole.offsets
        if isinstance(rows, slice):
            return self.whole.values, slice(int(offsets[rows.start]), int(offsets[rows.stop]))
        return self.whole.values, places_of(offsets, rows)

    def release_others(self) -> None:
        """Release the memory of the rows that are stored elsewhere; they read as zeros again."""
        low, high, array = self.low, self.high, self.whole
        if isinstance(array, RaggedArray):
            low, high = int(array.offsets[low]), int(array.offsets[high])
            array = array.values
        release(array, 0, low)
        release(array, high, len(array))


def gather_all_rows(node: Node, *shards: Shard) -> None:
    """Fetch to every node all rows of some tables that are on other nodes (a collective)."""
    if not shards:
        return
    everywhere = node.comm.allgather([shard.is_complete for shard in shards])
    for shard, complete_at in zip(shards, zip(*everywhere, strict=True), strict=True):
        if not all(complete_at):
            fetch_ranges(node, shard, [(0, int(shard.bounds[-1]))] * node.size)
            shard.is_complete = True


def fetch_ranges(node: Node, shard: Shard, wanted: list[tuple[int, int]]) -> None:
    """Copy to each node p the rows `wanted[p]`, from the nodes that hold them, in place (a collective)."""
    arrivals = []
    low, high = wanted[node.rank]
    for source in range(node.size):
        first, last = max(low, int(shard.bounds[source])), min(high, int(shard.bounds[source + 1]))
        if source != node.rank and first < last:
            arrivals.append(node.comm.expect(shard.values(first, last), source, _FETCH))
    for step in range(1, node.size):
        to = (node.rank + step) % node.size
        first, last = max(wanted[to][0], shard.low), min(wanted[to][1], shard.high)
        if first < last:
            node.comm.put(shard.values(first, last), to, _FETCH)
    for arrival in arrivals:
        node.comm.wait_arrival(arrival)
    node.comm.barrier()  # from here on, the sent rows may change


def fetch_rows(node: Node, shard: Shard, rows: NDArray[np.integer]) -> Storage:
    """Return copies of any rows, in the order asked for, from the nodes that hold them (a collective).

    Parameters
    ----------
    node, shard
        This node and its part of the table.
    rows : integers of shape (wanted,)
        Row numbers, which may differ between nodes; in any order, possibly repeated.

    Raises
    ------
    IndexError
        If a row does not exist.
    """
    wanted = np.asarray(rows, np.int64)
    total = int(shard.bounds[-1])
    for outside in wanted[(wanted < 0) | (wanted >= total)][:1]:
        row_number(outside if outside >= 0 else -total - 1, total)
    holders = owners(shard.bounds, wanted)
    order = np.argsort(holders.astype(np.uint16), kind="stable")  # two bytes: NumPy uses radix sort
    ends = np.searchsorted(holders[order], np.arange(node.size + 1))
    asked = node.comm.alltoall([wanted[order[a:b]] for a, b in pairwise(ends)])
    answers = node.comm.alltoall([numbers(take(shard.whole, theirs)) for theirs in asked])
    place = inverse(order)
    received = np.concatenate(answers)
    if isinstance(shard.whole, RaggedArray):
        lengths = shard.whole.offsets[wanted[order] + 1] - shard.whole.offsets[wanted[order]]
        return RaggedArray(received, offsets_of(lengths)).take(place)
    return take(received, place)
