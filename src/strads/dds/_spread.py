"""The content of a table on the nodes of a cluster, and how the driver reads and writes it there."""

import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Cluster
from strads.dds._hash_index import HashIndex
from strads.dds._layout import Bounds, Layout, inverse, numbers, owners
from strads.dds._node_tables import Selection, read_rows, read_values, store_index, write_rows
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.errors import NodeFailure
from strads.partition import offsets_of, places_of

_LOST = "the content of this table was stored on the nodes and is lost with them"


class Spread:
    """Rows on the nodes of a cluster, in shards under one name; the shards are discarded with this object.

    Attributes
    ----------
    cluster, name
        `node.store[name]` is a `Shard` on every node of the cluster.
    layout
        Shape and dtype of the whole table.
    bounds : (nodes + 1,) int64
        Node p holds the rows `bounds[p]:bounds[p + 1]`.
    discard
        Drops the shards.
    """

    def __init__(self, cluster: Cluster, name: str, layout: Layout, bounds: Bounds):
        self.cluster = cluster
        self.name = name
        self.layout = layout
        self.bounds = bounds
        self.discard = _discarded_with(self, cluster, name)

    def run(self, program: Callable[..., Any], *arguments: Any, each: Sequence[tuple[Any, ...]] | None = None) -> Any:
        """Run a node program on the shards; the error for a lost node says what was lost."""
        try:
            return self.cluster.run(program, self.name, *arguments, each=each)
        except NodeFailure as error:
            raise lost(error) from error

    def gather(self) -> Storage:
        """Return all rows."""
        home = self.layout.empty()
        for rank, values in enumerate(self.run(read_values)):
            low, high = self.bounds[rank : rank + 2]
            numbers(home[low:high])[...] = values
        return home

    def column(self, field: str) -> NDArray[Any]:
        """Return one field of all records."""
        return np.concatenate(self.run(read_values, field))

    def range(self, low: int, high: int) -> Storage:
        """Return a copy of rows `low..high - 1`."""
        pieces = self.run(read_rows, each=[(share,) for share in self._shares(low, high)])
        if self.layout.offsets is None:
            return np.concatenate(pieces)
        offsets = self.layout.offsets[low : high + 1]
        return RaggedArray(np.concatenate([piece.values for piece in pieces]), offsets - offsets[0])

    def rows(self, rows: NDArray[np.int64]) -> Storage:
        """Return a copy of the given rows, in this order."""
        order = np.argsort(owners(self.bounds, rows), kind="stable")
        shares = self._split(rows[order])
        pieces = self.run(read_rows, each=[(share,) for share in shares])
        place = inverse(order)
        received = np.concatenate([numbers(piece) for piece in pieces])
        if self.layout.offsets is None:
            return received[place]
        return RaggedArray(received, offsets_of(np.diff(self.layout.offsets)[rows[order]])).take(place)

    def write(self, selection: Selection, values: NDArray[Any], field: str | None = None) -> None:
        """Write rows, or a field of them; `values` are all their numbers, or one row to broadcast (if dense)."""
        if isinstance(selection, tuple):
            each = self._write_range(*selection, values)
        else:
            each = self._write_rows(selection, values)
        self.run(write_rows, field, each=each)

    def _write_range(self, low: int, high: int, values: NDArray[Any]) -> list[tuple[Selection, NDArray[Any]]]:
        each: list[tuple[Selection, NDArray[Any]]] = []
        repeated = self._is_repeated(values)
        for first, last in self._shares(low, high):
            if repeated:
                own = values
            elif self.layout.offsets is None:
                own = values[first - low : last - low]
            else:
                ends = self.layout.offsets[[low, first, last]]
                own = values[ends[1] - ends[0] : ends[2] - ends[0]]
            each.append(((first, last), own))
        return each

    def _write_rows(self, rows: NDArray[np.int64], values: NDArray[Any]) -> list[tuple[Selection, NDArray[Any]]]:
        order = np.argsort(owners(self.bounds, rows), kind="stable")
        shares = self._split(rows[order])
        if self._is_repeated(values):
            return [(share, values) for share in shares]
        if self.layout.offsets is not None:
            starts = offsets_of(np.diff(self.layout.offsets)[rows])
            values = values[places_of(starts, order)]
            ends = [int(np.diff(self.layout.offsets)[share].sum()) for share in shares]
        else:
            values = values[order]
            ends = [len(share) for share in shares]
        return list(zip(shares, np.split(values, np.cumsum(ends)[:-1]), strict=True))

    def _is_repeated(self, values: NDArray[Any]) -> bool:
        return self.layout.offsets is None and values.ndim < len(self.layout.shape)

    def _shares(self, low: int, high: int) -> list[tuple[int, int]]:
        """Return the part of rows `low..high - 1` that each node holds."""
        cuts = np.clip(self.bounds, low, max(low, high))
        return [(int(a), int(b)) for a, b in pairwise(cuts)]

    def _split(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Split row numbers by the node that holds the rows."""
        ends = np.searchsorted(owners(self.bounds, rows), np.arange(1, self.cluster.size))
        return np.split(rows, ends)


def lost(error: NodeFailure) -> NodeFailure:
    """Return the error for content on nodes that do not answer."""
    if str(error).startswith(_LOST):
        return error
    return NodeFailure(f"{_LOST}: {error}", rank=error.rank, host=error.host)


class SpreadIndex:
    """The index of a map, replicated on every node of a cluster; it is discarded with this object.

    Attributes
    ----------
    cluster, name
        `node.store[name]` is the `HashIndex` on every node of the cluster.
    index
        The index itself.
    """

    def __init__(self, cluster: Cluster, index: HashIndex):
        self.cluster = cluster
        self.index = index
        self.name = cluster.new_name()
        cluster.run(store_index, self.name, index)
        _discarded_with(self, cluster, self.name)


def _discarded_with(owner: object, cluster: Cluster, name: str) -> "weakref.finalize[..., object]":
    """Let what the nodes have under a name be discarded with its owner, or earlier by calling the result."""
    discard = weakref.finalize(owner, _discard, weakref.ref(cluster), name)
    discard.atexit = False
    return discard


def _discard(cluster: "weakref.ref[Cluster]", name: str) -> None:
    alive = cluster()
    if alive is not None and not alive.closed:
        alive.discard(name)
