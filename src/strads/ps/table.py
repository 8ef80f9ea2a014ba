"""Tables of a parameter server, as the driver sees them."""

import numbers
import weakref
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse as scipy_sparse

from strads import cluster
from strads.checkpoints import Load, Save, Tree, digest, observe
from strads.cluster import Node
from strads.cluster.cores import check_count
from strads.cluster.driver import check_driver
from strads.engine.ps.messages import Values
from strads.engine.ps.profile import StalenessProfile
from strads.engine.ps.table_format import RowStore, TableFormat
from strads.errors import ArgumentError, CheckpointError, InputError
from strads.ps._values import as_matrix, checked_rows, checked_values
from strads.ps.worker_table import WorkerTable
from strads.schedule.consistency import BSP, Consistency, Push

_DTYPES = ("float32", "float64", "int32", "int64")

_MAX_SPARSE_COLUMNS = (1 << 31) - 1


class Table:
    """Rows of numbers that all workers read and add to (ESSP, "PS Interface").

    The rows are distributed over the nodes of `strads.init`: row r is on node r mod nodes. Workers, in
    `strads.ps.run`, get a `WorkerTable` in its place.

    Parameters
    ----------
    rows, columns
        Shape of the table.
    dtype
        float32, float64, int32 or int64.
    consistency
        Which updates a read may miss, and who waits for whom: BSP() by default; may be changed between runs.
    cache_bytes
        Memory in which a node caches rows that its workers have read; by default enough for all rows. The least
        recently used rows are evicted first (approximate LRU).
    read_my_writes
        Whether a worker's reads include its own updates immediately; by default only together with those of others.
    sparse
        Whether only nonzero entries of rows are stored and sent: for rows with many columns, few of them nonzero.
        Reads give `scipy.sparse.csr_array`.

    Attributes
    ----------
    staleness
        Clock differentials of the reads in the last run; None before the first.

    Raises
    ------
    ArgumentError
        For an invalid argument.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        dtype: DTypeLike = np.float32,
        *,
        consistency: Consistency | None = None,
        cache_bytes: int | None = None,
        read_my_writes: bool = False,
        sparse: bool = False,
    ):
        check_driver()
        kind = np.dtype(dtype).newbyteorder("=")
        if kind.name not in _DTYPES:
            raise ArgumentError(f"dtype={kind.name}: a table holds {', '.join(_DTYPES)}")
        if cache_bytes is not None and not (isinstance(cache_bytes, numbers.Real) and 0 <= cache_bytes < np.inf):
            raise ArgumentError(f"cache_bytes={cache_bytes!r}: give the bytes that a node may use, 0 or more")
        shape = check_count("rows", rows), check_count("columns", columns)
        most = None if cache_bytes is None else int(cache_bytes)
        if sparse and shape[1] > _MAX_SPARSE_COLUMNS:
            raise ArgumentError(f"columns={columns}: a sparse table has at most {_MAX_SPARSE_COLUMNS}")
        self._format = TableFormat(*shape, kind, most, bool(read_my_writes), bool(sparse))
        self.consistency = BSP() if consistency is None else consistency
        self.staleness: StalenessProfile | None = None
        self.version = 0  # increases with each run and each write
        self._make()

    def _make(self) -> None:
        """Make the rows on the nodes."""
        self._cluster = cluster.current().cluster
        self._name = self._cluster.new_name()
        self._cluster.run(_make_shard, self._name, self._format)
        self._finalizer = weakref.finalize(self, self._cluster.discard, self._name)

    @classmethod
    def from_numpy(cls, values: Any, **options: Any) -> Self:
        """Make a table from a dense or sparse array (rows, columns); the other parameters are those of the class."""
        array = values.tocsr() if scipy_sparse.issparse(values) else np.asarray(values)
        if array.ndim != 2:
            raise InputError(f"values has the shape {array.shape}: give an array (rows, columns)")
        table = cls(array.shape[0], array.shape[1], array.dtype, **options)
        table.write(np.arange(len(table)), array)
        return table

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._format.rows, self._format.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        return np.dtype(self._format.dtype)

    @property
    def consistency(self) -> Consistency:
        """Which updates a read may miss, and who waits for whom."""
        return self._consistency

    @consistency.setter
    def consistency(self, value: Consistency) -> None:
        if not isinstance(value, Consistency):
            raise ArgumentError(
                f"consistency={value!r}: give an object such as BSP(), SSP(3), ESSP(3), ASP() or VAP(1.0)"
            )
        is_bounded = value.bound(0) < np.inf
        if is_bounded and self._format.sparse:
            raise ArgumentError(f"{value} bounds the entries of dense tables: make this one without sparse=True")
        if is_bounded and (value.in_order or value.push is not Push.UPDATE):
            raise ArgumentError(f"{value} has a bound, which needs push = Push.UPDATE, not in_order")
        self._consistency = value

    def __len__(self) -> int:
        return self._format.rows

    def to_numpy(self) -> NDArray[Any]:
        """Return all rows as an array (rows, columns)."""
        rows = self.read(np.arange(len(self)))
        return rows.toarray() if scipy_sparse.issparse(rows) else rows

    def read(self, rows: ArrayLike) -> Any:
        """Return rows as an array (len(rows), columns), a `csr_array` for a sparse table; only between runs."""
        check_driver()
        observe(self)
        wanted = checked_rows(rows, len(self))
        places = self._by_node(wanted)
        found = self._cluster.run(_read_shard, self._name, each=[(wanted[own],) for own in places])
        out = self._format.make_result(len(wanted))
        for positions, values in zip(places, found, strict=True):
            out[positions] = values
        return as_matrix(out, self._format.columns)

    def write(self, rows: ArrayLike, values: ArrayLike | scipy_sparse.sparray) -> None:
        """Replace rows, only between runs; for a repeated row, the last value wins."""
        check_driver()
        observe(self, writes=True)
        chosen = checked_rows(rows, len(self))
        content = checked_values(values, len(chosen), self._format)
        each = [(chosen[own], content[own]) for own in self._by_node(chosen)]
        self._cluster.run(_write_shard, self._name, each=each)
        self.version += 1

    def fixed_content(self) -> str:
        """Return a checksum of what was written to a new table."""
        return digest(self.read(np.arange(len(self))) if self.version else None)

    def checkpoint_state(self, save: Save) -> Tree:
        """Return all rows as a tree."""
        rows = self.read(np.arange(len(self)))
        return save([rows.data, rows.indices, rows.indptr] if scipy_sparse.issparse(rows) else rows)

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore all rows; on other nodes if those that had them are gone."""
        if self._cluster.closed:
            self._finalizer.detach()
            self._make()
        found = load(tree)
        rows = scipy_sparse.csr_array(tuple(found), shape=self.shape) if isinstance(found, list) else found
        if rows.shape != self.shape:
            raise CheckpointError(f"a table of shape {self.shape} has shape {rows.shape} in the checkpoint")
        self.write(np.arange(len(self)), rows)

    def _by_node(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        size = self._cluster.size
        return [np.flatnonzero(rows % size == rank) for rank in range(size)]

    if not TYPE_CHECKING:  # for type checkers, an unknown attribute remains an error

        def __getattr__(self, name):
            hint = ": pass the table to ps.run, which passes it to workers" if hasattr(WorkerTable, name) else ""
            raise AttributeError(f"a ps.Table has no attribute {name!r}{hint}", name=name, obj=self)

    def __reduce__(self) -> Any:
        raise ArgumentError("a ps.Table cannot be sent or copied: pass it to ps.run as a separate argument")

    def __repr__(self) -> str:
        kind = "sparse " if self._format.sparse else ""
        return f"<ps.Table of {kind}{self._format.rows} × {self._format.columns} {self.dtype}, {self._consistency}>"


def _make_shard(node: Node, name: str, format: TableFormat) -> None:
    """Make a node's shard of zeros; row r is at place r // nodes of node r mod nodes."""
    node.store[name] = format.make_rows(len(range(node.rank, format.rows, node.size)))


def _read_shard(node: Node, name: str, rows: NDArray[np.int64]) -> Values:
    """Return rows of a node."""
    store: RowStore = node.store[name]
    return store.read(rows // node.size)


def _write_shard(node: Node, name: str, rows: NDArray[np.int64], values: Values) -> None:
    """Replace rows of a node."""
    store: RowStore = node.store[name]
    store.write(rows // node.size, values)
