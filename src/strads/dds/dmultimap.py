"""The table with any number of values per key."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.cluster import Cluster
from strads.dds._display import SHOWN_ROWS, kind_of_rows
from strads.dds._hash_index import NOT_FOUND, group_keys
from strads.dds._keyed import KeyedTable, pairs
from strads.dds._keys import Key, Keys, check_key, encode_keys
from strads.dds._layout import Layout, concatenated, take
from strads.dds._placement import Content
from strads.dds._storage import Storage
from strads.dds.dvector import dvector
from strads.dds.operators.grouping import stored_groups
from strads.dds.ragged import RaggedArray
from strads.errors import ArgumentError, InputError
from strads.partition import offsets_of, places_of


class dmultimap(KeyedTable):
    """Any number of values per key (thesis §7.1.2): numbers, rows of numbers, or records.

    Values of a key keep their insertion order. Keys are sorted by a hash that is the same on every machine; thus on
    several nodes each holds the values for a range of hashes. The driver has all keys.

    Parameters
    ----------
    data : dict, or keys
        A dict of key → values; or an array, list or pyarrow array of keys, in which each key occurs once per value.
        Keys are integers (that fit into int64) or texts, not both.
    values : array-like, optional
        One value for each of the keys in `data`.
    dtype : dtype-like, optional
        Dtype of the values; by default as in NumPy.

    Raises
    ------
    ArgumentError
        If keys are neither all integers nor all texts, or values are not numbers.
    InputError
        If there are not as many values as keys, or they do not fit the dtype.

    Notes
    -----
    `table` is a dvector of the values. Numbers are stored as ragged rows, one per key, so that a loop body reads the
    values of a key as `table[row]`; rows and records are contiguous, those of key r at `offsets[r]:offsets[r+1]`.

    Examples
    --------
    >>> m = dmultimap([3, 5, 3], [0.5, 1.5, 2.5])
    >>> m[3].tolist()
    [0.5, 2.5]
    >>> m.count(7)
    0
    """

    _noun = "dmultimap"

    def __init__(self, data: Any = None, values: Any = None, *, dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype)
        self._offsets = np.zeros(1, np.int64)
        self._added_keys: list[Keys] = []
        self._added_rows: list[NDArray[Any]] = []
        if data is not None or values is not None:
            self.extend(*(_flattened(*pairs(data, self._noun)) if values is None else (data, values)))
            self._settle()

    @classmethod
    def _grouped(cls, keys: Keys, table: dvector, row: tuple[int, ...], offsets: NDArray[np.int64]) -> "dmultimap":
        made = cls._made_of(keys, table, row)
        made._offsets = offsets
        return made

    @classmethod
    def _from_nodes(cls, cluster: Cluster, name: str, made: list[Any], row: tuple[int, ...]) -> "dmultimap":
        """Wrap the results of `group_program` on each node."""
        _, _, layout, bounds = made[0]
        table = dvector._of(Content.on_nodes(cluster, name, layout, bounds))
        offsets = offsets_of(np.concatenate([counts for _, counts, _, _ in made]))
        return cls._grouped(concatenated([keys for keys, _, _, _ in made]), table, row, offsets)

    def _settle(self) -> None:
        if not self._added_keys and not self._removed:
            return
        kept = self._kept()
        owners = np.repeat(kept, np.diff(self._offsets)[kept])
        keys = concatenated([take(self._index.keys, owners), *self._added_keys])
        rows = np.concatenate([self._all_rows()[places_of(self._offsets, kept)], *self._added_rows])
        self._added_keys, self._added_rows, self._removed = [], [], set()
        groups = group_keys(keys)
        self._offsets = groups.offsets
        self._replace(groups, dvector(self._stored(rows[groups.order], groups.offsets), copy=False))

    def _all_rows(self) -> NDArray[Any]:
        """Return all values as dense rows."""
        if self._table is None:
            return self._no_rows()
        storage = self._table.storage
        return storage.values if isinstance(storage, RaggedArray) else storage

    def _stored(self, rows: NDArray[Any], offsets: NDArray[np.int64]) -> Storage:
        return stored_groups(rows, offsets)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the values of each key start among all values; shape (keys + 1,)."""
        self._settle()
        return self._offsets

    @property
    def size(self) -> int:
        """Number of values."""
        return int(self.offsets[-1])

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Return all values of one key, of shape (values, …); read-only. For several keys at once see `lookup`.

        Raises
        ------
        UnknownKeyError
            (also a `KeyError`) if the key is missing.
        """
        row = self._row_of(check_key(key))
        if row == NOT_FOUND:
            raise self._missing(key)
        return self._values_of(row)

    def _row_of(self, key: object) -> int:
        if self._added_keys:  # perhaps more values of the key
            self._settle()
        return super()._row_of(key)

    def _values_of(self, row: int) -> NDArray[Any]:
        table = self._table
        assert table is not None
        return table[row] if table.is_ragged else table[int(self._offsets[row]) : int(self._offsets[row + 1])]

    def get(self, key: Any, default: Any = None) -> Any:
        """Return all values of a key, or the default."""
        row = self._row_of(key)
        return default if row == NOT_FOUND else self._values_of(row)

    def count(self, key: Any) -> int:
        """Return the number of values of a key; 0 if it is missing."""
        row = self._row_of(key)
        return 0 if row == NOT_FOUND else int(self._offsets[row + 1] - self._offsets[row])

    def lookup(self, keys: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the values of several keys.

        Returns
        -------
        values : ndarray of shape (total, …)
            Values of the first key, then of the second, …; none for a missing key.
        offsets : (keys + 1,) int64
            The values of key k are `values[offsets[k]:offsets[k + 1]]`.
        """
        rows = self.rows_of(keys)
        there = rows >= 0
        lengths = np.zeros(len(rows), np.int64)
        lengths[there] = np.diff(self._offsets)[rows[there]]
        table = self.table
        if table.is_ragged:
            found = table[rows[there]].values if there.any() else self._all_rows()[:0]
        else:
            found = table[places_of(self._offsets, rows[there])]
        return found, offsets_of(lengths)

    def values(self) -> NDArray[Any]:
        """Return all values, grouped by key in the order of `keys()`; read-only."""
        _ = self.table
        view = self._all_rows().view()
        view.flags.writeable = False
        return view

    def items(self) -> Iterator[tuple[Key, NDArray[Any]]]:
        """Iterate over pairs of a key and the array of its values."""
        for row, key in enumerate(self.keys().tolist()):
            yield key, self._values_of(row)

    def to_dict(self) -> dict[Key, list[Any]]:
        """Return a dict of lists."""
        rows = np.split(self.values(), self.offsets[1:-1]) if len(self) else []
        return dict(zip(self.keys().tolist(), (part.tolist() for part in rows), strict=True))

    def add(self, key: Any, value: Any) -> None:
        """Add a value to a key, after its existing ones.

        Raises
        ------
        InputError
            If the value does not fit.
        ArgumentError
            If the key is of a different kind from the others.
        """
        self._add(encode_keys([check_key(key)]), self._fitted(value)[None])

    def extend(self, keys: Any, values: Any) -> None:
        """Add a value to each key; keys may repeat."""
        encoded = encode_keys(keys)
        self._add(encoded, self._rows(values, len(encoded)))

    def _add(self, keys: Keys, rows: NDArray[Any]) -> None:
        if self._added_keys and isinstance(keys, RaggedArray) != isinstance(self._added_keys[0], RaggedArray):
            raise ArgumentError("the keys of a dmultimap are all whole numbers or all texts")
        self._check_kind(keys)
        if len(keys):
            self._prepare_change()
            self._added_keys.append(keys)
            self._added_rows.append(rows)

    def __setitem__(self, key: Any, values: Any) -> None:
        """Replace the values of a key.

        Raises
        ------
        ArgumentError, InputError
            As in `add`, and if `values` is not a list or an array.
        """
        encoded = encode_keys([check_key(key)])
        try:
            count = len(values)
        except TypeError as error:
            raise ArgumentError(
                f"the values of a key are a list or an array, not {values!r:.60}: add(key, value) adds a single one"
            ) from error
        rows = self._rows(values, count) if count else self._no_rows()
        self._check_kind(encoded)
        if key in self:
            del self[key]
        self._add(take(encoded, np.zeros(len(rows), np.int64)), rows)

    def __delitem__(self, key: Any) -> None:
        """Remove a key with all its values.

        Raises
        ------
        KeyError
            If it is missing.
        """
        row = self._row_of(key)
        if row == NOT_FOUND:
            raise self._missing(key)
        self._prepare_change()
        self._removed.add(row)

    def copy(self) -> "dmultimap":
        """Return an independent multimap with the same content."""
        return self._grouped(self.index.keys, self.table.copy(), self._row or (), self._offsets)

    def __repr__(self) -> str:
        row = Layout((0, *(self._row or ())), self.table.dtype)
        first = (" ".join(str(self._values_of(row)).split()) for row in range(min(SHOWN_ROWS, len(self))))
        return self._described(f"{self.size:,} × {kind_of_rows(row)}", first)


def _flattened(keys: list[Any], values: list[Any]) -> tuple[list[Any], Any]:
    """Return each key once per value, and all values concatenated."""
    try:
        lengths = [len(rows) for rows in values]
    except TypeError as error:
        raise ArgumentError("a dmultimap is made of a dict of key → values, each a list or an array") from error
    repeated = [key for key, length in zip(keys, lengths, strict=True) for _ in range(length)]
    filled = [np.asarray(rows) for rows, length in zip(values, lengths, strict=True) if length]
    try:
        return repeated, np.concatenate(filled) if filled else np.empty(0)
    except ValueError as error:
        raise InputError(f"the values of a dmultimap all have one shape: {error}") from error
