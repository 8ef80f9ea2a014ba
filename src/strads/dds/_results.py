"""Collecting the results of a user's Python function, row by row, into the arrays of a table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.dds._dtypes import NUMERIC_KINDS
from strads.dds._layout import concatenated
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.errors import InputError
from strads.partition import offsets_of

_ROWS_AT_A_TIME = 65_536
_NUMBERS = (int, float, complex, np.number, np.bool_)

Shape = tuple[str, Any]
"""Kind of a result, and what all results must share: the width of a row, or the fields of a record."""


@dataclass(frozen=True)
class Source:
    """Origin of the results, for error messages.

    Attributes
    ----------
    function
        "the parser", for instance.
    place
        Prefix of a message: `file:line`, or a row number.
    short
        The place of another row, for use in a sentence: "line 3".
    remedy
        What to do about a non-finite number; empty if such numbers are allowed.
    optional
        What else the function may return besides numbers, rows, records and sequences.
    """

    function: str
    place: Callable[[Any], str]
    short: Callable[[Any], str]
    remedy: str = ""
    optional: str = ", or None"


def shape_of(result: Any, source: Source, at: Any) -> Shape:
    """Return the kind of a result, or raise InputError."""
    if isinstance(result, _NUMBERS):
        return "number", None
    if isinstance(result, dict):
        return "record", tuple(result)
    if isinstance(result, np.void) and result.dtype.names is not None:
        return "record", tuple(result.dtype.names)
    if isinstance(result, tuple):
        fields = getattr(result, "_fields", None)
        return ("row", len(result)) if fields is None else ("record", tuple(fields))
    if (
        isinstance(result, str | bytes | set | frozenset)
        or not hasattr(result, "__len__")
        or getattr(result, "ndim", 1) != 1
    ):
        raise InputError(
            f"{source.place(at)}: {source.function} returned {result!r:.60}, a {type(result).__name__}; "
            f"it must return a number, a tuple, list or array of numbers, a dict or named tuple{source.optional}"
        )
    return "sequence", None


@dataclass(frozen=True)
class Columns:
    """Results as arrays: a single one for numbers and sequences, one per position of a row or field of a record.

    `shape` is what all results have in common. `lengths`, of shape (results,), are those of sequences, whose numbers
    are concatenated. `stands_for_values`: whether empty columns have the dtypes of columns that had values; the dtypes
    of empty sequences are arbitrary.
    """

    shape: Shape
    arrays: list[NDArray[Any]]
    lengths: NDArray[np.int64] | None = None
    stands_for_values: bool = False

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Dtype of each array."""
        return [array.dtype for array in self.arrays]

    @classmethod
    def like(cls, parts: Sequence["Columns"]) -> "Columns":
        """Return empty columns of the kind and dtypes common to all parts of a table."""
        typed = [part for part in parts if part.stands_for_values or any(map(len, part.arrays))]
        dtypes = zip(*(part.dtypes for part in typed or parts), strict=True)
        lengths = np.empty(0, np.int64) if parts[0].shape[0] == "sequence" else None
        return cls(parts[0].shape, [np.empty(0, np.result_type(*each)) for each in dtypes], lengths, bool(typed))

    def storage(self, dtypes: Sequence[np.dtype[Any]] | None = None) -> Storage:
        """Return scalars, rows, records or ragged rows, in other dtypes if given."""
        wanted = self.dtypes if dtypes is None else dtypes
        arrays = [array.astype(dtype, copy=False) for array, dtype in zip(self.arrays, wanted, strict=True)]
        kind, detail = self.shape
        if kind == "number":
            return arrays[0]
        if kind == "row":
            return np.stack(arrays, axis=1)
        if kind == "sequence":
            assert self.lengths is not None
            return RaggedArray(arrays[0], offsets_of(self.lengths))
        fields = [(name, array.dtype) for name, array in zip(detail, arrays, strict=True)]
        records = np.empty(len(arrays[0]), np.dtype(fields, align=True))
        for name, array in zip(detail, arrays, strict=True):
            records[name] = array
        return records


