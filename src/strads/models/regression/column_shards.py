"""A design matrix whose columns are partitioned over the nodes, which compute in parallel and send their results."""

import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from strads import cluster
from strads.cluster import Node
from strads.models.arrays import Array
from strads.models.kernels.columns import Columns, SparseColumns
from strads.models.regression.design import Design
from strads.models.regression.local_design import DenseDesign, LocalDesign, SparseDesign


class ColumnShards(Design):
    """Columns of a local design, copied to the nodes of `strads.init` in shares of equally many entries.

    A column's sums are computed on one node, in the same order as in a single process: results are bitwise identical on
    any number of nodes. Working sets are copied from the design in this process, `local`, which also provides the
    attributes: `shape`, `dtype`, `entries`, `reads_columns` and `columns`, those of all columns.
    """

    def __init__(self, local: LocalDesign):
        self.shape, self.dtype, self.entries = local.shape, local.dtype, local.entries
        self.reads_columns = local.reads_columns
        self.columns = local.columns
        self._local = local
        self._cluster = cluster.current().cluster
        size = self._cluster.size
        if isinstance(local.columns, SparseColumns):
            ends = local.columns.indptr[1:].astype(np.int64)
            self._bounds = np.searchsorted(ends, local.entries * np.arange(size + 1) // size).astype(np.int64)
            self._bounds[-1] = local.shape[1]
        else:
            self._bounds = local.shape[1] * np.arange(size + 1) // size
        self._name = self._cluster.new_name()
        weakref.finalize(self, self._cluster.discard, self._name)
        parts = [(local.cut(begin, end),) for begin, end in zip(self._bounds, self._bounds[1:], strict=False)]
        self._cluster.run(_keep, self._name, self.reads_columns, each=parts)

    def correlate(self, vector: Array, columns: NDArray[np.int64] | None = None) -> Array:
        """Return Xᵀ·vector for all columns, or for those given in ascending order."""
        if columns is None:
            return np.concatenate(self._cluster.run(_call, self._name, "correlate", vector))
        places = np.searchsorted(columns, self._bounds)
        own = [(columns[places[rank] : places[rank + 1]] - self._bounds[rank],) for rank in range(self._cluster.size)]
        return np.concatenate(self._cluster.run(_call, self._name, "correlate", vector, each=own))

    def moments(self, weights: Array) -> tuple[Array, Array]:
        """Return Σ_i weights_i x_ij and Σ_i weights_i x_ij² of every column."""
        sums, squares = zip(*self._cluster.run(_call, self._name, "moments", weights), strict=True)
        return np.concatenate(sums), np.concatenate(squares)

    def gather(self, columns: NDArray[np.int64]) -> Columns:
        """Return a copy of the given columns on this node, in float64 and in the order given."""
        return self._local.gather(columns)


def _keep(node: Node, name: str, reads_columns: bool, matrix: Any) -> None:
    if sp.issparse(matrix):
        node.store[name] = SparseDesign(matrix, node.team)
    else:
        node.store[name] = DenseDesign(matrix, node.team, reads_columns=reads_columns)


def _call(node: Node, name: str, method: str, *arguments: Any) -> Any:
    """Call a method of the design on this node."""
    return getattr(node.store[name], method)(*arguments)
