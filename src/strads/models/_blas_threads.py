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
    """Limit BLAS to the calling thread until the last such context in this process ends, in whatever thread."""
    with _pools_of_each_thread().limit(limits=1), _limit_of_process():
        yield


@contextmanager
def _limit_of_process() -> Iterator[None]:
    global _inside, _limit
    with _entering:
        if _inside == 0:
            _free_control()
            _limit = _pools().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _entering:
            _inside -= 1
            if _inside == 0:
                _free_control()
                _limit.restore_original_limits()
                _free_control()


def _free_control() -> None:
    """Let any thread set limits: threadpoolctl lets only the first one that did, as long as that thread runs."""
    for pool in _pools().lib_controllers:
        if hasattr(pool, "clear_controlling_thread"):  # since version 3.7
            pool.clear_controlling_thread(force=True)


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pools_of_each_thread() -> ThreadpoolController:
    """Return those whose limit holds for the calling thread alone: OpenBLAS that is built on OpenMP."""
    return _pools().select(internal_api="openblas").select(threading_layer="openmp")