@dataclass
class Collector:
    """Collects results of the same shape; packs them into arrays periodically to save memory.

    Attributes
    ----------
    source
        Origin of the results.
    first : (shape, place), optional
        The shape required of all results and where it was found, if an earlier result has determined it.
    """

    source: Source
    first: tuple[Shape, str] | None = None
    _pending: list[Any] = field(default_factory=list)  # results not packed yet
    _places: list[Any] = field(default_factory=list)  # those of the pending results
    _chunks: list[list[NDArray[Any]]] = field(default_factory=list)  # arrays of packed results
    _lengths: list[NDArray[np.int64]] = field(default_factory=list)  # those of packed sequences

    def add(self, result: Any, at: Any) -> None:
        """Add a result; `at` is its place, for error messages.

        Raises
        ------
        InputError
            If it is not a number, row, record or sequence, or differs in shape from the first.
        """
        shape = shape_of(result, self.source, at)
        if self.first is None:
            self.first = shape, self.source.short(at)
        elif shape != self.first[0]:
            self._refuse_mixed(shape, at)
        self._pending.append(result)
        self._places.append(at)
        if len(self._pending) == _ROWS_AT_A_TIME:
            self._pack()

    def columns(self) -> Columns | None:
        """Return all results; None if there are none."""
        self._pack()
        if not self._chunks:
            return None
        assert self.first is not None
        arrays = [np.concatenate(parts) for parts in zip(*self._chunks, strict=True)]
        lengths = np.concatenate(self._lengths) if self._lengths else None
        self._chunks.clear()
        return Columns(self.first[0], arrays, lengths)

    def _refuse_mixed(self, shape: Shape, at: Any) -> None:
        assert self.first is not None
        expected, place = self.first
        hint = (
            "; return lists instead of tuples for rows of different lengths" if shape[0] == expected[0] == "row" else ""
        )
        raise InputError(
            f"{self.source.place(at)}: {self.source.function} returned {_describe(shape)}, "
            f"but {_describe(expected)} on {place}{hint}"
        )

    def _pack(self) -> None:
        if not self._pending:
            return
        assert self.first is not None
        kind, detail = self.first[0]
        places: Sequence[Any] = self._places
        if kind == "sequence":
            lengths = np.fromiter(map(len, self._pending), np.int64, len(self._pending))
            self._lengths.append(lengths)
            columns = [[value for row in self._pending for value in row]]
            places = [at for at, length in zip(places, lengths, strict=True) for _ in range(length)]
        elif kind == "number":
            columns = [self._pending]
        elif kind == "record" and isinstance(self._pending[0], dict | np.void):
            columns = [[row[name] for row in self._pending] for name in detail]
        else:
            columns = [list(column) for column in zip(*self._pending, strict=True)]
        self._chunks.append([_numbers(column, places, self.source) for column in columns])
        self._pending, self._places = [], []


def _describe(shape: Shape) -> str:
    kind, detail = shape
    if kind == "row":
        return f"a tuple of {detail}"
    return f"a record of {', '.join(map(str, detail))}" if kind == "record" else f"a {kind}"


def _numbers(values: list[Any], places: Sequence[Any], source: Source) -> NDArray[Any]:
    """Return a column of results as an array; `places` are their places."""
    for value, at in zip(values, places, strict=True):
        if not isinstance(value, _NUMBERS):
            raise InputError(f"{source.place(at)}: {source.function} returned {value!r:.60} where a number is expected")
    try:
        array = np.array(values)
        if array.dtype.kind in "fu" and len(values) and all(isinstance(value, int) for value in values):
            raise OverflowError  # not to be rounded to float64, as NumPy does with some
        finite = np.isfinite(array) if array.dtype.kind in NUMERIC_KINDS else None
    except (TypeError, ValueError, OverflowError):
        finite = None
    if finite is None:
        wide = (isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values)
        at = next(at for is_wide, at in zip(wide, places, strict=True) if is_wide)
        raise InputError(
            f"{source.place(at)}: {source.function} returned an integer that does not fit into int64: "
            "return np.uint64 or float everywhere"
        )
    if source.remedy and not finite.all():
        place = int(np.argmin(finite))
        raise InputError(
            f"{source.place(places[place])}: {source.function} returned {values[place]!r}, which is not finite: "
            f"{source.remedy}"
        )
    return array


def filled_of(results: Sequence[Any]) -> list[Any]:
    """Return the results that have rows."""
    return [result for result in results if result is not None and (isinstance(result, Columns) or len(result))]


def like_of(results: Sequence[Any]) -> Any:
    """Return an empty table of the kind and dtypes common to all results that are not None; None without any."""
    there = [result for result in results if result is not None]
    if not there:
        return None
    return Columns.like(there) if isinstance(there[0], Columns) else there[0][:0]


def join_rows(filled: Sequence[Any], like: Any) -> Storage:
    """Concatenate all rows, with the kind and dtypes of `like`."""
    if not isinstance(like, Columns):
        return np.concatenate(filled) if len(filled) > 1 else filled[0] if filled else like
    return concatenated([columns.storage(like.dtypes) for columns in filled] or [like.storage()])
