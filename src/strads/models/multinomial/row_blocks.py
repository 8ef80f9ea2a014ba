"""Samples in a fixed number of blocks of rows, pinned to the nodes: loss and gradient, bitwise alike for any of them.

Each block is evaluated by one thread, with one BLAS thread. The blocks' results are added up in pairs, pairs of pairs
and so on, each where both of its parts are, else at the driver. So the result depends on the samples alone, not on the
numbers of threads and nodes or on the backend.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from strads import cluster
from strads.cluster import Node, ThreadTeam
from strads.dds.ragged import read_only
from strads.models._blas_threads import one_blas_thread
from strads.models.arrays import Array
from strads.models.kernels.softmax import dense_rows, sparse_rows
from strads.schedule.nodes.workers import place_workers

_MAX_BLOCKS = 16  # of rows, each added up by one thread
_MIN_WORK = 1 << 22  # multiplications and additions of a block that are worth a call


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The loss at some coefficients.

    Attributes
    ----------
    loss
        Σ_i c_i (log Σ_k exp Z_ik − Z_{i, y_i}).
    negative_entropy
        Σ_i c_i Σ_k P_ik log P_ik.
    gradient
        Of the loss, float64 of shape (features + 1, classes); the last row is that of the intercepts.
    curvature
        The Hessian with respect to the intercepts, of shape (classes, classes), if it was wanted; else empty.
    """

    loss: float
    negative_entropy: float
    gradient: Array
    curvature: Array


_Sums = tuple[float, float, Array, Array]  # the fields of `Evaluation`, of some blocks


@dataclass(eq=False)
class _Block:
    """Consecutive rows: a dense matrix, or the arrays of a CSR matrix."""

    number: int
    rows: NDArray[np.floating] | tuple[NDArray[Any], ...]
    codes: NDArray[np.int32]
    weights: Array
    gradient: Array

    def evaluate(self, coefficients: NDArray[np.floating], wants_curvature: bool) -> _Sums:
        """Return the fields of `Evaluation` for these rows; the gradient's memory is used again by the next call."""
        # Arrays may be read-only or not, but one kernel is to compute all: two compiled apart could round differently.
        W, intercept = read_only(coefficients[:-1]), read_only(coefficients[-1])
        samples = read_only(self.codes), read_only(self.weights)
        size = len(intercept) if wants_curvature else 0
        out = self.gradient[:-1], self.gradient[-1], np.zeros((size, size))
        if isinstance(self.rows, tuple):
            sums = sparse_rows(*map(read_only, self.rows), *samples, W, intercept, *out)
        else:
            sums = dense_rows(read_only(self.rows), *samples, W, intercept, *out)
        return (*sums, self.gradient, out[-1])

    def weighted_sums(self) -> Array:
        """Return the weighted sums of the columns."""
        if isinstance(self.rows, tuple):
            values, columns, indptr = self.rows
            each = np.repeat(self.weights, np.diff(indptr)) * values
            return np.bincount(columns, each, len(self.gradient) - 1).astype(np.float64)
        return np.asarray(self.weights.astype(self.rows.dtype) @ self.rows, np.float64)


