"""Loops of several Python threads that share arguments run one after the other."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from strads.dds import Accumulator
from strads.dds.arguments import table_of
from strads.rng.numbers import RandomNumbers

_locks: "weakref.WeakKeyDictionary[Any, threading.RLock]" = weakref.WeakKeyDictionary()
_adding = threading.Lock()


@contextmanager
def locked(arguments: tuple[Any, ...]) -> Iterator[None]:
    """Hold the locks of all arguments that loops change: no other thread runs a loop on any of them meanwhile.

    A plan says which jobs of one loop may run together, not which jobs of two loops.
    """
    with ExitStack() as held:
        for lock in _locks_of(arguments):
            held.enter_context(lock)
        yield


def _locks_of(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the locks of the arguments, in an order that is the same for all threads."""
    tables = (a if isinstance(a, Accumulator | RandomNumbers) else table_of(a) for a in arguments)
    shared = {id(table): table for table in tables if table is not None}
    with _adding:
        return [_locks.setdefault(shared[key], threading.RLock()) for key in sorted(shared)]
