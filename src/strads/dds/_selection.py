"""Indexing of tables: which rows an index selects, reading them, and writing to them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.dds._indexing import RowIndexError, row_number
from strads.dds._layout import Layout, numbers
from strads.dds._node_tables import Selection
from strads.dds._spread import Spread
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray, read_only
from strads.errors import ArgumentError, InputError
from strads.partition import offsets_of


class NeedsAllRows(Exception):
    """Raised for an index that cannot be read or written row by row."""


def checked_index(index: Any, layout: Layout) -> Any:
    """Return `index` if it is valid; a single row number is made non-negative."""
    names = layout.dtype.names
    if isinstance(index, str):
        if names is None or index not in names:
            fields = f"the fields are {', '.join(names)}" if names else "rows have no fields"
            raise ArgumentError(f"there is no field {index!r}: {fields}")
        return index
    if isinstance(index, bool | np.bool_):
        raise ArgumentError(f"{index!r} is not a row number")
    if isinstance(index, slice):
        return index
    if hasattr(index, "__index__") and np.ndim(index) == 0:
        return row_number(index, len(layout))
    return index if isinstance(index, tuple) and not layout.is_ragged else row_numbers(index, len(layout))


def row_numbers(index: Any, length: int) -> NDArray[np.int64]:
    """Return the rows that a number, slice, mask or array of numbers selects, each in 0 … length - 1."""
    if isinstance(index, slice):
        return np.arange(*index.indices(length))
    rows = np.atleast_1d(np.asarray(index))
    if rows.dtype == np.bool_:
        if rows.shape != (length,):
            raise RowIndexError(f"a mask of shape {rows.shape} does not fit {length} rows")
        return np.flatnonzero(rows)
    if rows.size == 0:
        return rows.astype(np.int64)
    if rows.dtype.kind not in "iu":
        raise ArgumentError(f"rows are indexed by integers, slices or masks, not by {index!r:.60}")
    outside = (rows < -length) | (rows >= length)
    if outside.any():
        row_number(rows[outside][0], length)
    return np.where(rows < 0, rows + length, rows).astype(np.int64)


def readable(storage: Storage) -> Storage:
    """Return read-only views of arrays; rows of records are `np.record`."""
    if isinstance(storage, RaggedArray):
        return RaggedArray(read_only(storage.values), read_only(storage.offsets))
    view = read_only(storage)
    return view.view(np.recarray) if storage.dtype.names is not None else view


def read(storage: Storage, index: Any) -> Any:
    """Return `v[index]` of arrays at the driver; the index has been checked."""
    rows = readable(storage)
    if isinstance(rows, RaggedArray):
        return rows[index] if isinstance(index, int | slice) else rows.take(index)
    return rows[index]


def read_remote(spread: Spread, index: Any) -> Any:
    """Return `v[index]` of rows on nodes; only these rows are fetched."""
    layout = spread.layout
    if isinstance(index, str):
        return read_only(spread.column(index))
    if isinstance(index, tuple):
        selection, inside = _split_tuple(index, layout)
        return read(_fetch(spread, selection), inside)
    if isinstance(index, int):
        return read(spread.range(index, index + 1), 0)
    if isinstance(index, slice):
        return readable(_fetch(spread, _selection(index, len(layout))))
    rows = spread.rows(index.reshape(-1))
    if isinstance(rows, RaggedArray):
        return rows
    shaped = rows.reshape(index.shape + layout.shape[1:])
    return shaped.view(np.recarray) if layout.dtype.names is not None else shaped


def assign(storage: Storage, index: Any, value: Any) -> None:
    """Execute `v[index] = value` on arrays at the driver; the index has been checked."""
    if isinstance(storage, RaggedArray):
        rows, joined = ragged_values(Layout.of(storage), index, value)
        for number, row in zip(rows, joined, strict=True):
            storage[int(number)][...] = row
    else:
        storage[index] = value


def assign_remote(spread: Spread, index: Any, value: Any) -> None:
    """Execute `v[index] = value` on rows on nodes; only these rows are sent."""
    layout = spread.layout
    if layout.is_ragged:
        rows, joined = ragged_values(layout, index, value)
        spread.write(rows, joined.values)
    elif isinstance(index, str):
        spread.write((0, len(layout)), _fitted(value, len(layout), (), layout.dtype[index]), index)
    elif isinstance(index, tuple):
        selection, inside = _split_tuple(index, layout)
        fetched = numbers(_fetch(spread, selection))
        fetched[inside] = value
        spread.write(selection, fetched)
    elif isinstance(index, int):
        row = np.empty(layout.shape[1:], layout.dtype)
        row[...] = value
        spread.write((index, index + 1), row)
    else:
        _write(spread, index, value)


def _write(spread: Spread, index: Any, value: Any) -> None:
    layout = spread.layout
    selection = _selection(index, len(layout)) if isinstance(index, slice) else index.reshape(-1)
    count = selection[1] - selection[0] if isinstance(selection, tuple) else len(selection)
    shape = (count,) if isinstance(index, slice) else index.shape
    values = _fitted(value, shape, layout.shape[1:], layout.dtype)
    if values.ndim > len(layout.shape) - 1:
        values = values.reshape(count, *layout.shape[1:])
    spread.write(selection, values)


def _fitted(value: Any, count: int | tuple[int, ...], row: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return `value` cast as in a NumPy assignment to rows: one row for all of them, or an array of rows."""
    is_record = dtype.names is not None and isinstance(value, tuple | np.void)
    if is_record or np.ndim(value) <= len(row):
        fitted = np.empty(row, dtype)
    else:
        fitted = np.empty((*([count] if isinstance(count, int) else count), *row), dtype)
    fitted[...] = value
    return fitted


