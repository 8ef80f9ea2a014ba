"""Ctrl-C that waits until what must not be left half way has ended."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from strads.cluster.cluster import Cluster


@contextmanager
def interrupted_later(cluster: Cluster) -> Iterator[Callable[[], bool]]:
    """Within this context the first Ctrl-C waits for the end; a second one interrupts at once.

    Only where Ctrl-C has its usual meaning: a program that handles it, and a context within a context, decide for
    themselves. Yields a function that tells whether one is waiting.
    """
    current = signal.getsignal(signal.SIGINT)
    usual = getattr(current, "handler", current) is signal.default_int_handler  # on MPI, what stands around it
    if not usual or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > 1:
            raise KeyboardInterrupt

    before = cluster.catch(signal.SIGINT, handle)
    try:
        yield lambda: came > 0
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
