"""The scale of the scores that a model has seen."""

from dataclasses import dataclass
from typing import Any, Self

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

    @classmethod
    def restored(cls, fields: Any) -> Self:
        """Return the scale of a model file; that of one without it has no bounds.

        Raises
        ------
        ValueError, TypeError
            If the fields are no such numbers.
        """
        scale = cls(-np.inf, np.inf) if fields is None else cls(float(fields["lowest"]), float(fields["highest"]))
        if not scale.lowest <= scale.highest:
            raise ValueError("the scale of the scores is empty")
        return scale

    def clipped(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return predicted scores, at most as low or as high as those of the data."""
        return np.clip(scores, np.float32(self.lowest), np.float32(self.highest))
