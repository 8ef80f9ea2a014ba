"""A column of ids, of users or of items: whole numbers or texts, as the user has them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from strads.dds.arrow_types import is_text
from strads.errors import ArgumentError, InputError
from strads.models._unicode import LONE_SURROGATE
from strads.models.kernels.id_tables import mark, renumber

_FAITHFUL = 2**63  # whole numbers below it are int64
_SPAN_PER_ID, _SPAN_ALLOWED = 8, 1 << 16  # of a table that is indexed by ids


@dataclass(frozen=True, eq=False)
class IdColumn:
    """Ids, one a row.

    Attributes
    ----------
    codes : integer ndarray of shape (n,)
        The ids themselves if they are whole numbers and `distinct` is None; else positions in `distinct`.
    distinct : ndarray or None
        Ids in ascending order, each once: int64, or objects of type str. Some may occur in no row.
    """

    codes: NDArray[np.integer]
    distinct: NDArray[Any] | None = None

    @classmethod
    def of(cls, kind: str, values: Any) -> Self:
        """Convert a one-dimensional array, list, Arrow array, or column of a data frame.

        Parameters
        ----------
        kind : str
            "user" or "item", for messages.

        Raises
        ------
        ArgumentError, InputError
            For ids that are neither whole numbers of 64 bits nor texts, or missing; names the first.
        """
        if isinstance(values, IdColumn):
            return cls(values.codes, values.distinct)
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return cls._of_arrow(kind, values)
        array = np.asarray(values)
        if isinstance(values, list | tuple) and array.dtype.kind in "Uf":  # which may have been converted
            array = np.array(values, object)
        if array.ndim != 1:
            raise ArgumentError(f"{kind} ids must be a one-dimensional array, not {array.ndim}-D {array.dtype}")
        if array.dtype.kind in "iu":
            _check_width(kind, array)
            return cls(array.astype(np.int64) if array.dtype == np.uint64 else array)
        if array.size == 0:
            return cls(np.zeros(0, np.int64))
        if array.dtype.kind == "f":
            return cls(_whole(kind, array))
        if array.dtype.kind not in "OUT":
            raise ArgumentError(f"{kind} ids must be whole numbers or texts, not {array.dtype}")
        texts = _texts(array)
        if texts is not None:
            return cls._of_arrow(kind, texts)
        given = [_without_fraction(each) for each in array.tolist()]
        missing = next((row for row, each in enumerate(given) if _is_missing(each)), None)
        if missing is not None:
            raise _missing(kind, missing)
        if all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in given):
            return cls.of(kind, _integers(kind, given))
        wrong = next((row for row, each in enumerate(given) if not isinstance(each, str)), None)
        if wrong is not None and not any(isinstance(each, str) for each in given):
            raise ArgumentError(f"{kind} ids must be whole numbers or texts, not {given[wrong]!r}")
        if wrong is not None:
            raise InputError(
                f"row {wrong}: the {kind} id is {given[wrong]!r}, a {type(given[wrong]).__name__}, in a column of "
                "texts: give whole numbers only or texts only"
            )
        try:
            texts = pa.array(given, pa.large_string())
        except UnicodeEncodeError as error:
            row = given.index(error.object)
            raise InputError(f"row {row}: the {kind} id {given[row]!r:.60} is not Unicode: {LONE_SURROGATE}") from error
        return cls._of_arrow(kind, texts)

    @classmethod
    def _of_arrow(cls, kind: str, values: Any) -> Self:
        if values.null_count:
            row = int(pc.index(pc.is_null(values), True).as_py())
            raise _missing(kind, row)
        if pa.types.is_dictionary(values.type):
            values = values.unify_dictionaries() if isinstance(values, pa.ChunkedArray) else values
            whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            return cls._of_dictionary(kind, whole)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            return cls.of(kind, values.to_numpy())
        if not is_text(values.type):
            raise ArgumentError(f"{kind} ids must be whole numbers or texts, not {values.type}")
        encoded = pc.dictionary_encode(values)
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        return cls._of_dictionary(kind, encoded)

    @classmethod
    def _of_dictionary(cls, kind: str, encoded: Any) -> Self:
        """Convert a dictionary array of Arrow."""
        if isinstance(encoded, pa.ChunkedArray):  # of no chunks
            return cls(np.zeros(0, np.int64))
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        if pa.types.is_integer(encoded.type.value_type):
            return cls.of(kind, encoded.dictionary.to_numpy()[codes])
        return cls.of_texts(kind, codes, encoded.dictionary.to_pylist())

    @classmethod
    def of_texts(cls, kind: str, codes: NDArray[np.integer], texts: list[str]) -> Self:
        """Return the ids `texts[code]`; texts may be there more than once."""
        if not all(texts):
            places = [place for place, text in enumerate(texts) if not text]
            rows = np.flatnonzero(np.isin(codes, places))
            if len(rows):
                raise InputError(f"row {rows[0]}: the {kind} id is an empty text: leave out rows without an id")
        distinct = sorted(set(texts))
        number_of = {text: number for number, text in enumerate(distinct)}
        numbers = np.array([number_of[text] for text in texts], np.int32)
        return cls(numbers[codes], np.array(distinct, object))

    def with_numbers(self) -> "IdColumn":
        """Return the column as numbers if all its texts are whole numbers of 64 bits, as in files; else unchanged."""
        texts = [] if self.distinct is None else self.distinct.tolist()
        if not texts or not all(is_whole_number(text) for text in texts):
            return self
        return IdColumn(np.array(texts, np.int64)[self.codes])

    def with_texts(self) -> "IdColumn":
        """Return the column with whole numbers as texts."""
        if self.are_texts or len(self) == 0:
            return self
        codes, distinct = self.factorized()
        return IdColumn.of_texts("", codes, [str(each) for each in distinct.tolist()])

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> "IdColumn":
        return IdColumn(self.codes[rows], self.distinct)

    @property
    def are_texts(self) -> bool:
        """Whether ids are texts rather than whole numbers."""
        return self.distinct is not None and self.distinct.dtype == object

    def id_of(self, row: int) -> int | str:
        """Return the id in a row."""
        code = self.codes[row]
        return int(code) if self.distinct is None else self.distinct.tolist()[code]

    def are_first_numbers(self, known: int = 0) -> bool:
        """Whether the ids and 0 … `known` − 1 are exactly 0, 1, 2, … up to the largest."""
        if self.distinct is not None:
            return False
        if len(self) == 0:
            return True
        low, high = int(self.codes.min()), int(self.codes.max())
        if low < 0 or high < known:
            return low >= 0
        if high >= known + len(self):
            return False
        seen = np.zeros(high + 1, bool)
        seen[:known] = True
        mark(self.codes, 0, seen)
        return bool(seen.all())

    def factorized(self) -> tuple[NDArray[np.integer], NDArray[Any]]:
        """Return for each row the position of its id in the ids that occur, and these, ascending.

        Returns
        -------
        codes : integer ndarray of shape (n,)
        distinct : ndarray, int64 or of str objects
        """
        if len(self) == 0:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        if self.distinct is None:
            return _factorized(self.codes)
        codes, used = _numbered(self.codes, 0, len(self.distinct))
        return codes, self.distinct[used]


def is_whole_number(text: str) -> bool:
    """Whether a text is how Python writes a whole number of 64 bits: "7" and "-7" are, "007" and "7.0" are not."""
    if not (text.isascii() and text.removeprefix("-").isdigit()) or len(text) > 20:
        return False
    return str(int(text)) == text and -_FAITHFUL <= int(text) < _FAITHFUL


def _factorized(values: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    low, high = int(values.min()), int(values.max())
    span = high - low + 1
    if span <= _SPAN_PER_ID * len(values) + _SPAN_ALLOWED:
        codes, used = _numbered(values, low, span)
        return codes, used + low
    encoded = pc.dictionary_encode(pa.array(np.ascontiguousarray(values)))
    found = encoded.dictionary.to_numpy().astype(np.int64)
    order = np.argsort(found)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[encoded.indices.to_numpy()], found[order]


def _numbered(values: NDArray[np.integer], low: int, span: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number the values that occur, in ascending order, by a table of all from `low` on."""
    seen = np.zeros(span, bool)
    mark(values, low, seen)
    numbers = np.cumsum(seen, dtype=np.int32)
    codes = np.empty(len(values), np.int32)
    renumber(values, low, numbers, codes)
    return codes, np.flatnonzero(seen)


