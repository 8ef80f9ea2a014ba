"""Early stopping: when to give up waiting for an error to fall."""

import math

import numpy as np


def wants_to_stop(answer: object) -> bool:
    """Whether what a callback returned is True, as Python or NumPy has it; anything else, None above all, goes on."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


class Patience:
    """Waits for an error to fall by `tolerance` within so many epochs."""

    def __init__(self, tolerance: float, epochs: int):
        self._tolerance = tolerance
        self._epochs = epochs
        self._reference = self._lowest = math.inf
        self._waited = 0

    def see(self, error: float) -> bool:
        """Take note of an epoch's error; returns whether it is the lowest so far."""
        if error < self._reference - self._tolerance:
            self._reference, self._waited = error, 0
        else:
            self._waited += 1
        is_lowest = error < self._lowest
        self._lowest = min(self._lowest, error)
        return is_lowest

    @property
    def is_over(self) -> bool:
        """Whether the error has not fallen for long enough."""
        return self._waited >= self._epochs
