"""Available cores, and checks of counts."""

import numbers
import os

from strads.errors import ArgumentError


def available_cores() -> int:
    """Cores that this process may use (the share of a container or batch job, not all of the machine)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_count(name: str, value: object) -> int:
    """Return a whole number of at least 1, or raise ArgumentError."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ArgumentError(f"{name}={value!r}: give a whole number, 1 or more")
    return int(value)


def check_threads(threads: object) -> int:
    """Return a valid number of threads, or raise ArgumentError."""
    return check_count("threads", threads)
