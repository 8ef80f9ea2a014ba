"""Hash index from keys to rows: keys sorted by hash, and the start of each bucket of hashes.

Keys in hash order need no empty slots, stay sorted when they are cut into ranges for nodes, and their order does
not depend on the number of nodes. The leading bits of a hash give the bucket. There are two to four buckets per key:
mostly the first key of a bucket is the one looked for, so branches are predicted well.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.dds._hashing import Hashes, hash_bytes, hash_keys
from strads.dds._keys import Key, Keys
from strads.dds._layout import take
from strads.dds.ragged import RaggedArray
from strads.rng.splitmix import mix

NOT_FOUND = -1  # row of a key that is missing


@dataclass(frozen=True, eq=False)
class HashIndex:
    """Maps each key to its row.

    Attributes
    ----------
    keys : int64 of shape (keys,), or ragged rows of uint8
        Sorted by `mix(key)`, or by `hash_bytes` of the UTF-8 bytes. Row r belongs to `keys[r]`.
    starts : (buckets + 1,) int32; int64 for more than 2³¹ keys
        Bucket b holds the rows `starts[b]:starts[b + 1]`.
    shift : uint64
        The bucket of a hash h is `h >> shift`.
    """

    keys: Keys
    starts: NDArray[np.integer]
    shift: np.uint64

    @classmethod
    def of_ordered(cls, keys: Keys, hashes: Hashes) -> "HashIndex":
        """Index distinct keys sorted by hash."""
        bits = 1 + max(0, len(keys) - 1).bit_length()
        shift = np.uint64(64 - bits)
        dtype = np.int32 if len(keys) <= np.iinfo(np.int32).max else np.int64
        starts: NDArray[np.integer] = np.zeros((1 << bits) + 1, dtype)
        np.cumsum(np.bincount((hashes >> shift).astype(np.int64), minlength=1 << bits), out=starts[1:])
        return cls(keys, starts, shift)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.integer], np.uint64]:
        """Arguments of `find_number`: keys, starts and shift; read-only. For numeric keys."""
        assert not isinstance(self.keys, RaggedArray)
        keys, starts = np.ascontiguousarray(self.keys).view(), self.starts.view()
        keys.flags.writeable = starts.flags.writeable = False
        return keys, starts, self.shift

    def find(self, key: Key) -> int:
        """Return the row of a key, or -1."""
        if isinstance(self.keys, RaggedArray):
            if not isinstance(key, str):
                return NOT_FOUND
            text = np.frombuffer(key.encode("utf-8", "surrogatepass"), np.uint8)
            return find_text(self.keys.values, self.keys.offsets, self.starts, self.shift, text)
        return NOT_FOUND if isinstance(key, str) else find_number(self.keys, self.starts, self.shift, key)

    def rows_of(self, keys: Keys) -> NDArray[np.int64]:
        """Return the row of each key, or -1."""
        if isinstance(keys, RaggedArray) != isinstance(self.keys, RaggedArray):
            return np.full(len(keys), NOT_FOUND)
        if isinstance(self.keys, RaggedArray):
            own = self.keys.values, self.keys.offsets
            return _find_texts(*own, self.starts, self.shift, keys.values, keys.offsets)  # type: ignore[union-attr]
        return _find_numbers(self.keys, self.starts, self.shift, keys)


@njit(nogil=True, cache=True, forceinline=True)
def find_number(keys: Any, starts: Any, shift: Any, key: Any) -> Any:
    """Row of an int64 key, or -1: the lookup of compiled loop bodies."""
    bucket = mix(key) >> shift
    row, end = np.uint64(starts[bucket]), np.uint64(starts[bucket + np.uint64(1)])  # unsigned: no negative-index check
    while row < end:
        if keys[row] == key:
            return np.int64(row)
        row += np.uint64(1)
    return np.int64(-1)


@njit(nogil=True, cache=True)
def find_text(values: Any, offsets: Any, starts: Any, shift: Any, text: Any) -> Any:
    """Row of a text, given as bytes, or -1; `values` and `offsets` hold the index's keys as ragged rows."""
    bucket = np.int64(hash_bytes(text) >> shift)
    for row in range(starts[bucket], starts[bucket + 1]):
        first = offsets[row]
        if offsets[row + 1] - first != len(text):
            continue
        same = True
        for k in range(len(text)):
            if values[first + k] != text[k]:
                same = False
                break
        if same:
            return row
    return np.int64(-1)


@njit(nogil=True, cache=True)
def _find_numbers(own: Any, starts: Any, shift: Any, keys: Any) -> Any:
    """Look up `keys` among the index's keys `own`."""
    rows = np.empty(len(keys), np.int64)
    for k in range(len(keys)):
        rows[k] = find_number(own, starts, shift, keys[k])
    return rows


@njit(nogil=True, cache=True)
def _find_texts(own: Any, own_offsets: Any, starts: Any, shift: Any, values: Any, offsets: Any) -> Any:
    """Look up the texts `values`, `offsets` (ragged rows) among the index's keys `own`, `own_offsets`."""
    rows = np.empty(len(offsets) - 1, np.int64)
    for k in range(len(rows)):
        rows[k] = find_text(own, own_offsets, starts, shift, values[offsets[k] : offsets[k + 1]])
    return rows


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows grouped by key: group g is `order[offsets[g]:offsets[g + 1]]`.

    Attributes
    ----------
    keys
        The distinct keys, sorted by hash.
    hashes
        Hash of each distinct key.
    order : (rows,) int64
        Rows grouped by key; rows of one key keep their order.
    offsets : (keys + 1,) int64
        Where each group starts in `order`.
    """

    keys: Keys
    hashes: Hashes
    order: NDArray[np.int64]
    offsets: NDArray[np.int64]


def group_keys(keys: Keys) -> Groups:
    """Group equal keys, in the order of their hashes."""
    hashes = hash_keys(keys)
    order = np.argsort(hashes, kind="stable")
    if isinstance(keys, RaggedArray):
        _untangle(keys, hashes, order)
    ordered = take(keys, order)
    sorted_hashes = hashes[order]
    first = np.ones(len(order), bool)
    if isinstance(ordered, RaggedArray):
        first[1:] = _differs_from_previous(ordered.values, ordered.offsets)
    else:
        first[1:] = sorted_hashes[1:] != sorted_hashes[:-1]
    starts = np.flatnonzero(first)
    distinct = take(ordered, starts)
    return Groups(distinct, sorted_hashes[starts], order, np.append(starts, len(order)))


def _untangle(keys: RaggedArray, hashes: Hashes, order: NDArray[np.int64]) -> None:
    """Sort distinct texts with the same hash, so that equal ones are adjacent."""
    ordered = keys.take(order)
    differs = _differs_from_previous(ordered.values, ordered.offsets)
    tangled = differs & (hashes[order][1:] == hashes[order][:-1])
    for h in np.unique(hashes[order][1:][tangled]):
        low, high = np.searchsorted(hashes[order], h, "left"), np.searchsorted(hashes[order], h, "right")
        order[low:high] = sorted(order[low:high], key=lambda row: keys[row].tobytes())


@njit(nogil=True, cache=True)
def _differs_from_previous(values: Any, offsets: Any) -> Any:
    differs = np.zeros(max(len(offsets) - 2, 0), np.bool_)
    for k in range(len(differs)):
        a, b, c = offsets[k], offsets[k + 1], offsets[k + 2]
        differs[k] = c - b != b - a
        if not differs[k]:
            for n in range(b - a):
                if values[a + n] != values[b + n]:
                    differs[k] = True
                    break
    return differs
