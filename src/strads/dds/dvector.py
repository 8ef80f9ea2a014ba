"""The table of rows that loops read and write."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.dds._arrow import storage_from_arrow
from strads.dds._creation import Seed, Shape, check_shape, normal_array, uniform_array
from strads.dds._display import display, summary
from strads.dds._dtypes import resolve_dtype
from strads.dds._indexing import RowIndexError, row_number
from strads.dds._ragged import RaggedArray
from strads.dds._storage import Storage, as_storage
from strads.errors import ArgumentError, InputError


class dvector:
    """Rows of numbers, records, or sequences of different lengths, changed in place by loops (thesis §7.1.2).

    Parameters
    ----------
    data : array-like, dvector or RaggedArray
        An ndarray of shape (rows, …) of any numeric or structured dtype; (nested) lists of numbers; a list of
        sequences of unequal lengths, which makes *ragged* rows (`RaggedArray.from_rows` makes ragged rows of
        equal lengths too). Fields of records must be numbers, bools or sub-arrays of them.
    dtype : dtype-like, optional
        By default what NumPy gives `data`. The bytes are always stored in native order.
    copy : bool, default True
        With False an ndarray or RaggedArray is adopted without a copy, if it is writeable, C-contiguous and
        of the right dtype. It then becomes read-only for the caller: plans are cached by content, so all
        writes must pass through strads. (Views of it that were taken before stay writeable; do not use them.)
        A dvector is always copied.

    Raises
    ------
    ArgumentError
        If `data` is no array of numbers: strings, objects, times, single values.

    Notes ----- What is read with `v[…]` cannot be written through; assign with `v[…] = x`, or `v[i] = v[i] +
    x`. One row or a slice is a read-only *view*, so it shows later writes; an array of indices or a mask
    gives a copy. Rows of records are `np.record`: `v[0].user`.

    Examples
    --------
    >>> v = dvector([[1.0, 2.0], [3.0, 4.0]])
    >>> v[0] = 5.0
    >>> v.to_list()
    [[5.0, 5.0], [3.0, 4.0]]
    """

    def __init__(self, data: Any, dtype: DTypeLike | None = None, *, copy: bool = True) -> None:
        if isinstance(data, dvector):
            data, copy = data.storage, True
        self._storage: Storage = as_storage(data, dtype, copy=copy)
        self._version = 0

    @classmethod
    def _adopt(cls, storage: Storage) -> Self:
        """Wrap arrays that were made by strads and that nobody else holds."""
        return cls(storage, copy=False)

    @classmethod
    def zeros(cls, shape: Shape, dtype: DTypeLike = "f4") -> Self:
        """Rows of zeros; `shape` is (rows, …) or the number of rows."""
        return cls._adopt(np.zeros(check_shape(shape), resolve_dtype(dtype)))

    @classmethod
    def full(cls, shape: Shape, value: Any, dtype: DTypeLike | None = None) -> Self:
        """Rows that all hold `value`; the dtype is that of the value unless given (as in `np.full`)."""
        target = None if dtype is None else resolve_dtype(dtype)
        try:
            filled = np.full(check_shape(shape), value, target)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"cannot fill rows of shape {shape} with {value!r}: {error}") from error
        return cls._adopt(filled)

    @classmethod
    def uniform(
        cls,
        shape: Shape,
        low: float = 0.0,
        high: float = 1.0,
        *,
        seed: Seed = None,
        dtype: DTypeLike = "f4",
    ) -> Self:
        """Independent numbers from [low, high); the same seed gives the same bits.

        `dtype` is float32 or float64; `seed` is an int, a NumPy Generator, or None for different numbers each
        time.
        """
        return cls._adopt(uniform_array(shape, low, high, seed, dtype))

    @classmethod
    def normal(
        cls,
        shape: Shape,
        mean: float = 0.0,
        std: float = 1.0,
        *,
        seed: Seed = None,
        dtype: DTypeLike = "f4",
    ) -> Self:
        """Independent normal numbers; the same seed gives the same bits (see `uniform` for the arguments)."""
        return cls._adopt(normal_array(shape, mean, std, seed, dtype))

    @classmethod
    def from_numpy(cls, array: NDArray[Any], *, copy: bool = True) -> Self:
        """The rows of an ndarray; `copy=False` adopts it and makes it read-only for the caller."""
        if not isinstance(array, np.ndarray):
            raise ArgumentError(f"from_numpy needs an ndarray, not {type(array).__name__}: use strads.dvector(…)")
        return cls(array, copy=copy)

    @classmethod
    def from_arrow(cls, data: Any) -> Self:
        """The rows of an Arrow object, always copied.

        Parameters
        ----------
        data : pyarrow Table, RecordBatch, Array or ChunkedArray
            A table gives (aligned) records, an array of numbers scalars, a list array ragged rows, a
            fixed-size list array rows of that size. Bools are bools.

        Raises
        ------
        InputError
            If a value is null; column and row (from 0) are named.
        ArgumentError
            If `data`, or a column of it, is of another type.
        """
        return cls._adopt(storage_from_arrow(data))

    @property
    def storage(self) -> Storage:
        """The writeable arrays themselves, for engines. Who writes to them must call `mark_written`."""
        return self._storage

    @property
    def version(self) -> int:
        """Grows with each write through strads; equal versions mean equal content."""
        return self._version

    def mark_written(self) -> None:
        """Say that the content may have changed: raises `version`."""
        self._version += 1

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, …); (rows,) for records and ragged rows."""
        return (len(self._storage),) if isinstance(self._storage, RaggedArray) else self._storage.shape

    @property
    def ndim(self) -> int:
        """Number of axes, `len(shape)`."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the numbers, or of the records."""
        return self._storage.dtype

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._storage.nbytes

    @property
    def is_ragged(self) -> bool:
        """Whether rows have lengths of their own."""
        return isinstance(self._storage, RaggedArray)

    @property
    def is_records(self) -> bool:
        """Whether rows are records with named fields."""
        return self.dtype.names is not None

    def __len__(self) -> int:
        return len(self._storage)

    def __iter__(self) -> Iterator[Any]:
        """Rows in order, each as `v[i]` gives it."""
        readable = self._readable()
        return iter(readable)

    def __getitem__(self, index: Any) -> Any:
        """A row, a slice, rows by mask or by numbers, or the column of a field; never writes through.

        Raises
        ------
        IndexError
            (a `StradsError` too) if a row does not exist; index and number of rows are named.
        """
        index = self._checked(index)
        readable = self._readable()
        if isinstance(readable, RaggedArray):
            return readable[index] if isinstance(index, int | slice) else readable.take(index)
        try:
            return readable[index]
        except IndexError as error:
            raise RowIndexError(str(error)) from error

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write a row, rows or a column as NumPy does, casting to the dtype. Ragged rows keep their lengths.

        Raises
        ------
        IndexError
            (a `StradsError` too) if a row does not exist.
        InputError
            If the value does not fit.
        """
        index = self._checked(index)
        try:
            if isinstance(self._storage, RaggedArray):
                self._assign_ragged(self._storage, index, value)
            else:
                self._storage[index] = value.storage if isinstance(value, dvector) else value
        except IndexError as error:
            raise RowIndexError(str(error)) from error
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"this value cannot be assigned to [{index!r:.60}] of {summary(self._storage)}: {error}"
            ) from error
        self.mark_written()

    def _assign_ragged(self, storage: RaggedArray, index: Any, value: Any) -> None:
        """Write whole rows; all are checked before the first is written."""
        targets = [storage[int(row)] for row in self._row_numbers(index)]
        rows = [value] if isinstance(index, int) else value.storage if isinstance(value, dvector) else value
        sources = [np.asarray(row) for row in rows]
        if len(sources) != len(targets):
            raise InputError(f"{len(sources)} rows cannot be assigned to {len(targets)} ragged rows")
        for target, source in zip(targets, sources, strict=True):
            if source.shape not in ((), target.shape):
                raise InputError(
                    f"a ragged row of length {len(target)} cannot take shape {source.shape}: rows keep their lengths"
                )
        for target, source in zip(targets, sources, strict=True):
            target[...] = source

    def _checked(self, index: Any) -> Any:
        """`index` if it is a valid one; a single row number counted from 0."""
        if isinstance(index, str):
            if self.dtype.names is None or index not in self.dtype.names:
                fields = f"the fields are {', '.join(self.dtype.names)}" if self.dtype.names else "rows have no fields"
                raise ArgumentError(f"there is no field {index!r}: {fields}")
            return index
        if isinstance(index, bool | np.bool_):
            raise ArgumentError(f"{index!r} is not a row number")
        if isinstance(index, slice):
            return index
        if hasattr(index, "__index__") and np.ndim(index) == 0:
            return row_number(index, len(self))
        return index if isinstance(index, tuple) and not self.is_ragged else self._row_numbers(index)

    def _row_numbers(self, index: Any) -> NDArray[np.int64]:
        """The rows that a number, slice, mask or array of numbers stands for, each in 0 … len - 1."""
        if isinstance(index, slice):
            return np.arange(*index.indices(len(self)))
        rows = np.atleast_1d(np.asarray(index))
        if rows.dtype == np.bool_:
            if rows.shape != (len(self),):
                raise RowIndexError(f"a mask of shape {rows.shape} does not fit {len(self)} rows")
            return np.flatnonzero(rows)
        if rows.size == 0:
            return rows.astype(np.int64)
        if rows.dtype.kind not in "iu":
            raise ArgumentError(f"rows are indexed by integers, slices or masks, not by {index!r:.60}")
        outside = (rows < -len(self)) | (rows >= len(self))
        if outside.any():
            row_number(rows[outside][0], len(self))
        return np.where(rows < 0, rows + len(self), rows).astype(np.int64)

    def _readable(self) -> Storage:
        """The storage seen read-only; records such that a row is an `np.record`."""
        if isinstance(self._storage, RaggedArray):
            return RaggedArray(_read_only(self._storage.values), _read_only(self._storage.offsets))
        view = _read_only(self._storage)
        return view.view(np.recarray) if self.is_records else view

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if isinstance(self._storage, RaggedArray):
            raise ArgumentError("ragged rows are no rectangular array: use v.to_numpy() for a list of arrays")
        target = self.dtype if dtype is None else np.dtype(dtype)
        if copy or (copy is None and target != self.dtype):
            return self._storage.astype(target, copy=True)
        if target != self.dtype:
            raise ValueError(f"converting {self.dtype} to {target} needs a copy")
        return _read_only(self._storage)

    def to_numpy(self, *, copy: bool = False) -> Any:
        """The rows as an ndarray; ragged rows as a list of ndarrays.

        Without a copy they are read-only views that show later writes; with `copy=True` they belong to the
        caller.
        """
        if isinstance(self._storage, RaggedArray):
            values = self._storage.values.copy() if copy else _read_only(self._storage.values)
            return list(RaggedArray(values, self._storage.offsets))
        return self._storage.copy() if copy else _read_only(self._storage)

    def to_list(self) -> list[Any]:
        """The rows as Python numbers, (nested) lists of them, or tuples for records."""
        return self._storage.to_list() if isinstance(self._storage, RaggedArray) else self._storage.tolist()

    def __copy__(self) -> Self:
        """Copy of the content too: two tables that shared memory would not know of each other's writes."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def copy(self) -> Self:
        """An independent dvector of the same content, at version 0."""
        return type(self)(self)

    def __repr__(self) -> str:
        return display(self._storage)


def from_numpy(array: NDArray[Any], *, copy: bool = True) -> dvector:
    """The same as `dvector.from_numpy`."""
    return dvector.from_numpy(array, copy=copy)


def from_arrow(data: Any) -> dvector:
    """The same as `dvector.from_arrow`."""
    return dvector.from_arrow(data)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
