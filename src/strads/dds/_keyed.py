"""Base of maps and multimaps: keys in hash order, and a table with their values."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.checkpoints import observe
from strads.cluster import Cluster
from strads.dds._display import SHOWN_ROWS, memory
from strads.dds._dtypes import check_dtype, resolve_dtype
from strads.dds._hash_index import NOT_FOUND, Groups, HashIndex
from strads.dds._hashing import hash_keys
from strads.dds._keys import Key, Keys, check_key, decode_key, decode_keys, encode_keys
from strads.dds._layout import take
from strads.dds._spread import SpreadIndex
from strads.dds._storage import Storage, as_storage
from strads.dds.dvector import dvector
from strads.dds.integers import check_integers_fit
from strads.dds.ragged import RaggedArray
from strads.errors import ArgumentError, InputError, StradsError, UnknownKeyError

NO_TEXTS = RaggedArray(np.empty(0, np.uint8), np.zeros(1, np.int64))
NO_NUMBERS = np.empty(0, np.int64)


class KeyedTable(ABC):
    """Keys, their index, and the table of their values.

    Additions and removals of keys are deferred until the whole table is needed, and then applied together, with a new
    index and a new table, so that what engines cache for a table holds for its keys too.
    """

    _noun: str

    def __init__(self, dtype: DTypeLike | None = None) -> None:
        self._index = HashIndex.of_ordered(NO_NUMBERS, hash_keys(NO_NUMBERS))
        self._table: dvector | None = None
        self._dtype = None if dtype is None else resolve_dtype(dtype)
        self._row: tuple[int, ...] | None = None  # shape of one value
        self._removed: set[int] = set()  # rows whose keys are removed when changes are applied
        self._earlier_versions = 0
        self._spread_index: SpreadIndex | None = None

    @classmethod
    def _made_of(cls, keys: Keys, table: dvector, row: tuple[int, ...]) -> Self:
        """Wrap keys sorted by hash and the table of their values."""
        made = cls.of_index(HashIndex.of_ordered(keys, hash_keys(keys)), table)
        made._row = row
        return made

    @classmethod
    def of_index(cls, index: HashIndex, table: dvector) -> Self:
        """Wrap an index and the table of its values, for engines."""
        made = cls()
        made._index, made._table, made._row, made._dtype = index, table, table.shape[1:], table.dtype
        return made

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_spread_index": None}

    @abstractmethod
    def copy(self) -> "KeyedTable":
        """Return an independent table with the same content."""

    def __copy__(self) -> "KeyedTable":
        """Return an independent copy: a shallow one would share the deferred changes."""
        return self.copy()

    @abstractmethod
    def _settle(self) -> None:
        """Apply the deferred changes."""

    def _stored(self, rows: NDArray[Any], offsets: NDArray[np.int64]) -> Storage:
        """Return values in the form in which `table` has them; those of key k are `rows[offsets[k]:offsets[k + 1]]`."""
        return rows

    def _kept(self) -> NDArray[np.int64]:
        """Return the rows whose keys are not removed."""
        return np.setdiff1d(np.arange(len(self._index)), np.fromiter(self._removed, np.int64, len(self._removed)))

    def _prepare_change(self) -> None:
        """Prepare a change of the keys, which is applied later, perhaps in the middle of an operator of checkpoints."""
        if self._table is not None:
            observe(self._table.root, writes=True)

    @property
    def index(self) -> HashIndex:
        """The keys sorted by hash, and the start of each bucket of hashes, for engines."""
        self._settle()
        return self._index

    @property
    def table(self) -> dvector:
        """The values, in the order of `keys()`; loops and operators work on it."""
        self._settle()
        if self._table is None:
            self._table = dvector(self._stored(self._no_rows(), np.zeros(1, np.int64)))
        return self._table

    @property
    def version(self) -> int:
        """Increases with each write through strads; equal versions mean equal content."""
        self._settle()
        return self._earlier_versions + (0 if self._table is None else self._table.version)

    @property
    def dtype(self) -> np.dtype | None:
        """Dtype of the values; None while unknown."""
        return self._dtype

    @property
    def is_distributed(self) -> bool:
        """Whether the values are on the nodes of a cluster."""
        return self._table is not None and self._table.is_distributed

    def rows_of(self, keys: Any, *, must_exist: bool = False) -> NDArray[np.int64]:
        """Return the row of `table` for each of several keys; -1 for missing keys.

        Row numbers stay valid until a key is added or removed.

        Raises
        ------
        UnknownKeyError
            (also a `KeyError`) if `must_exist` and a key is missing.
        """
        encoded = encode_keys(keys)
        rows = self.index.rows_of(encoded)
        if must_exist and (rows < 0).any():
            raise self._missing(decode_key(encoded, int(np.argmax(rows < 0))))
        return rows

    def distribute_index(self, cluster: Cluster) -> str:
        """Ensure that every node of a cluster has the index; it is sent again only after keys have changed.

        Returns
        -------
        str
            Its name in each `node.store`, valid until keys are added or removed.
        """
        spread = self._spread_index
        if spread is None or spread.index is not self.index or spread.cluster is not cluster:
            spread = self._spread_index = SpreadIndex(cluster, self.index)
        return spread.name

    def keys(self) -> NDArray[Any]:
        """Return all keys: int64, or an object array of str. Their order depends on the keys only."""
        return decode_keys(self.index.keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys().tolist())

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, key: object) -> bool:
        return self._row_of(key) != NOT_FOUND

    def _row_of(self, key: object) -> int:
        """Return the row of one key before the deferred changes, or -1; these are not applied for it."""
        try:
            row = self._index.find(check_key(key))
        except ArgumentError:
            return NOT_FOUND
        return NOT_FOUND if row in self._removed else row

    def _replace(self, groups: Groups, table: dvector) -> None:
        """Replace all keys and values."""
        self._earlier_versions += 1 + (0 if self._table is None else self._table.version)
        self._index = HashIndex.of_ordered(groups.keys, groups.hashes)
        self._table = table

    def _missing(self, key: Any) -> UnknownKeyError:
        hint = "it is empty"
        if len(self):
            hint = f"its {len(self):,} keys are {self._kind}, for instance {decode_key(self._index.keys, 0)!r}"
        return UnknownKeyError(f"this {self._noun} has no key {key!r:.60}: {hint}")

    @property
    def _kind(self) -> str:
        return "texts" if isinstance(self._index.keys, RaggedArray) else "whole numbers"

    def _check_kind(self, keys: Keys) -> None:
        """Check that keys are of the same kind as the existing ones."""
        is_text = isinstance(keys, RaggedArray)
        if len(keys) == 0 or is_text == isinstance(self._index.keys, RaggedArray):
            return
        if len(self._index) > 0:
            raise ArgumentError(f"the keys of this {self._noun} are {self._kind}: it cannot take others")
        none: Keys = NO_TEXTS if is_text else NO_NUMBERS
        self._index = HashIndex.of_ordered(none, hash_keys(none))

    def _fitted(self, value: Any) -> NDArray[Any]:
        """Return one value as an array of the map's dtype and shape; the first value determines what is not given."""
        if self._dtype is None or self._row is None:
            self._learn(value)
        fitted = np.empty(self._row or (), self._dtype)
        try:
            self._refuse_loss(value)
            fitted[...] = value
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, StradsError):
                raise
            raise InputError(f"{value!r:.60} does not fit the values of this {self._noun}: {error}") from error
        return fitted

    def _learn(self, value: Any) -> None:
        if self._dtype is not None and self._dtype.names is not None:
            self._row = ()
            return
        array = np.asarray(value)
        if self._dtype is None:
            check_dtype(array.dtype)
            self._dtype = resolve_dtype(array.dtype)
        self._row = array.shape

    def _refuse_loss(self, value: Any) -> None:
        assert self._dtype is not None
        array = np.asarray(value)
        if self._dtype.names is None and not np.can_cast(array.dtype, self._dtype, "same_kind"):
            raise InputError(
                f"{value!r:.60} does not fit {self._dtype}: make the {self._noun} with another dtype, "
                f"{self._noun}(…, dtype='f8')"
            )
        check_integers_fit(array, self._dtype)

    def _rows(self, values: Any, count: int) -> NDArray[Any]:
        """Return several values as an array of rows; the first values determine what is not given."""
        record = self._dtype if self._dtype is not None and self._dtype.names is not None else None
        source = values.storage if isinstance(values, dvector) else as_storage(values, record)
        if isinstance(source, RaggedArray):
            raise ArgumentError(f"the values of a {self._noun} all have one shape: these have different lengths")
        if len(source) != count:
            raise InputError(f"{count} keys cannot have {len(source)} values: give one for each")
        if self._row is None:
            self._row = source.shape[1:]
        if self._dtype is None:
            self._dtype = source.dtype
        if source.shape[1:] != self._row:
            raise InputError(f"values of shape {source.shape[1:]} do not fit a {self._noun} of shape {self._row}")
        if len(source):
            self._refuse_loss(source)
        try:
            return source.astype(self._dtype, copy=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"values of {source.dtype} do not fit {self._dtype}: {error}") from error

    def _no_rows(self) -> NDArray[Any]:
        return np.empty((0, *(self._row or ())), self._dtype or np.float64)

    def _described(self, values: str, first: Iterable[str]) -> str:
        """Return a text on the table: what its values are, and the first few of them."""
        keys = decode_keys(take(self._index.keys, np.arange(min(SHOWN_ROWS, len(self)))))
        shown = [f"  {key!r:.40}: {value:.60}" for key, value in zip(keys.tolist(), first, strict=True)]
        head = f"a {self._noun} of {len(self):,} keys ({self._kind}) → {values}, {memory(self.table.nbytes)}"
        return "\n".join([head + self._where(), *shown, *(["  …"] if len(self) > len(shown) else [])])

    def _where(self) -> str:
        spread = None if self._table is None else self._table._content.spread
        nodes = 0 if spread is None else spread.cluster.size
        return f", on {nodes} node{'s' if nodes > 1 else ''}" if nodes else ""


def pairs(data: Any, noun: str) -> tuple[list[Any], list[Any]]:
    """Return the keys and values of a mapping."""
    if not isinstance(data, Mapping):
        raise ArgumentError(f"a {noun} is made of a dict, or of keys and values, not of {type(data).__name__}")
    return list(data.keys()), list(data.values())
