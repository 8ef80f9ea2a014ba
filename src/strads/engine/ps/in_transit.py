"""A worker's updates that are not yet visible to all others, kept below a bound (VAP; ESSP, "VAP condition")."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.engine.ps.dense_rows import Coalesced
from strads.engine.ps.messages import RowNumbers, Values
from strads.errors import InputError

_PORTIONS = 1e6  # largest number of portions that an update may be sent in


class InTransit:
    """Sums of the updates of one worker that are in transit.

    Parameters
    ----------
    rows, columns, dtype
        Shape and dtype of the table.
    """

    def __init__(self, rows: int, columns: int, dtype: DTypeLike):
        self._sums = Coalesced(rows, columns, dtype)
        self._sent: dict[tuple[int, int], tuple[RowNumbers, Values]] = {}
        self._next = 0

    def within(self, rows: RowNumbers, deltas: NDArray[Any], bound: float) -> tuple[Values, Values | None]:
        """Split updates, entry by entry, into the part that fits within the bound and the rest (None: nothing).

        Of a repeated row, the first few updates may be taken and the others left.

        Raises
        ------
        InputError
            For values that could never be sent in portions within the bound: NaN, or far too large.
        """
        if not np.all(np.abs(deltas) <= _PORTIONS * bound):
            raise InputError(
                f"an update has an entry of {np.abs(deltas).max():.3g}, of which VAP lets each worker have {bound:.3g} "
                "in transit: does the program diverge?"
            )
        distinct, inverse = np.unique(rows, return_inverse=True)
        if len(distinct) < len(rows):  # updates of the same row share the room that is left
            sums = np.zeros((len(distinct), deltas.shape[1]), deltas.dtype)
            np.add.at(sums, inverse, deltas)
            first = np.unique(inverse, return_index=True)[1]
            deltas = np.zeros_like(deltas)
            deltas[first] = sums
        now = np.zeros_like(deltas)
        self._sums.overlay(rows, now)
        taken = np.clip(now + deltas, -bound, bound) - now
        taken = np.where(np.abs(now + deltas) <= bound, deltas, taken)  # the exact update, not a rounded one
        taken = taken.astype(deltas.dtype)  # before computing the rest, so that no fraction of an integer is lost
        rest = deltas - taken
        return taken, rest if rest.any() else None

    def add(self, rows: RowNumbers, deltas: NDArray[Any]) -> None:
        """Count updates as in transit."""
        self._sums.add(rows, deltas)

    def sent(self, shard: int, rows: RowNumbers, deltas: Values) -> int:
        """Record updates sent to a shard; returns their number."""
        self._next += 1
        self._sent[shard, self._next] = rows, deltas
        return self._next

    def visible(self, shard: int, number: int) -> None:
        """Record that an update is visible to all."""
        rows, deltas = self._sent.pop((shard, number))
        self._sums.add(rows, -deltas)

    def reset(self) -> None:
        """Reset the sums, dropping accumulated rounding errors: nothing is in transit, or about to be."""
        self._sums.take()

    @property
    def is_empty(self) -> bool:
        """Whether all sent updates are visible to all."""
        return not self._sent

    @property
    def largest(self) -> float:
        """Largest absolute value of the sums."""
        return self._sums.largest
