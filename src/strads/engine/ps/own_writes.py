"""A worker's own updates that the rows it reads may lack (read-my-writes)."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.engine.ps.messages import RowNumbers


class OwnWrites:
    """What a worker has sent, for as long as a row that it reads may be without it."""

    def __init__(self) -> None:
        self._sent: list[tuple[int, RowNumbers, NDArray[Any]]] = []

    def sent(self, clock: int, rows: RowNumbers, deltas: NDArray[Any], required: int) -> None:
        """Keep updates of a clock; forget those that every row will hold from now on."""
        self._sent = [kept for kept in self._sent if kept[0] >= required]
        if len(rows):
            order = np.argsort(rows)
            self._sent.append((clock, rows[order], deltas[order]))

    def clear(self) -> None:
        """Forget all: every row holds it."""
        self._sent.clear()

    def overlay(self, rows: RowNumbers, clocks: NDArray[np.int64], out: NDArray[Any]) -> None:
        """Add what values of rows lack, that hold the worker's updates made before some clocks."""
        for clock, sent, deltas in self._sent:
            _overlay(rows, clocks, out, clock, sent, deltas)


@njit(nogil=True, cache=True)
def _overlay(rows, clocks, out, clock, sent, deltas):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        if clocks[i] <= clock:
            place = np.searchsorted(sent, rows[i])
            if place < len(sent) and sent[place] == rows[i]:
                for column in range(out.shape[1]):
                    out[i, column] += deltas[place, column]
