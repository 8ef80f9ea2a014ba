"""Defer Ctrl-C during critical sections."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from strads.cluster.cluster import Cluster
from strads.signals_while_compiling import is_sent_again


@contextmanager
def interrupts_deferred(cluster: Cluster) -> Iterator[Callable[[], bool]]:
    """Context that defers the first Ctrl-C to its end; a second one interrupts immediately.

    Has no effect where Ctrl-C does not have its default handler: in a program with its own handler, and when nested.
    Yields a function that tells whether a Ctrl-C is pending.
    """
    current = signal.getsignal(signal.SIGINT)
    usual = getattr(current, "handler", current) is signal.default_int_handler  # on MPI, the handler inside the wrapper
    if not usual or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > 1 and not is_sent_again(number):
            raise KeyboardInterrupt

    previous = cluster.catch(signal.SIGINT, handle)
    try:
        yield lambda: came > 0
    finally:
        signal.signal(signal.SIGINT, previous)
        if came:  # also after an error, which the program may catch
            raise KeyboardInterrupt
