"""Tables as a body sees them in the interpreter: every access is checked, as compiled views would."""

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from strads.dds import NOT_FOUND, HashIndex, RaggedArray
from strads.schedule.details import Pools

_INT64 = np.iinfo(np.int64)


class OutOfBounds(IndexError):
    """A row that a table does not have."""


class NoSuchKey(KeyError):
    """A key that a map does not have."""


class UnrecordedAccess(Exception):
    """An access that the plan does not allow."""


class _Record(np.record):  # type: ignore[misc]
    """A record whose fields take precedence over its methods: `r.item` is a field if there is one of this name."""

    def __getattribute__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "dtype").fields or {}
        return self[name] if name in fields else super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in (object.__getattribute__(self, "dtype").fields or {}):  # there may be a field `dtype`
            self[name] = value
        else:
            super().__setattr__(name, value)


class DrawnRows:
    """The rows of a table that the tasks of a job draw by `near`.

    `arrays` are the job's parts of `Pools.rows`, `share` and `other`; `members` is the set of its rows.
    """

    def __init__(self, pools: Pools, job: int):
        own = slice(pools.low[job], pools.high[job])
        self.arrays = pools.rows[own], pools.share[own], pools.other[own]
        self.members = frozenset(self.arrays[0].tolist())


@dataclass
class CheckedTask:
    """The accesses allowed to the current task, and those that it has made."""

    index: int  # loop index
    recorded: set[tuple[int, int]] | None  # pairs (table, row); None: everything is allowed
    near: dict[int, DrawnRows] = field(default_factory=dict)  # by table
    seen: set[tuple[int, int]] = field(default_factory=set)  # pairs (table, row) accessed so far


class CheckedTable(NDArrayOperatorsMixin):
    """A table as a body sees it in Python mode.

    Parameters
    ----------
    name
        Name of the body's parameter, for messages.
    storage
        The rows.
    number
        Number of the table in the access records, or None if it is only read.
    index
        Of the keys of a map, else None.
    is_relaxed
        Whether it is written, but not recorded.
    private
        Whether rows are copies that are discarded after the task.
    """

    def __init__(
        self,
        name: str,
        storage: NDArray[Any] | RaggedArray,
        number: int | None,
        *,
        index: HashIndex | None = None,
        is_relaxed: bool = False,
        private: bool = False,
    ):
        self._name, self._number, self._index = name, number, index
        self._writable = number is not None or is_relaxed
        self._private = private
        self._copies: dict[int, Any] = {}
        self._task = CheckedTask(0, None)
        self._data: Any = storage
        if isinstance(storage, np.ndarray) and storage.dtype.names is not None:
            self._data = storage.view((_Record, storage.dtype))

    def begin(self, task: CheckedTask) -> None:
        """Start a task: private copies are discarded."""
        self._task = task
        self._copies.clear()

    def changed(self) -> Iterator[tuple[int, int]]:
        """Return the pairs (table, row) of the private copies that the task has changed."""
        for row, copy in self._copies.items():
            if self._number is not None and np.asarray(copy).tobytes() != np.asarray(self._data[row]).tobytes():
                yield self._number, row

    def __len__(self) -> int:
        return len(self._data)

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, …); (rows,) for ragged rows."""
        return (len(self),) if isinstance(self._data, RaggedArray) else self._data.shape

    @property
    def near_pool(self) -> Any:
        """The rows that the running job draws; see `NumbersOfTask.near`."""
        pool = None if self._number is None else self._task.near.get(self._number)
        return None if pool is None else pool.arrays

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; of rows, if they are ragged."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        return np.dtype(self._data.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._require_readonly("as a whole")
        return np.array(self._data, dtype=dtype) if copy else np.asarray(self._frozen(self._data), dtype=dtype)

    def __iter__(self) -> Iterator[Any]:
        self._require_readonly("as a whole")
        return iter(self._frozen(self._data))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        arrays = [np.asarray(item) if isinstance(item, CheckedTable) else item for item in inputs]
        return getattr(ufunc, method)(*arrays, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._require_readonly(f"as a whole (.{name})")
        return getattr(self._frozen(self._data), name)

    def _require_readonly(self, how: str) -> None:
        if self._number is not None:
            raise UnrecordedAccess(f"{self._name} is used {how}, but the loop writes it: index it row by row")

    def _row(self, index: Any) -> int:
        position = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= position < len(self):
            raise OutOfBounds(f"index {int(index)} is out of range for table {self._name!r} with {len(self)} rows")
        if self._number is not None:
            access = (self._number, position)
            self._task.seen.add(access)
            pool = self._task.near.get(self._number)
            drawn = pool is not None and position in pool.members
            if self._task.recorded is not None and access not in self._task.recorded and not drawn:
                rows = sorted(row for table, row in self._task.recorded if table == self._number)
                raise UnrecordedAccess(
                    f"it touches {row_name(position, self._index)} of {self._name!r}; "
                    f"recorded for this task were {row_names(rows, self._index)}"
                )
        return position

    @staticmethod
    def _frozen(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        return value

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            row = self[index[0]]
            rest = index[1:]
            return row[rest if len(rest) > 1 else rest[0]] if rest else row
        if not hasattr(index, "__index__"):
            self._require_readonly(f"with the index {index!r}")
            return self._frozen(self._data[index])
        position = self._row(index)
        if self._private and self._writable:
            if position not in self._copies:
                value = self._data[position]
                self._copies[position] = value.copy() if hasattr(value, "copy") else value
            return self._copies[position]
        value = self._data[position]
        return value if self._writable else self._frozen(value)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, tuple):
            if len(index) == 1:
                self[index[0]] = value
            else:
                self[index[0]][index[1:] if len(index) > 2 else index[1]] = value
            return
        if not self._writable:
            raise UnrecordedAccess(f"it writes {self._name!r}, which reconnaissance took for read-only")
        if not hasattr(index, "__index__"):
            self._require_readonly(f"with the index {index!r}")
        position = self._row(index)
        if not self._private:
            self._data[position] = value
            return
        current = self[index]
        if isinstance(current, np.ndarray):
            current[...] = value
        else:
            self._copies[position] = self.dtype.type(value)


class CheckedMap:
    """A map as a body sees it in Python mode: the table of its values, found by key."""

    def __init__(self, name: str, index: HashIndex, table: CheckedTable):
        self._name, self._index, self._table = name, index, table

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: Any) -> bool:
        return self._find(key) != NOT_FOUND

    def __getitem__(self, index: Any) -> Any:
        return self._table[self._with_row(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._table[self._with_row(index)] = value

    def _with_row(self, index: Any) -> Any:
        """Return an index of the table, with the key replaced by its row."""
        key, *rest = index if isinstance(index, tuple) else (index,)
        row = self._find(key)
        if row == NOT_FOUND:
            raise NoSuchKey(
                f"key {key} is not in map {self._name!r} with {len(self)} keys; a loop body cannot add keys: "
                "add them before the loop"
            )
        return (row, *rest) if rest else row

    def _find(self, key: Any) -> int:
        number = operator.index(key)
        return self._index.find(number) if _INT64.min <= number <= _INT64.max else NOT_FOUND


def row_name(row: int, index: HashIndex | None) -> str:
    """Return the user's name for a row: its key in a map, else its number."""
    return f"row {row}" if index is None else f"key {index.keys[row]}"


def row_names(rows: Sequence[int], index: HashIndex | None) -> str:
    """Return the user's names for several rows."""
    return f"rows {list(rows)}" if index is None else f"keys {[int(index.keys[row]) for row in rows]}"
