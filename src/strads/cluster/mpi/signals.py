"""Signal handling in the driver: no signal interrupts MPI in the middle of a message."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from strads.signals_while_compiling import is_sent_again

Handler = Callable[[int, FrameType | None], Any]

_AGAIN = 0.002  # seconds until an exception that was ignored is raised again


class Guard:
    """A reentrant lock for all threads; signals caught here are deferred while the main thread holds it.

    What a handler raises is raised again until it is not ignored: Python ignores exceptions in finalizers, and in
    callbacks from C.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._main = threading.main_thread().ident
        self._depth = 0
        self._pending: dict[int, Handler] = {}
        self._ignored: BaseException | None = None  # what was raised without effect
        self._report = sys.unraisablehook

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
            self._call(handler, number, None)

    def _call(self, handler: Handler, number: int, frame: FrameType | None) -> None:
        try:
            if self._ignored is not None:
                ignored, self._ignored = self._ignored, None
                raise ignored.with_traceback(None)
            handler(number, frame)
        except BaseException as error:
            error.signal_number = number  # type: ignore[attr-defined]
            raise

    def _on_ignored(self, unraisable: Any) -> None:
        number = getattr(unraisable.exc_value, "signal_number", None)
        if number is None:
            self._report(unraisable)
            return
        self._ignored = unraisable.exc_value
        again = threading.Timer(_AGAIN, self._raise_again, (number,))  # what is raised here is ignored, too
        again.daemon = True
        again.start()

    def _raise_again(self, number: int) -> None:
        if self._ignored is not None and callable(signal.getsignal(number)):
            os.kill(os.getpid(), number)

    def catch(self, number: int, handler: Handler) -> None:
        """Install a handler, which may raise; it is deferred while the main thread holds the lock."""

        def deferring(number: int, frame: FrameType | None) -> None:
            if self._depth > 0:
                self._pending[number] = handler
            elif not is_sent_again(number):
                self._call(handler, number, frame)

        if sys.unraisablehook != self._on_ignored:
            self._report, sys.unraisablehook = sys.unraisablehook, self._on_ignored
        deferring.handler = handler  # type: ignore[attr-defined]
        signal.signal(number, deferring)


def in_main_thread() -> bool:
    """Whether this thread may set signal handlers."""
    return threading.current_thread() is threading.main_thread()
