"""SIGTERM, by which batch systems and clouds announce that a program will be killed: a last snapshot, then the end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from strads.checkpoints.session import EXIT_STATUS, Session
from strads.signals_while_compiling import is_sent_again


@contextmanager
def snapshot_at_sigterm(session: Session) -> Iterator[None]:
    """Context in which SIGTERM lets the running operator finish, writes a snapshot, and raises SystemExit(143).

    Outside of operators the snapshot is written at once. A second signal ends the program immediately. Handlers of Ray
    and of the MPI backend are replaced, but not one of the program.
    """
    before = signal.getsignal(signal.SIGTERM)
    install = _installer(before)
    if threading.current_thread() is not threading.main_thread() or install is None:
        yield  # the program handles it itself
        return

    def handle(number: int, frame: FrameType | None) -> None:
        session.wants_to_end = True
        if session.is_inside:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        elif not is_sent_again(number):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            session.finish()
            raise SystemExit(EXIT_STATUS)

    install(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _installer(handler: Any) -> Callable[[int, Any], Any] | None:
    """Return what installs another handler in place of one; None if it is the program's own."""
    module = str(getattr(handler, "__module__", ""))  # None for a method of a type written in C
    if handler is signal.SIG_DFL or module.startswith("ray."):
        return signal.signal
    replace: Callable[[int, Any], Any] | None = getattr(handler, "replace", None)  # of MPI, which defers signals
    return replace
