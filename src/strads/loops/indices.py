"""The index space of a loop: a range, or an array of indices."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import ArgumentError

_NO_VALUES = np.zeros(0, np.int64)
_INT64 = np.iinfo(np.int64)


class LoopIndices:
    """Loop indices by position; a range is never materialized."""

    def __init__(self, start: int, step: int, values: NDArray[np.int64], length: int):
        self.start = start  # of the range; otherwise 0
        self.step = step  # of the range; otherwise 1
        self.values = values  # (length,); empty for a range
        self._length = length

    @classmethod
    def of(cls, indices: Any) -> "LoopIndices":
        """Accept a range, a number of iterations, or a one-dimensional sequence of integers, which may be shared.

        Raises
        ------
        ArgumentError
            For any other argument.
        """
        if isinstance(indices, bool | float | str):
            raise ArgumentError(f"indices={indices!r}: give a range, a number of iterations, or integers")
        if isinstance(indices, int | np.integer):
            indices = range(int(indices))
        if isinstance(indices, range):
            if indices and not all(_INT64.min <= end <= _INT64.max for end in (indices[0], indices[-1])):
                raise ArgumentError(f"indices={indices!r}: loop indices are 64-bit integers, from -2**63 to 2**63 - 1")
            return cls(indices.start, indices.step, _NO_VALUES, len(indices))
        values = np.asarray(indices)
        if values.ndim != 1 or (values.dtype.kind not in "iu" and values.size > 0):
            kind = f"a {type(indices).__name__}"
            if values.dtype != object:
                kind = f"an array of {values.dtype} with shape {values.shape}"
            raise ArgumentError(f"indices is {kind}: give a range, a number of iterations, or integers")
        if values.dtype.kind == "u" and values.size > 0 and values.max() > _INT64.max:
            raise ArgumentError(f"indices has {values.max()}: loop indices are 64-bit integers, up to 2**63 - 1")
        return cls(0, 1, np.ascontiguousarray(values, np.int64), len(values))

    def copy(self) -> "LoopIndices":
        """Return indices that share no memory with the caller's."""
        return self if self.is_range else LoopIndices(0, 1, self.values.copy(), self._length)

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LoopIndices):
            return False
        if (self.start, self.step, len(self), self.is_range) != (other.start, other.step, len(other), other.is_range):
            return False
        # Mostly, others differ at once.
        return self.is_range or bool(self[0] == other[0] and np.array_equal(self.values, other.values))

    __hash__ = None  # type: ignore[assignment]

    @property
    def signature(self) -> tuple[Any, ...]:
        """What tells these indices from others."""
        return self.start, self.step, len(self), self.values

    @property
    def is_range(self) -> bool:
        """Whether they are the numbers of a range."""
        return len(self.values) == 0

    @property
    def is_counting(self) -> bool:
        """Whether every index equals its position."""
        return self.is_range and self.start == 0 and self.step == 1

    @property
    def are_distinct_rows(self) -> bool:
        """Whether they certainly select different rows of a table: none occurs twice, and none counts from the end."""
        return self.is_range and self.bounds()[0] >= 0

    def bounds(self) -> tuple[int, int]:
        """Return the lowest and the highest index; (0, -1) if there are none."""
        if len(self) == 0:
            return 0, -1
        if not self.is_range:
            return self._bounds_of_values
        first, last = self[0], self[len(self) - 1]
        return min(first, last), max(first, last)

    @cached_property
    def _bounds_of_values(self) -> tuple[int, int]:
        return int(self.values.min()), int(self.values.max())

    def at(self, positions: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the indices at the given positions; shares memory with them if possible."""
        if self.is_counting:
            return positions
        if not self.is_range:
            return self.values[positions]
        return self.start + self.step * positions.astype(np.int64)

    def part(self, first: int, last: int) -> "LoopIndices":
        """Return the indices at the positions `first..last - 1`."""
        if not self.is_range:
            return LoopIndices(0, 1, self.values[first:last], int(last - first))
        return LoopIndices(self.start + self.step * int(first), self.step, _NO_VALUES, int(last - first))

    def every(self, stride: int) -> "LoopIndices":
        """Return the indices at the positions 0, `stride`, 2 `stride`, …"""
        if not self.is_range:
            return LoopIndices.of(self.values[::stride])
        return LoopIndices(self.start, self.step * stride, _NO_VALUES, -(-len(self) // stride))

    def __getitem__(self, position: int) -> int:
        if not self.is_range:
            return int(self.values[position])
        return self.start + self.step * position
