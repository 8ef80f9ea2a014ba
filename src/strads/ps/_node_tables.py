"""Node programs on the shards of a parameter server's tables; row r is at place r // nodes of node r mod nodes."""

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.engine.ps.messages import Values
from strads.engine.ps.table_format import RowStore, TableFormat


def make(node: Node, name: str, format: TableFormat) -> None:
    """Make a shard of zeros."""
    places = len(range(node.rank, format.rows, node.size))
    node.store[name] = format.make_rows(places)


def read(node: Node, name: str, rows: NDArray[np.int64]) -> Values:
    """Return rows of this node."""
    store: RowStore = node.store[name]
    return store.read(rows // node.size)


def write(node: Node, name: str, rows: NDArray[np.int64], values: Values) -> None:
    """Replace rows of this node."""
    store: RowStore = node.store[name]
    store.write(rows // node.size, values)
