"""Tables of a parameter server: the driver's, and what a worker has of them."""

import time
import weakref
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike, NDArray

from strads import cluster
from strads.cluster.cores import check_count
from strads.engine.ps.client import TableShape
from strads.engine.ps.execution import Endpoint
from strads.engine.ps.profile import StalenessProfile
from strads.errors import ArgumentError, BodyIndexError, InputError
from strads.ps import _node_tables as on_node
from strads.schedule.consistency import BSP, Consistency

_DTYPES = ("float32", "float64", "int32", "int64")


class Table:
    """Rows of numbers that all workers read and add to (ESSP, "PS Interface").

    The rows are spread over the nodes of `strads.init`: row r is on node r mod nodes. Workers, in `strads.ps.run`, see
    a `WorkerTable` in its place.

    Parameters
    ----------
    rows, cols
        Shape.
    dtype
        float32, float64, int32 or int64.
    consistency
        What a read may miss, and who waits for whom; may be changed between runs.
    cache_bytes
        Memory in which a node keeps rows that its workers have read; by default all of them fit. What has not been
        read for long goes first (approximate LRU).
    read_my_writes
        Whether a worker's reads hold its own updates at once; by default only when those of others are seen too.

    Attributes
    ----------
    staleness
        Clock differentials of the reads of the last run; None before.

    Raises
    ------
    ArgumentError
        For an argument of no meaning.
    """

    def __init__(
        self,
        rows: int,
        cols: int,
        dtype: DTypeLike = np.float32,
        *,
        consistency: Consistency | None = None,
        cache_bytes: int | None = None,
        read_my_writes: bool = False,
    ):
        kind = np.dtype(dtype)
        if kind.name not in _DTYPES:
            raise ArgumentError(f"dtype={kind.name}: a table holds {', '.join(_DTYPES)}")
        if cache_bytes is not None and cache_bytes < 0:
            raise ArgumentError(f"cache_bytes={cache_bytes!r}: give the bytes that a node may use, 0 or more")
        shape = check_count("rows", rows), check_count("cols", cols)
        self._shape = TableShape(*shape, kind, cache_bytes, bool(read_my_writes))
        self.consistency = BSP() if consistency is None else consistency
        self.staleness: StalenessProfile | None = None
        self._cluster = cluster.current().cluster
        self._name = self._cluster.new_name()
        self._cluster.run(on_node.make, self._name, self._shape)
        self._finalizer = weakref.finalize(self, self._cluster.discard, self._name)

    @classmethod
    def from_numpy(cls, values: ArrayLike, **options: Any) -> Self:
        """Make a table of an array (rows, cols); the other parameters are those of the class."""
        array = np.asarray(values)
        if array.ndim != 2:
            raise InputError(f"values has the shape {array.shape}: give an array (rows, cols)")
        table = cls(array.shape[0], array.shape[1], array.dtype, **options)
        table.write(np.arange(len(array)), array)
        return table

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape.rows, self._shape.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values."""
        return np.dtype(self._shape.dtype)

    @property
    def consistency(self) -> Consistency:
        """What a read may miss, and who waits for whom."""
        return self._consistency

    @consistency.setter
    def consistency(self, value: Consistency) -> None:
        if not isinstance(value, Consistency):
            raise ArgumentError(
                f"consistency={value!r}: give an object such as BSP(), SSP(3), ESSP(3), ASP() or VAP(1.0)"
            )
        self._consistency = value

    def __len__(self) -> int:
        return self._shape.rows

    def to_numpy(self) -> NDArray[Any]:
        """Return all rows, an array (rows, cols)."""
        out = np.empty(self.shape, self.dtype)
        parts = self._cluster.run(on_node.content, self._name)
        for rank, part in enumerate(parts):
            out[rank :: len(parts)] = part
        return out

    def read(self, rows: ArrayLike) -> NDArray[Any]:
        """Return rows, an array (len(rows), cols); between runs."""
        wanted = checked_rows(rows, len(self))
        out = np.empty((len(wanted), self._shape.columns), self.dtype)
        places = self._by_node(wanted)
        for which, part in zip(
            places, self._cluster.run(on_node.read, self._name, each=[(wanted[own],) for own in places]), strict=True
        ):
            out[which] = part
        return out

    def write(self, rows: ArrayLike, values: ArrayLike) -> None:
        """Replace rows, between runs; of a row that repeats the last value stays."""
        chosen = checked_rows(rows, len(self))
        array = checked_values(values, (len(chosen), self._shape.columns), self.dtype)
        each = [(chosen[own], array[own]) for own in self._by_node(chosen)]
        self._cluster.run(on_node.write, self._name, each=each)

    def _by_node(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        size = self._cluster.size
        return [np.flatnonzero(rows % size == rank) for rank in range(size)]

    def __repr__(self) -> str:
        return f"<ps.Table of {self._shape.rows} × {self._shape.columns} {self.dtype}, {self._consistency}>"


class WorkerTable:
    """A table as one worker has it, while it runs. To be used by the worker's own thread."""

    def __init__(self, endpoint: Endpoint, shape: TableShape, worker: int):
        self._endpoint = endpoint
        self._worker = worker
        self._size = shape.rows
        self._columns = shape.columns
        self.dtype = np.dtype(shape.dtype)
        self.seconds = 0.0  # in get, inc and clock so far

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._size, self._columns

    def get(self, rows: ArrayLike, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return a copy of rows, as old as the consistency model admits; waits until there are such.

        Parameters
        ----------
        rows
            Numbers, which may repeat; one number gives one row.
        out
            Contiguous array (len(rows), cols) of the table's dtype to write to.

        Returns
        -------
        Array (len(rows), cols), or (cols,) for one number.

        Raises
        ------
        BodyIndexError
            For a row that is not in the table.
        """
        start = time.perf_counter()
        wanted = checked_rows(rows, self._size)
        if out is None:
            out = np.empty((len(wanted), self._columns), self.dtype)
        elif out.shape != (len(wanted), self._columns) or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise ArgumentError(
                f"out has shape {out.shape} and dtype {out.dtype}: "
                f"a contiguous {(len(wanted), self._columns)} of {self.dtype} is needed"
            )
        self._endpoint.get(self._worker, wanted, out)
        self.seconds += time.perf_counter() - start
        return out[0] if np.ndim(rows) == 0 else out

    def inc(self, rows: ArrayLike, deltas: ArrayLike) -> None:
        """Add to rows: others see it after `clock`.

        Parameters
        ----------
        rows
            Numbers, which may repeat.
        deltas
            What to add, array (len(rows), cols), or whatever can be broadcast to it.
        """
        start = time.perf_counter()
        chosen = checked_rows(rows, self._size)
        self._endpoint.inc(self._worker, chosen, checked_values(deltas, (len(chosen), self._columns), self.dtype))
        self.seconds += time.perf_counter() - start

    def clock(self) -> None:
        """Send this worker's updates, and begin the next clock."""
        start = time.perf_counter()
        self._endpoint.clock(self._worker)
        self.seconds += time.perf_counter() - start

    def __len__(self) -> int:
        return self._size


def checked_rows(rows: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return row numbers as an array, or raise BodyIndexError for one outside."""
    array = np.atleast_1d(np.asarray(rows))
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ArgumentError(f"rows has shape {array.shape} and dtype {array.dtype}: give whole numbers")
    numbers = np.ascontiguousarray(array, np.int64)
    place = _first_outside(numbers, size)
    if place >= 0:
        raise BodyIndexError(f"row {numbers[place]} (at place {place} of rows): the table has the rows 0 … {size - 1}")
    return numbers


@njit(nogil=True, cache=True)
def _first_outside(rows, size):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        if rows[i] < 0 or rows[i] >= size:
            return i
    return -1


def checked_values(values: ArrayLike, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values as a contiguous array of a shape, or raise InputError."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(f"values of dtype {array.dtype}: give numbers")
    if array.shape != tuple(shape):
        try:
            array = np.broadcast_to(array, shape)
        except ValueError:
            raise InputError(f"values of shape {array.shape}: {tuple(shape)} is needed") from None
    return np.ascontiguousarray(array, dtype)
