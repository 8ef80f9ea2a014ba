"""Node programs over the shards of a parameter server's tables; row r is at place r // nodes of node r mod nodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.engine.ps.client import TableShape
from strads.engine.ps.dense_rows import DenseRows


def make(node: Node, name: str, shape: TableShape) -> None:
    """Make a shard of zeros."""
    places = len(range(node.rank, shape.rows, node.size))
    node.store[name] = DenseRows.zeros(places, shape.columns, shape.dtype)


def content(node: Node, name: str) -> NDArray[Any]:
    """Return all rows of this node."""
    store: DenseRows = node.store[name]
    return store.values


def read(node: Node, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of this node."""
    store: DenseRows = node.store[name]
    return store.read(rows // node.size)


def write(node: Node, name: str, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
    """Replace rows of this node."""
    store: DenseRows = node.store[name]
    store.write(rows // node.size, values)