def _texts(array: NDArray[Any]) -> pa.Array | pa.ChunkedArray | None:
    """Return an array of texts, of which some may be missing, as one of Arrow; None if it is something else."""
    try:
        found = pa.array(array)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return None
    return found if is_text(found.type) else None


def _check_width(kind: str, ids: NDArray[np.integer]) -> None:
    if ids.dtype == np.uint64 and ids.size and int(ids.max()) >= _FAITHFUL:
        row = int(np.argmax(ids >= np.uint64(_FAITHFUL)))
        raise InputError(f"row {row}: the {kind} id {ids[row]} has more than 63 bits: give such ids as texts")


def _integers(kind: str, given: list[int]) -> NDArray[np.int64]:
    wrong = next((row for row, each in enumerate(given) if not -_FAITHFUL <= each < _FAITHFUL), None)
    if wrong is not None:
        raise InputError(f"row {wrong}: the {kind} id {given[wrong]} has more than 63 bits: give such ids as texts")
    return np.array(given, np.int64)


def _whole(kind: str, ids: NDArray[np.floating]) -> NDArray[np.int64]:
    """Convert floats that are whole numbers: pandas makes them of ids where some of the column are missing."""
    if np.isnan(ids).any():
        raise _missing(kind, int(np.argmax(np.isnan(ids))))
    wrong = (ids != np.trunc(ids)) | (np.abs(ids) > 2.0 ** np.finfo(ids.dtype).nmant)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"row {row}: the {kind} id is {ids[row]}, a {ids.dtype}: give whole numbers or texts; floats only if they "
            "are whole and small enough to be exact"
        )
    return ids.astype(np.int64)


def _without_fraction(value: Any) -> Any:
    """Return a float that is a whole number, small enough to be exact, as an integer; all else unchanged."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2.0**52
    return int(value) if is_whole else value


def _is_missing(value: Any) -> bool:
    """Whether a value of a column of objects is None, NaN, or what pandas has in its place."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _missing(kind: str, row: int) -> InputError:
    return InputError(f"row {row}: the {kind} id is missing: leave out rows without one")
