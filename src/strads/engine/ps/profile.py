"""Staleness of reads (ESSP, fig. 1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

REACH = 1024  # larger clock differentials are clipped to this


@dataclass(frozen=True)
class StalenessProfile:
    """Clock differentials of reads.

    There is one for each row read and each worker: the latest clock up to which all of the worker's updates are in the
    row, minus the reader's clock. Under BSP it is always -1: all updates before the reader's clock, and none later.

    Attributes
    ----------
    differentials
        The values that occurred, ascending.
    counts
        Number of occurrences of each.
    newest
        The profile that counts, for each row read, only the worker with the newest updates in it.
    """

    differentials: NDArray[np.int64]
    counts: NDArray[np.int64]
    newest: "StalenessProfile | None" = None

    @classmethod
    def of(cls, histograms: NDArray[np.int64]) -> "StalenessProfile":
        """Make a profile from counts over -REACH..REACH: of all workers, and of the newest."""
        every, newest = (cls(np.flatnonzero(counts) - REACH, counts[counts > 0]) for counts in histograms)
        return cls(every.differentials, every.counts, newest)

    @property
    def mean(self) -> float:
        """Mean differential; nan without reads."""
        return float(np.average(self.differentials, weights=self.counts)) if len(self.counts) else float("nan")

    @property
    def shares(self) -> NDArray[np.float64]:
        """Return the normalized counts."""
        return self.counts / max(self.counts.sum(), 1)

    def __str__(self) -> str:
        peak = max(self.counts, default=1)
        bars = ("█" * max(1, round(30 * count / peak)) for count in self.counts)
        rows = zip(self.differentials, self.shares, bars, strict=True)
        return "\n".join(f"{differential:5d} {share:7.1%} {bar}" for differential, share, bar in rows)
