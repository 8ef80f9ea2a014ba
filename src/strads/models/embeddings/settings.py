"""Settings of the training programs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.word_windows import subsample
from strads.rng.philox import mixed_key
from strads.schmp import Round, Schedule

SUBSAMPLING, NOISE = 1, 2  # purposes of random streams


@dataclass(frozen=True)
class Settings:
    """Parameters of a training run.

    Attributes
    ----------
    window, shrink_windows, negative, mean
        As in `Word2Vec`; `mean` is its `cbow_mean`.
    alpha, min_alpha
        Learning rate at the start and at the end.
    segments
        Parts of the text that are processed one after another.
    epochs
        Number of passes.
    seed
        Determines all random streams.
    """

    window: int
    shrink_windows: bool
    negative: int
    mean: bool
    alpha: float
    min_alpha: float
    segments: int
    epochs: int
    seed: int

    def rates(self, epoch: int, segment: int, first: float, last: float) -> tuple[np.float32, np.float32]:
        """Learning rate at two moments of a segment, from 0 (its start) to 1 (its end); it falls linearly."""
        passed = epoch * self.segments + segment
        low, high = (
            self.alpha - (self.alpha - self.min_alpha) * (passed + moment) / (self.segments * self.epochs)
            for moment in (first, last)
        )
        return np.float32(low), np.float32(high)

    def key(self, purpose: int, epoch: int, segment: int) -> np.uint64:
        """Key of the random streams of a segment, for `SUBSAMPLING` (tokens and windows) or `NOISE` (negatives)."""
        moment = epoch * self.segments + segment
        return np.uint64(mixed_key(np.uint64(self.seed), np.uint64(purpose), np.uint64(moment)))


def subsampled(
    piece: NDArray[np.int32],
    keep: NDArray[np.uint64],
    settings: Settings,
    epoch: int,
    segment: int,
    stream: np.uint64,
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return a piece of a segment after subsampling, and how far each window reaches; see `subsample`."""
    words, reaches = np.empty(len(piece), np.int32), np.empty(len(piece), np.uint8)
    key = settings.key(SUBSAMPLING, epoch, segment)
    window, shrink = settings.window, settings.shrink_windows
    count = subsample(piece, keep, window, shrink, key, stream, words, reaches)
    return words[:count].copy(), reaches[:count].copy()


def rounds_of_segments(rounds: Sequence[Round], segments: int) -> Schedule:
    """Repeat the rounds of a segment; jobs carry its number as `parameters`."""
    return Schedule(
        tuple(
            Round(tuple(replace(job, parameters=segment) for job in each.jobs), each.synchronize)
            for segment in range(segments)
            for each in rounds
        )
    )
