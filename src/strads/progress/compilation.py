"""Notice when Numba compiles something, rather than load it from its cache."""

import threading
from collections.abc import Callable

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
        self._lock = threading.Lock()
        self._is_registered = self._is_waiting = False

    def open(self) -> None:
        """Begin to listen."""
        self._is_registered = self._is_waiting = True
        event.register(_KIND, self)

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            was_registered, self._is_registered, self._is_waiting = self._is_registered, False, False
        if was_registered:
            event.unregister(_KIND, self)

    def on_start(self, event: object) -> None:
        """Something is being compiled."""
        with self._lock:
            is_first, self._is_waiting = self._is_waiting, False
        if is_first:
            self._begins()

    def on_end(self, event: object) -> None:
        """Something has been compiled."""
