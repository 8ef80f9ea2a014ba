"""Refuse driver-only calls on workers' threads, where they would deadlock."""

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from strads.errors import ArgumentError, StradsError

_thread = threading.local()
# Clusters running the program that this thread belongs to; thread teams pass it on to their members.
_running: contextvars.ContextVar[tuple[object, ...]] = contextvars.ContextVar("running", default=())


def mark_as_worker() -> None:
    """Mark this thread as part of a program that the driver waits for."""
    _thread.is_worker = True


def check_driver() -> None:
    """Raise StradsError on a worker's thread, which would wait for nodes that wait for it."""
    if getattr(_thread, "is_worker", False):
        raise StradsError("this is for the driver, outside ps.run: workers use the tables passed to them")


@contextmanager
def running_on(cluster: object) -> Iterator[None]:
    """Context in which all nodes of a cluster run a program.

    Raises
    ------
    ArgumentError
        If they already do: the caller is part of that program, which would wait for itself.
    """
    if cluster in _running.get():
        raise ArgumentError(
            "a node program cannot start another one: loops over several nodes, operators on their tables, and engines "
            "are for the driver"
        )
    token = _running.set((*_running.get(), cluster))
    try:
        yield
    finally:
        _running.reset(token)
