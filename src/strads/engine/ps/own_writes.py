"""A worker's own updates that may be missing from the rows it reads (read-my-writes)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.engine.ps.messages import RowNumbers


class OwnWrites:
    """A worker's sent updates, kept as long as a row that it reads may lack them.

    Parameters
    ----------
    accumulate
        Adds values to some rows of a result.
    """

    def __init__(self, accumulate: Callable[[Any, NDArray[np.int64], Any], None]):
        self._accumulate = accumulate
        self._sent: list[tuple[int, RowNumbers, Any]] = []

    def sent(self, clock: int, rows: RowNumbers, deltas: Any, held: NDArray[np.int64]) -> None:
        """Keep updates of a clock; drop those before the clocks `held`, by shard, which all rows now include."""
        self._sent = [kept for kept in self._sent if kept[0] >= held[kept[1] % len(held)].min()]
        if len(rows):
            order = np.argsort(rows)
            self._sent.append((clock, rows[order], deltas[order]))

    def clear(self) -> None:
        """Drop all updates: every row includes them."""
        self._sent.clear()

    def overlay(self, rows: RowNumbers, clocks: NDArray[np.int64], out: Any) -> None:
        """Add the missing updates to values of rows that include the worker's updates made before `clocks`."""
        for clock, sent, deltas in self._sent:
            places = np.minimum(np.searchsorted(sent, rows), len(sent) - 1)
            lacking = np.flatnonzero((sent[places] == rows) & (clocks <= clock))
            self._accumulate(out, lacking, deltas[places[lacking]])
