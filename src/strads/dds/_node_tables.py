"""Node programs that fill, read, write, move and copy the shards of tables.

`name` is the name of the shard in `node.store`. A selection is a range `(low, high)` or an array of numbers of rows
that lie on the node.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints import RowSum, SaveTicket, Tree, row_sum, saving
from strads.cluster import Node
from strads.dds._hash_index import HashIndex
from strads.dds._layout import Bounds, Layout, numbers, take
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.dds.shard import Shard, fetch_ranges
from strads.partition import offsets_of, places_of

Selection = tuple[int, int] | NDArray[np.int64]


def store_values(node: Node, name: str, layout: Layout, bounds: Bounds, values: NDArray[Any]) -> None:
    """Make a shard from the numbers of this node's rows."""
    shard = Shard.zeros(layout, bounds, node.rank)
    shard.values(shard.low, shard.high)[...] = values
    node.store[name] = shard


def store_rows(node: Node, name: str, rows: Storage) -> tuple[Layout, Bounds]:
    """Make a table from the rows of each node, in rank order (a collective).

    All nodes pass rows of the same dtype and shape. Returns the table's layout and bounds.
    """
    bounds = offsets_of(np.array(node.comm.allgather(len(rows)), np.int64))
    total = int(bounds[-1])
    if isinstance(rows, RaggedArray):
        lengths = np.concatenate(node.comm.allgather(rows.lengths))
        layout = Layout((total,), rows.dtype, offsets_of(lengths))
    else:
        layout = Layout((total, *rows.shape[1:]), rows.dtype)
    store_values(node, name, layout, bounds, numbers(rows))
    return layout, bounds


def store_index(node: Node, name: str, index: HashIndex) -> None:
    """Store the index of a map."""
    node.store[name] = index


def read_values(node: Node, name: str, field: str | None = None) -> NDArray[Any]:
    """Return the numbers of this node's rows, or one field of its records."""
    shard: Shard = node.store[name]
    values = shard.values(shard.low, shard.high)
    return values if field is None else values[field].copy()


def save_rows(node: Node, name: str, ticket: SaveTicket) -> Tree:
    """Save this node's rows in a checkpoint; returns their tree."""
    shard: Shard = node.store[name]
    with saving(ticket, node.rank, node.store) as save:
        return save.apart(shard.values(shard.low, shard.high))


def sum_rows(node: Node, name: str, first: int) -> RowSum:
    """Return the checksum of this node's rows, of which the first one (or its first number, if ragged) is `first`."""
    shard: Shard = node.store[name]
    return row_sum(shard.values(shard.low, shard.high), first)


def read_rows(node: Node, name: str, selection: Selection) -> NDArray[Any] | RaggedArray:
    """Return rows of this node."""
    shard: Shard = node.store[name]
    return shard.range(*selection) if isinstance(selection, tuple) else take(shard.whole, selection)


def write_rows(node: Node, name: str, field: str | None, selection: Selection, values: NDArray[Any]) -> None:
    """Write rows of this node, or one field of them, from numbers of the table's dtype; a single row is broadcast."""
    shard: Shard = node.store[name]
    shard.is_complete = False
    if isinstance(shard.whole, RaggedArray):
        if isinstance(selection, tuple):
            shard.values(*selection)[...] = values
        else:
            shard.whole.values[places_of(shard.whole.offsets, selection)] = values
        return
    target = shard.whole if field is None else shard.whole[field]
    target[slice(*selection) if isinstance(selection, tuple) else selection] = values


def move_rows(node: Node, name: str, bounds: Bounds) -> None:
    """Redistribute the rows; each is sent directly from its old node to its new one (a collective)."""
    shard: Shard = node.store[name]
    wanted = [(int(low), int(high)) for low, high in pairwise(bounds)]
    was_complete = all(node.comm.allgather(shard.is_complete))
    if not was_complete:
        fetch_ranges(node, shard, wanted)
    shard.bounds = bounds
    shard.is_complete = was_complete
    if not was_complete:
        shard.release_others()


def copy_table(node: Node, name: str, new_name: str) -> None:
    """Copy a table; each node copies its own rows."""
    shard: Shard = node.store[name]
    layout = Layout.of(shard.whole)
    store_values(node, new_name, layout, shard.bounds, shard.values(shard.low, shard.high))
