"""A worker's own updates that the rows it reads may lack (read-my-writes)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.engine.ps.messages import RowNumbers


class OwnWrites:
    """What a worker has sent, for as long as a row that it reads may be without it.

    Parameters
    ----------
    accumulate
        Adds values to some rows of a result.
    """

    def __init__(self, accumulate: Callable[[Any, NDArray[np.int64], Any], None]):
        self._accumulate = accumulate
        self._sent: list[tuple[int, RowNumbers, Any]] = []

    def sent(self, clock: int, rows: RowNumbers, deltas: Any, held: NDArray[np.int64]) -> None:
        """Keep updates of a clock; forget those before the clocks, by shard, that every row will hold from now on."""
        self._sent = [kept for kept in self._sent if kept[0] >= held[kept[1] % len(held)].min()]
        if len(rows):
            order = np.argsort(rows)
            self._sent.append((clock, rows[order], deltas[order]))

    def clear(self) -> None:
        """Forget all: every row holds it."""
        self._sent.clear()

    def overlay(self, rows: RowNumbers, clocks: NDArray[np.int64], out: Any) -> None:
        """Add what values of rows lack, that hold the worker's updates made before some clocks."""
        for clock, sent, deltas in self._sent:
            places = np.minimum(np.searchsorted(sent, rows), len(sent) - 1)
            lacking = np.flatnonzero((sent[places] == rows) & (clocks <= clock))
            self._accumulate(out, lacking, deltas[places[lacking]])
