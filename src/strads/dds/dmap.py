"""The table with one value per key."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.dds._display import SHOWN_ROWS, kind_of_rows
from strads.dds._hash_index import NOT_FOUND, group_keys
from strads.dds._keyed import KeyedTable, pairs
from strads.dds._keys import Key, Keys, check_key, encode_keys, is_single_key
from strads.dds._layout import concatenated, take
from strads.dds._selection import readable
from strads.dds.dvector import dvector
from strads.errors import ArgumentError

_NOTHING = object()


class dmap(KeyedTable):
    """One value per key (thesis §7.1.2): a number, a row of numbers, or a record.

    The values are stored in `table`, a dvector, sorted by a hash of the keys that is the same on every machine; thus
    on several nodes each holds the values for a range of hashes. The driver has all keys.

    Parameters
    ----------
    data : dict, dmap, or keys
        Keys are integers (that fit into int64) or texts, not both.
    values : array-like, optional
        The values, if `data` is an array, list or pyarrow array of keys. For equal keys, the last value wins.
    dtype : dtype-like, optional
        Dtype of the values; by default as in NumPy, or that of the first value if the map starts empty.

    Raises
    ------
    ArgumentError
        If keys are neither all integers nor all texts, or values are not numbers.
    InputError
        If there are not as many values as keys, or they do not fit the dtype.

    Notes
    -----
    Assignment at the driver adds a missing key. Add keys a few at a time, or all at once: `m[keys] = values`,
    `m.update(…)`. The next use of the whole map gathers the values at the driver. Iteration is in hash order, not
    insertion order.

    Examples
    --------
    >>> m = dmap({"ham": 1.0, "spam": 2.0})
    >>> m["spam"] += 1
    >>> m[["ham", "spam"]].tolist()
    [1.0, 3.0]
    """

    _noun = "dmap"

    def __init__(self, data: Any = None, values: Any = None, *, dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype)
        self._added: dict[Key, NDArray[Any]] = {}
        if data is not None or values is not None:
            self.update(data, values)

    def _settle(self) -> None:
        if not self._added and not self._removed:
            return
        added, kept = self._added, self._kept()
        self._added, self._removed = {}, set()
        keys: list[Keys] = [take(self._index.keys, kept)]
        rows = [self._all_rows()[kept]]
        if added:
            keys.append(encode_keys(added))
            rows.append(np.stack(list(added.values())))
        self._rebuild(concatenated(keys), np.concatenate(rows))

    def _all_rows(self) -> Any:
        return self._no_rows() if self._table is None else self._table.storage

    def _rebuild(self, keys: Keys, rows: NDArray[Any]) -> None:
        groups = group_keys(keys)
        last = groups.order[groups.offsets[1:] - 1]
        self._replace(groups, dvector(rows[last], copy=False))

    def __len__(self) -> int:
        return len(self._index) + len(self._added) - len(self._removed)

    def __contains__(self, key: object) -> bool:
        return is_single_key(key) and (key in self._added or self._row_of(key) != NOT_FOUND)

    def __getitem__(self, key: Any) -> Any:
        """Return the value of a key, or of several keys as an array.

        Raises
        ------
        UnknownKeyError
            (also a `KeyError`) if a key is missing.
        """
        if is_single_key(key):
            value = self.get(key, _NOTHING)
            if value is _NOTHING:
                raise self._missing(key)
            return value
        return self.table[self.rows_of(key, must_exist=True)]

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        row = self._row_of(key)
        if row != NOT_FOUND:
            assert self._table is not None
            return self._table[row]
        added = self._added.get(key) if is_single_key(key) else None
        return default if added is None else readable(added[None])[0]

    def values(self) -> NDArray[Any]:
        """Return all values, in the order of `keys()`; read-only."""
        return self.table.to_numpy()

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Iterate over pairs of keys and values."""
        return zip(self.keys().tolist(), self.table, strict=True)

    def to_dict(self) -> dict[Key, Any]:
        """Return a dict of Python numbers, lists of them, or tuples for records."""
        return dict(zip(self.keys().tolist(), self.table.to_list(), strict=True))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set the value of one or several keys; missing keys are added.

        Raises
        ------
        InputError
            If a value does not fit.
        ArgumentError
            If a key is of a different kind from the others.
        """
        if not is_single_key(key):
            self.update(key, np.broadcast_to(value, len(encode_keys(key))) if np.ndim(value) == 0 else value)
            return
        key = check_key(key)
        row = self._index.find(key)
        if row != NOT_FOUND:
            assert self._table is not None
            self._table[row] = self._fitted(value)
            self._removed.discard(row)
            return
        if not self._added:
            self._check_kind(encode_keys([key]))
        elif isinstance(key, str) != isinstance(next(iter(self._added)), str):
            raise ArgumentError("the keys of a dmap are all whole numbers or all texts")
        self._prepare_change()
        self._added[key] = self._fitted(value)

    def update(self, data: Any, values: Any = None) -> None:
        """Set the keys and values of a dict, another dmap, or arrays of keys and values."""
        if values is None and isinstance(data, dmap):
            data, values = data.index.keys, data.table
        elif values is None:
            data, values = pairs(data, self._noun)
            if not data:
                return
        self._settle()
        keys = encode_keys(data)
        rows = self._rows(values, len(keys))
        self._check_kind(keys)
        own = self._index.rows_of(keys)
        old, new = np.flatnonzero(own >= 0), np.flatnonzero(own < 0)
        if len(old):
            assert self._table is not None
            self._table[own[old]] = rows[old]
        if len(new):
            joined = np.concatenate([self._all_rows(), rows[new]])
            self._rebuild(concatenated([self._index.keys, take(keys, new)]), joined)

    def setdefault(self, key: Any, default: Any) -> Any:
        """Return the value of a key; if it is missing, assign the default first."""
        if key not in self:
            self[key] = default
        return self[key]

    def __delitem__(self, key: Any) -> None:
        """Remove a key.

        Raises
        ------
        KeyError
            If it is missing.
        """
        self._prepare_change()
        row = self._row_of(key)
        if row != NOT_FOUND:
            self._removed.add(row)
        elif key not in self:
            raise self._missing(key)
        else:
            del self._added[check_key(key)]

    def pop(self, key: Any, default: Any = _NOTHING) -> Any:
        """Remove a key and return its value, or the default."""
        value = self.get(key, _NOTHING)
        if value is _NOTHING:
            if default is _NOTHING:
                raise self._missing(key)
            return default
        value = value.copy() if isinstance(value, np.ndarray | np.generic) else value
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all keys."""
        self._settle()
        self._rebuild(take(self._index.keys, np.empty(0, np.int64)), self._no_rows())

    def copy(self) -> "dmap":
        """Return an independent map with the same content."""
        return type(self)._made_of(self.index.keys, self.table.copy(), self._row or ())

    def __repr__(self) -> str:
        self._settle()
        first = map(str, self.table[: min(SHOWN_ROWS, len(self))])
        return self._described(kind_of_rows(self.table._content.layout), first)
