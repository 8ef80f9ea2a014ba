"""Signal handling in the driver: no signal interrupts MPI in the middle of a message."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class Guard:
    """A reentrant lock for all threads; signals caught here are deferred while the main thread holds it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._main = threading.main_thread().ident
        self._depth = 0
        self._pending: dict[int, Handler] = {}

    def __enter__(self) -> None:
        if threading.get_ident() == self._main:
            self._depth += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if threading.get_ident() == self._main:
            self._depth -= 1
            if self._pending and self._depth == 0:
                self._answer()

    def _answer(self) -> None:
        pending, self._pending = self._pending, {}
        for number, handler in pending.items():
            handler(number, None)

    def catch(self, number: int, handler: Handler) -> None:
        """Install a handler, which may raise; it is deferred while the main thread holds the lock."""

        def deferring(number: int, frame: FrameType | None) -> None:
            if self._depth > 0:
                self._pending[number] = handler
            else:
                handler(number, frame)

        deferring.handler = handler  # type: ignore[attr-defined]
        signal.signal(number, deferring)


def in_main_thread() -> bool:
    """Whether this thread may set signal handlers."""
    return threading.current_thread() is threading.main_thread()