def ragged_values(layout: Layout, index: Any, value: Any) -> tuple[NDArray[np.int64], RaggedArray]:
    """Return the rows that an index selects, and the values to write to them; all are checked first."""
    assert layout.offsets is not None
    targets = row_numbers(index, len(layout))
    lengths = np.diff(layout.offsets)[targets]
    rows = [value] if isinstance(index, int) else value
    sources = [np.asarray(row) for row in rows]
    if len(sources) != len(targets):
        raise InputError(f"{len(sources)} rows cannot be assigned to {len(targets)} ragged rows")
    for length, source in zip(lengths, sources, strict=True):
        if source.shape not in ((), (length,)):
            raise InputError(
                f"a ragged row of length {length} cannot take shape {source.shape}: rows keep their lengths"
            )
    joined = RaggedArray(np.empty(int(lengths.sum()), layout.dtype), offsets_of(lengths))
    for target, source in zip(joined, sources, strict=True):
        target[...] = source
    return targets, joined


def _selection(index: slice, length: int) -> Selection:
    start, stop, step = index.indices(length)
    return (start, max(start, stop)) if step == 1 else np.arange(start, stop, step)


def _split_tuple(index: tuple[Any, ...], layout: Layout) -> tuple[Selection, tuple[Any, ...]]:
    """Return the rows that the first of several indices selects, and the remaining index within these rows."""
    if not index:
        raise NeedsAllRows
    first, *rest = index
    if isinstance(first, slice):
        return _selection(first, len(layout)), (slice(None), *rest)
    if hasattr(first, "__index__") and np.ndim(first) == 0 and not isinstance(first, bool | np.bool_):
        row = row_number(first, len(layout))
        return (row, row + 1), (0, *rest)
    if isinstance(first, list | np.ndarray) and np.ndim(first) == 1:
        rows = row_numbers(first, len(layout))
        return rows, (np.arange(len(rows)), *rest)
    raise NeedsAllRows


def _fetch(spread: Spread, selection: Selection) -> Storage:
    return spread.range(*selection) if isinstance(selection, tuple) else spread.rows(selection)
