"""Relaxed tables: one replica per lane, whose changes are summed at barriers (decision 4)."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Comm
from strads.engine.views.live import Replicated
from strads.partition import even_bounds

_APART = 128  # bytes between replicas: processors fetch cache lines in pairs, and lanes must not wait for each other's


class Replicas:
    """A relaxed table and its replicas on this node.

    Lanes are summed in order across all nodes, so the result depends only on the plan.

    Parameters
    ----------
    table
        All rows, with the same content on every node.
    lanes
        Number of replicas on this node.
    comm
        Connection to the other nodes, if any: all have the same number of lanes and synchronize at the same barriers.

    Attributes
    ----------
    table
        The table as passed: without the changes that the replicas have made since the last `synchronize`.
    storage
        The replicas, as bodies on the lanes see them.
    """

    def __init__(self, table: NDArray[Any], lanes: int, comm: Comm | None = None):
        self.table = table
        row_bytes = max(table.nbytes // max(len(table), 1), 1)
        unused = -(-_APART // row_bytes)  # rows
        self.storage = Replicated(np.empty((lanes, len(table) + unused, *table.shape[1:]), table.dtype), len(table))
        self._all = self.storage.data[:, : len(table)]
        self._all[:] = table
        self._comm = comm

    def synchronize(self) -> None:
        """Add every replica's changes since the last call to the table, and reset all replicas to the sum."""
        changes = self._all - self.table
        if self._comm is None or self._comm.size == 1:
            for change in changes:
                self.table += change
        else:
            self._sum_over_nodes(self._comm, changes.reshape(len(changes), -1))
        self._all[:] = self.table

    def _sum_over_nodes(self, comm: Comm, changes: NDArray[Any]) -> None:
        """Sum over all lanes, each node a slice of the table, then gather the slices on every node."""
        flat = self.table.reshape(-1)
        bounds = even_bounds(len(flat), comm.size)
        slices = [slice(low, high) for low, high in pairwise(bounds)]
        received = comm.alltoall([np.ascontiguousarray(changes[:, part]) for part in slices])
        mine = flat[slices[comm.rank]]
        for of_node in received:
            for change in of_node:
                mine += change
        for part, total in zip(slices, comm.allgather(mine), strict=True):
            flat[part] = total
