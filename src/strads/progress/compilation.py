"""Notice when Numba compiles something, rather than load it from its cache."""

import threading
from collections.abc import Callable
from contextlib import ExitStack

from numba.core import event

_KIND = "numba:compile"


class Compilation(event.Listener):
    """Calls a function when something is compiled for the first time between `open` and `close`.

    Parameters
    ----------
    begins
        May be called by any thread.
    """

    def __init__(self, begins: Callable[[], None]):
        self._begins = begins
        self._once = threading.Lock()  # held from the first compilation on, or the end
        self._listening = ExitStack()

    def open(self) -> None:
        """Begin to listen; only once."""
        self._listening.enter_context(event.install_listener(_KIND, self))

    def close(self) -> None:
        """Stop listening."""
        self._once.acquire(blocking=False)
        self._listening.close()

    def on_start(self, event: object) -> None:
        """Something is being compiled."""
        if self._once.acquire(blocking=False):
            self._begins()

    def on_end(self, event: object) -> None:
        """Something has been compiled."""
