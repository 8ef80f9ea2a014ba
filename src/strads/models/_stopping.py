"""When training ends early: on Ctrl-C (deferred to the end of an iteration), by a callback, or by early stopping."""

import math
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from strads import cluster
from strads.cluster.critical_sections import interrupts_deferred


def wants_to_stop(answer: object) -> bool:
    """Whether a callback returned Python's or NumPy's True; anything else, such as None, means to continue."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


class Stopping:
    """A context that defers Ctrl-C to `look`, and exceptions raised there to the end, when the model is consistent."""

    def __init__(self) -> None:
        self.is_wanted = False  # whether training is to stop
        self.error: BaseException | None = None  # raised at the end: KeyboardInterrupt, or an exception of the callback
        self._calm = ExitStack()

    def __enter__(self) -> Self:
        self._wait()
        return self

    def _wait(self) -> None:
        self._has_come = self._calm.enter_context(interrupts_deferred(cluster.current().cluster))

    def look(self, record: Any, on_iteration: Callable[[Any], object] | None) -> bool:
        """Handle a deferred Ctrl-C, then call the callback; returns whether to stop. Training must then end."""
        if on_iteration is None and not self._has_come():
            return self.is_wanted
        try:
            self._calm.close()
            if on_iteration is not None and wants_to_stop(on_iteration(record)):
                self.is_wanted = True
        except BaseException as error:
            self.is_wanted, self.error = True, error
        self._wait()
        return self.is_wanted

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calm.close()
        if error is None and self.error is not None:
            raise self.error


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
