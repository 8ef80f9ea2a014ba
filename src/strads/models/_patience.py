"""Early stopping: how long to wait for an error to decrease."""

import math


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
