"""Which row of a model belongs to which user or item."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError, InputError, UnknownKeyError
from strads.models._growth import GrowingArray
from strads.models.interactions.id_column import IdColumn


@dataclass(frozen=True, eq=False)
class Numbered:
    """A column of ids as rows of a model, of which the last ones are to be appended to its index.

    Attributes
    ----------
    rows : integer ndarray of shape (n,)
    new : ndarray or int
        The ids of the rows to append, ascending; a number if the ids go on counting from 0.
    count : int
        Number of rows with these.
    """

    rows: NDArray[np.integer]
    new: NDArray[Any] | int
    count: int


class IdIndex:
    """The ids of the rows 0, 1, 2, … of a table: whole numbers, or texts.

    Where each id is the number of its row, as for sparse matrices, nothing is stored.

    Parameters
    ----------
    kind : str
        "user" or "item", for messages.
    names : ndarray or int, default 0
        Ids, int64 or objects of type str, each once; or the number of rows if ids are their numbers.
    """

    def __init__(self, kind: str, names: NDArray[Any] | int = 0):
        self.kind = kind
        self._count = names if isinstance(names, int) else len(names)
        self._names = None if isinstance(names, int) else GrowingArray(names)
        self._rows: dict[Any, int] | None = None  # by id, made when it is needed

    def __len__(self) -> int:
        return self._count

    def copy(self) -> "IdIndex":
        """Return an index that grows on its own."""
        return IdIndex(self.kind, self._count if self._names is None else self._names.rows.copy())

    @property
    def is_plain(self) -> bool:
        """Whether ids are the numbers of their rows."""
        return self._names is None

    @property
    def are_texts(self) -> bool:
        """Whether ids are texts."""
        return self._names is not None and bool(self._names.rows.dtype == object)

    @property
    def names(self) -> NDArray[Any]:
        """The id of each row: int64, or objects of type str."""
        return np.arange(self._count) if self._names is None else self._names.rows

    def names_of(self, rows: NDArray[np.integer]) -> NDArray[Any]:
        """Return the ids of rows; of −1 it is −1, or None among texts."""
        if self._names is None:
            return rows.astype(np.int64)
        found = self._names.rows[rows]
        found[rows < 0] = None if self.are_texts else -1
        return found

    def number(self, column: IdColumn, least: int = 0) -> Numbered:
        """Return the rows of ids; those that are unknown come after all others, in ascending order.

        Takes time in proportion to the column. The index does not change until `append`.

        Parameters
        ----------
        least : int
            Number of ids 0, 1, 2, … that are to be known, for sparse matrices.
        """
        if self._names is None and column.are_first_numbers(max(self._count, least)):
            most = int(column.codes.max()) + 1 if len(column) else 0
            count = max(self._count, least, most)
            return Numbered(column.codes, count - self._count, count)
        codes, distinct = column.factorized()
        self._check_type(column)
        rows = self._look_up(distinct)
        unknown = np.flatnonzero(rows < 0)
        count = self._count + len(unknown)
        rows[unknown] = np.arange(self._count, count)
        return Numbered(rows.astype(np.int32)[codes], distinct[unknown], count)

    def append(self, numbered: Numbered) -> None:
        """Append the new ids of a column that was numbered by this index as it is."""
        new = numbered.new
        if isinstance(new, int):
            self._count += new
            return
        if not len(new):
            return
        if self._names is None:
            known: NDArray[Any] = np.arange(self._count)
            self._names = GrowingArray(known if self._count else new[:0])
        self._names.append(new)
        if self._rows is not None:
            self._rows.update(zip(new.tolist(), range(self._count, self._count + len(new)), strict=True))
        self._count += len(new)

    def rows(self, column: IdColumn) -> NDArray[np.integer]:
        """Return the rows of ids; −1 for those that are unknown."""
        if self._names is None and column.distinct is None:
            ids = column.codes
            return np.where((ids >= 0) & (ids < self._count), ids, -1)
        codes, distinct = column.factorized()
        self._check_type(column)
        return self._look_up(distinct).astype(np.int32)[codes]

    def known_rows(self, column: IdColumn) -> NDArray[np.integer]:
        """Return the rows of ids.

        Raises
        ------
        UnknownKeyError
            If one is unknown; names the first.
        """
        rows = self.rows(column)
        if len(rows) and int(rows.min()) < 0:
            place = int(np.argmax(rows < 0))
            raise self.unknown(column.id_of(place), f"row {place}: ")
        return rows

    def rows_of(self, argument: str, given: ArrayLike) -> tuple[NDArray[np.int64], bool]:
        """Return the rows of ids that are an argument, one or several, and whether it is one.

        Raises
        ------
        ArgumentError, UnknownKeyError
            If they are no ids, or unknown.
        """
        is_one = isinstance(given, str | int | np.integer) or np.ndim(given) == 0
        if isinstance(given, bool | np.bool_) or given is None:
            raise ArgumentError(f"{argument}={given!r}: give the id of one {self.kind}, or an array of ids")
        try:
            column = IdColumn.of(self.kind, [given] if is_one else given)
            rows = self.rows(column).astype(np.int64)
        except (ArgumentError, InputError) as error:
            raise type(error)(f"{argument}: {error}") from error
        if len(rows) and rows.min() < 0:
            raise self.unknown(column.id_of(int(np.argmax(rows < 0))), f"{argument}: ")
        return rows, is_one

    def unknown(self, given: int | str, where: str = "") -> UnknownKeyError:
        """Return the error that an id is unknown."""
        ids = f": ids are 0 … {self._count - 1}" if self.is_plain and self._count else ""
        return UnknownKeyError(f"{where}{self.kind} id {given!r} was not in the training data{ids}")

    def _look_up(self, distinct: NDArray[Any]) -> NDArray[np.int64]:
        """Return the rows of ids, each of which is there once; −1 for those that are unknown."""
        if self._names is None:
            if distinct.dtype == object:
                return np.full(len(distinct), -1)
            return np.where((distinct >= 0) & (distinct < self._count), distinct, -1)
        if self._rows is None:
            self._rows = dict(zip(self._names.rows.tolist(), range(self._count), strict=True))
        find = self._rows.get
        return np.fromiter((find(each, -1) for each in distinct.tolist()), np.int64, len(distinct))

    def _check_type(self, column: IdColumn) -> None:
        if self._count and len(column) and column.are_texts != self.are_texts:
            kinds = {True: "texts", False: "whole numbers"}
            raise InputError(
                f"the {self.kind} ids of the model are {kinds[self.are_texts]}, but {column.id_of(0)!r} is given: "
                f"give {kinds[self.are_texts]}"
            )

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what a model file holds: nothing, numbers, or the bytes of all texts (UTF-8) and where each ends."""
        if self._names is None:
            return {}
        if not self.are_texts:
            return {f"{self.kind}_ids": self._names.rows}
        texts = [each.encode("utf-8", "surrogatepass") for each in self._names.rows.tolist()]
        ends = np.cumsum([len(each) for each in texts], dtype=np.int64)
        return {f"{self.kind}_id_bytes": np.frombuffer(b"".join(texts), np.uint8), f"{self.kind}_id_ends": ends}

    @classmethod
    def restored(cls, kind: str, arrays: dict[str, NDArray[Any]], count: int) -> "IdIndex":
        """Return the index of a table of `count` rows from what `saved` returned.

        Raises
        ------
        ValueError
            If ids do not fit the table, or occur twice.
        """
        names: NDArray[Any] | int = count
        if f"{kind}_ids" in arrays:
            names = arrays[f"{kind}_ids"]
            if names.dtype != np.int64 or names.ndim != 1:
                raise ValueError(f"the {kind} ids are no list of whole numbers")
        elif f"{kind}_id_ends" in arrays:
            names = _texts(arrays[f"{kind}_id_bytes"], arrays[f"{kind}_id_ends"])
        if not isinstance(names, int) and (len(names) != count or len(set(names.tolist())) != count):
            raise ValueError(f"the {kind} ids do not fit the factors, or occur twice")
        return cls(kind, names)


def _texts(content: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
    of_kinds = content.dtype == np.uint8 and ends.dtype == np.int64 and content.ndim == ends.ndim == 1
    if not of_kinds or (np.diff(ends, prepend=0) <= 0).any() or (ends[-1] if len(ends) else 0) != len(content):
        raise ValueError("the texts of ids are split wrongly")
    whole, texts = content.tobytes(), np.empty(len(ends), object)
    start = 0
    for row, end in enumerate(ends.tolist()):
        texts[row] = whole[start:end].decode("utf-8", "surrogatepass")
        start = end
    return texts
