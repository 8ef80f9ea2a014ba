"""SIGTERM, by which batch systems and clouds announce that a program will be killed: a last snapshot, then the end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from strads.checkpoints.session import EXIT_STATUS, Session


@contextmanager
def snapshot_at_sigterm(session: Session) -> Iterator[None]:
    """Context in which SIGTERM lets the running operator finish, writes a snapshot, and raises SystemExit(143).

    Outside of operators the snapshot is written at once. A second signal ends the program immediately.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield  # the program handles it itself
        return

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        session.wants_to_end = True
        if not session.is_inside:
            session.finish(60.0)
            raise SystemExit(EXIT_STATUS)

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