class RowBlocks:
    """The samples, on the nodes of `strads.init`.

    Parameters
    ----------
    X : array in C order or CSR matrix of shape (samples, features), float32 or float64
        Not copied on a single node.
    codes : int32 array of shape (samples,)
        Number of each sample's class.
    weights : float64 array of shape (samples,)
        c.
    classes : int
        K.
    threads : int, optional
        Threads to use on a single process; by default those of `strads.init`.

    Attributes
    ----------
    rows_read : int
        Number of rows evaluated so far: all samples in each call of `evaluate`.
    """

    checkpointed = ("rows_read",)

    def __init__(self, X: Any, codes: NDArray[np.int32], weights: Array, classes: int, threads: int | None = None):
        self.X, self.codes, self.weights, self.classes, self.threads = X, codes, weights, classes, threads
        self.samples, self.features = X.shape
        self.rows_read = 0
        runtime = cluster.current()
        self._cluster = runtime.cluster
        self._name = self._cluster.new_name()
        weakref.finalize(self, self._cluster.discard, self._name)
        bounds = self._bounds()
        node_of = place_workers(len(bounds) - 1, self._cluster.size)
        each: list[tuple[list[_Block]]] = [([],) for _ in range(self._cluster.size)]
        for number, (place, (begin, end)) in enumerate(zip(node_of, pairwise(bounds), strict=True)):
            each[place][0].append(self._cut(number, begin, end))
        own = threads if runtime.is_local else None
        self._cluster.run(_keep, self._name, own, each=each)

    @property
    def work(self) -> int:
        """Multiplications and additions of a product of X and the coefficients."""
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size) * self.classes

    def _bounds(self) -> NDArray[np.int64]:
        """Bounds of blocks of about equal work; their number, a power of two, depends on the work alone."""
        enough = min(max(1, self.work // _MIN_WORK), self.samples)
        blocks = min(_MAX_BLOCKS, 1 << (int(enough).bit_length() - 1))
        if not sp.issparse(self.X):
            return self.samples * np.arange(blocks + 1) // blocks
        work = self.X.indptr.astype(np.int64) + np.arange(self.samples + 1)
        bounds = np.searchsorted(work, work[-1] * np.arange(blocks + 1) // blocks)
        bounds[-1] = self.samples
        return bounds

    def _cut(self, number: int, begin: int, end: int) -> _Block:
        rows: Any = self.X[begin:end]
        if sp.issparse(rows):
            rows = rows.data, rows.indices, rows.indptr
        gradient = np.empty((self.features + 1, self.classes))
        return _Block(number, rows, self.codes[begin:end], self.weights[begin:end], gradient)

    def evaluate(self, coefficients: Array, *, single: bool = False, wants_curvature: bool = False) -> Evaluation:
        """Evaluate coefficients of shape (features + 1, classes), the last row being the intercepts.

        Parameters
        ----------
        single
            Whether to compute in single precision, which is twice as fast.
        wants_curvature
            Whether to compute the Hessian with respect to the intercepts, too.
        """
        self.rows_read += self.samples
        sent = np.ascontiguousarray(coefficients, np.float32 if single else np.float64)
        found = self._cluster.run(_evaluate, self._name, sent, wants_curvature)
        (sums,) = _add_pairs({key: each for of_node in found for key, each in of_node.items()}, self.team).values()
        loss, negative_entropy, gradient, curvature = sums
        return Evaluation(loss, negative_entropy, gradient.copy(), curvature)

    @property
    def team(self) -> ThreadTeam:
        """The threads of this process."""
        runtime = cluster.current()
        return runtime.team(self.threads if runtime.is_local else None)

    def weighted_sums(self) -> Array:
        """Return Xᵀ c, of shape (features,)."""
        return np.sum([each for of_node in self._cluster.run(_weighted_sums, self._name) for each in of_node], axis=0)

    def gram(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the lower triangle of rowsᵀ rows, computed on all nodes; above it, anything.

        Parameters
        ----------
        rows : float32 array of shape (m, columns)
        """
        columns = rows.shape[1]
        slabs = [(int(a), int(b)) for a, b in pairwise(columns * np.arange(_MAX_BLOCKS + 1) // _MAX_BLOCKS) if b > a]
        each = [(slabs[rank :: self._cluster.size],) for rank in range(self._cluster.size)]
        gram = np.zeros((columns, columns), np.float32)
        for of_node in self._cluster.run(_gram_slabs, self._name, rows, each=each):
            for (begin, end), slab in of_node.items():
                gram[begin:end, :end] = slab
        return gram


def in_slabs(function: Any, rows: int, work: int, team: ThreadTeam) -> None:
    """Call `function(begin, end)` for slabs of rows, on the threads of a team if there is enough work."""
    count = min(8, rows, work // _MIN_WORK)
    if count < 2:
        function(0, rows)
        return
    bounds = rows * np.arange(count + 1) // count
    team.for_each(lambda slab: function(bounds[slab], bounds[slab + 1]), count)


def _add_pairs(sums: dict[tuple[int, int], _Sums], team: ThreadTeam) -> dict[tuple[int, int], _Sums]:
    """Add up neighbours as in a binary tree over all blocks, as far as both are here; overwrites arrays of the first.

    The keys are level and number: `sums[2, 3]` is the sum of the blocks 12 to 15.
    """
    while True:
        pairs = (key for key in sums if key[1] % 2 == 0 and (key[0], key[1] + 1) in sums)
        level, number = next(pairs, (-1, 0))
        if level < 0:
            return sums
        one, other = sums.pop((level, number)), sums.pop((level, number + 1))
        gradient = _sum(one[2], other[2], team)
        sums[level + 1, number // 2] = one[0] + other[0], one[1] + other[1], gradient, one[3] + other[3]


def _sum(one: Array, other: Array, team: ThreadTeam) -> Array:
    total = one if one.flags.writeable else np.empty_like(one)  # what has been received is not

    def add(begin: int, end: int) -> None:
        np.add(one[begin:end], other[begin:end], out=total[begin:end])

    in_slabs(add, len(total), total.size, team)
    return total


# Node programs.


@dataclass(eq=False)
class _Part:
    """The blocks on a node."""

    blocks: list[_Block]
    team: ThreadTeam

    def of_each_block(self, function: Callable[[_Block], Any]) -> list[Any]:
        """Return what a function returns for each block, computed by the threads."""
        results: list[Any] = [None] * len(self.blocks)

        def call(number: int) -> None:
            results[number] = function(self.blocks[number])

        with one_blas_thread():
            self.team.for_each(call, len(results))
        return results


def _keep(node: Node, name: str, threads: int | None, blocks: list[_Block]) -> None:
    node.store[name] = _Part(blocks, node.team if threads is None else cluster.current().team(threads))


def _evaluate(
    node: Node, name: str, coefficients: NDArray[np.floating], wants_curvature: bool
) -> dict[tuple[int, int], _Sums]:
    part: _Part = node.store[name]
    found = part.of_each_block(lambda block: ((0, block.number), block.evaluate(coefficients, wants_curvature)))
    return _add_pairs(dict(found), part.team)


def _weighted_sums(node: Node, name: str) -> list[Array]:
    part: _Part = node.store[name]
    return part.of_each_block(_Block.weighted_sums)


def _gram_slabs(
    node: Node, name: str, rows: NDArray[np.float32], slabs: list[tuple[int, int]]
) -> dict[tuple[int, int], NDArray[np.float32]]:
    part: _Part = node.store[name]
    found: dict[tuple[int, int], NDArray[np.float32]] = {}
    heaviest_first = slabs[::-1]

    def multiply(number: int) -> None:
        begin, end = heaviest_first[number]
        found[begin, end] = rows[:, begin:end].T @ rows[:, :end]

    with one_blas_thread():
        part.team.for_each(multiply, len(slabs))
    return found
