"""Shape and dtype of a table, and the default distribution of its rows over nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.errors import ArgumentError
from strads.partition import offsets_of

Bounds = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layout:
    """Shape and dtype of a table.

    Attributes
    ----------
    shape
        (rows, …); (rows,) for records and ragged rows.
    dtype
        Dtype of the numbers or records.
    offsets : (rows + 1,) int64, optional
        Where each ragged row starts. None: all rows have the same shape.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offsets: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, storage: Storage) -> "Layout":
        """Return the layout of existing arrays."""
        if isinstance(storage, RaggedArray):
            return cls((len(storage),), storage.dtype, storage.offsets)
        return cls(storage.shape, storage.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def is_ragged(self) -> bool:
        """Whether rows may differ in length."""
        return self.offsets is not None

    @property
    def values(self) -> int:
        """Total number of numbers (or records) in all rows."""
        return int(np.prod(self.shape)) if self.offsets is None else int(self.offsets[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return self.values * self.dtype.itemsize + (0 if self.offsets is None else self.offsets.nbytes)

    def empty(self) -> Storage:
        """Return uninitialized arrays of this layout."""
        if self.offsets is None:
            return np.empty(self.shape, self.dtype)
        return RaggedArray(np.empty(self.values, self.dtype), self.offsets)

    def equal_bounds(self, nodes: int) -> Bounds:
        """Return bounds with equally many rows per node; for ragged rows, about equally many numbers."""
        if self.offsets is None:
            return np.arange(nodes + 1) * len(self) // nodes
        targets = np.arange(1, nodes) * self.values / nodes
        inner = np.searchsorted(self.offsets[1:], targets, side="left")
        return np.concatenate([[0], np.minimum(inner, len(self)), [len(self)]]).astype(np.int64)

    def check_bounds(self, bounds: ArrayLike, nodes: int) -> Bounds:
        """Return the bounds if they distribute all rows over `nodes` nodes, or raise ArgumentError."""
        checked = np.asarray(bounds)
        if checked.shape != (nodes + 1,) or checked.dtype.kind not in "iu":
            raise ArgumentError(f"bounds of {nodes} nodes are {nodes + 1} integers, not {bounds!r:.60}")
        if checked[0] != 0 or checked[-1] != len(self) or np.any(checked[1:] < checked[:-1]):
            raise ArgumentError(f"bounds of {len(self)} rows increase from 0 to {len(self)}, unlike {bounds!r:.60}")
        return checked.astype(np.int64)


def concatenated(parts: Sequence[Any]) -> Any:
    """Return the rows of several storages of one kind, one after the other; a single one is not copied."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], RaggedArray):
        return np.concatenate(parts)
    lengths = np.concatenate([part.lengths for part in parts])
    return RaggedArray(np.concatenate([part.values for part in parts]), offsets_of(lengths))


def take(storage: Storage, rows: NDArray[np.integer]) -> Storage:
    """Return a copy of the given rows."""
    if isinstance(storage, RaggedArray):
        return storage.take(rows)
    row_bytes = storage.dtype.itemsize * int(np.prod(storage.shape[1:]))
    if row_bytes == 0 or len(storage) == 0 or not storage.flags.c_contiguous:
        return storage[rows]
    # As rows of bytes: NumPy copies records field by field, which is five times slower.
    opaque = storage.reshape(-1).view(np.dtype((np.void, row_bytes)))
    return opaque.take(rows).view(storage.dtype).reshape(len(rows), *storage.shape[1:])


def numbers(storage: Storage) -> NDArray[Any]:
    """Return the array of all numbers of some rows, which is what is sent over the network."""
    return storage.values if isinstance(storage, RaggedArray) else storage


def owners(bounds: Bounds, rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the node that holds each row."""
    return np.searchsorted(bounds, rows, side="right") - 1


def inverse(order: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the permutation that undoes another one."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place
