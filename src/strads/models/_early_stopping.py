"""Early stopping: which samples are held out, and when to stop waiting for an error to decrease."""

import math

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError


def held_out(count: int, fraction: float, seed: int, what: str = "samples") -> NDArray[np.bool_]:
    """Return a mask of shape (count,) of the samples to hold out, at least one, and never all.

    Raises
    ------
    InputError
        If there are fewer than 2.
    """
    if count < 2:
        raise InputError(f"early_stopping needs at least 2 {what}, one to hold out")
    held = np.zeros(count, bool)
    chosen = min(max(1, round(fraction * count)), count - 1)
    held[np.random.default_rng(seed).choice(count, chosen, replace=False)] = True
    return held


class Patience:
    """Waits for an error to decrease by `tolerance` within a number of epochs."""

    def __init__(self, tolerance: float, epochs: int):
        self._tolerance = tolerance
        self._epochs = epochs
        self._reference = self._lowest = math.inf
        self._waited = 0

    def see(self, error: float) -> bool:
        """Record an epoch's error; returns whether it is the lowest so far."""
        if error < self._reference - self._tolerance:
            self._reference, self._waited = error, 0
        else:
            self._waited += 1
        is_lowest = error < self._lowest
        self._lowest = min(self._lowest, error)
        return is_lowest

    @property
    def is_over(self) -> bool:
        """Whether the error has not decreased for `epochs` epochs."""
        return self._waited >= self._epochs
