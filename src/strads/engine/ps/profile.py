"""How old what workers read was (ESSP, fig. 1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

REACH = 1024  # clock differentials beyond are counted there


@dataclass(frozen=True)
class StalenessProfile:
    """Clock differentials of reads.

    Of each row that is read, and each worker, one: the clock of the worker's last updates that are all in it, less the
    reader's clock. Under BSP it is always -1: all updates of the clocks before the reader's, and none of its own.

    Attributes
    ----------
    differentials
        From small to large, those that occurred.
    counts
        How often.
    newest
        The profile that counts, of each row that is read, only the worker whose updates in it are the newest.
    """

    differentials: NDArray[np.int64]
    counts: NDArray[np.int64]
    newest: "StalenessProfile | None" = None

    @classmethod
    def of(cls, histograms: NDArray[np.int64]) -> "StalenessProfile":
        """Make a profile of counts from -REACH to REACH: of all workers, and of the newest."""
        every, newest = (cls(np.flatnonzero(counts) - REACH, counts[counts > 0]) for counts in histograms)
        return cls(every.differentials, every.counts, newest)

    @property
    def mean(self) -> float:
        """Mean differential; nan without reads."""
        return float(np.average(self.differentials, weights=self.counts)) if len(self.counts) else float("nan")

    @property
    def shares(self) -> NDArray[np.float64]:
        """Normalized counts."""
        return self.counts / max(self.counts.sum(), 1)

    def __str__(self) -> str:
        peak = max(self.counts, default=1)
        bars = ("█" * max(1, round(30 * count / peak)) for count in self.counts)
        rows = zip(self.differentials, self.shares, bars, strict=True)
        return "\n".join(f"{differential:5d} {share:7.1%} {bar}" for differential, share, bar in rows)
