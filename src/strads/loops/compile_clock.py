"""How long bodies have been analysed and compiled."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class CompileClock:
    """Adds up seconds; one thread at a time compiles, and those of a call are the difference between two readings."""

    def __init__(self) -> None:
        self.seconds = 0.0  # spent on analysis and compilation so far, by all programs of this process
        self._depth = 0  # compilations that are in progress, one within the other

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of what is done in this context."""
        start, self._depth = time.perf_counter(), self._depth + 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - start


COMPILE_CLOCK = CompileClock()
