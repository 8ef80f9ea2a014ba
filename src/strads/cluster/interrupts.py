"""Ctrl-C that waits until what must not be left half way has ended."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from strads.cluster.cluster import Cluster


@contextmanager
def interrupted_later(cluster: Cluster) -> Iterator[None]:
    """Within this context the first Ctrl-C waits for the end; a second one interrupts at once.

    Only where Ctrl-C has its usual meaning: a program that handles it, and a context within a context, decide for
    themselves.
    """
    current = signal.getsignal(signal.SIGINT)
    usual = getattr(current, "handler", current) is signal.default_int_handler  # on MPI, what stands around it
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    came = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > 1:
            raise KeyboardInterrupt

    before = cluster.catch(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
