"""BLAS on one thread: the threads are ours, and the order of its sums would depend on how many it has."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_entering = threading.Lock()
_inside = 0  # contexts that are open in this process: the limit is the process's, not a thread's
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to the calling thread until the last such context in this process ends."""
    global _inside, _limit
    with _entering:
        if _inside == 0:
            _limit = _thread_pools().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _entering:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()
