"""How long bodies have been analysed and compiled, by one thread at a time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class CompileClock:
    """Adds up seconds; those of a call are the difference between two readings.

    Whoever looks for what has been compiled, or compiles it, holds the lock: logical nodes share one process, so that
    the first compiles and the others reuse its code.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.seconds = 0.0  # spent on analysis and compilation so far, by all programs of this process
        self._depth = 0  # compilations that are in progress, one within the other

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of what is done in this context, which holds the lock."""
        with self.lock:
            start, self._depth = time.perf_counter(), self._depth + 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += time.perf_counter() - start


COMPILE_CLOCK = CompileClock()
