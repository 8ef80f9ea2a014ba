"""The driver, and threads that are not: who starts programs on nodes waits for them, which these must not do."""

import threading

from strads.errors import StradsError

_thread = threading.local()


def work_for_the_driver() -> None:
    """Note that this thread belongs to a program that the driver waits for."""
    _thread.is_worker = True


def check_driver() -> None:
    """Raise StradsError on the thread of a worker: it would wait for nodes that wait for it."""
    if getattr(_thread, "is_worker", False):
        raise StradsError("this is for the driver, outside of ps.run: workers use the tables that they are passed")
