"""The scale of the scores that a model has seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ScoreScale:
    """Lowest and highest score so far.

    Attributes
    ----------
    lowest, highest : float
    """

    lowest: float
    highest: float

    @classmethod
    def of(cls, scores: NDArray[np.floating], known: "ScoreScale | None" = None) -> "ScoreScale":
        """Return the scale of scores, and of those before."""
        lowest, highest = float(scores.min()), float(scores.max())
        return cls(lowest, highest) if known is None else cls(min(lowest, known.lowest), max(highest, known.highest))

    def clipped(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return predicted scores, at most as low or as high as those of the data."""
        return np.clip(scores, np.float32(self.lowest), np.float32(self.highest))
