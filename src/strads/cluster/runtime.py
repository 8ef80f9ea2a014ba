"""Where programs run: the backend and its threads, chosen once by `strads.init`."""

import numbers
import os
from types import TracebackType
from typing import Self

from strads.cluster.threads import ThreadTeam
from strads.errors import ArgumentError


def available_cores() -> int:
    """Cores that this process may use (a container's or a batch system's share, not the machine's)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Runtime:
    """The threads that loops run on. Use as a context manager to go back to the defaults afterwards."""

    def __init__(self, threads: int):
        self.threads = threads
        self._teams: dict[int, ThreadTeam] = {}

    def team(self, threads: int | None = None) -> ThreadTeam:
        """Return a team of so many threads (the runtime's own number by default); made when first asked for."""
        size = self.threads if threads is None else check_threads(threads)
        if size not in self._teams:
            self._teams[size] = ThreadTeam(size)
        return self._teams[size]

    def close(self) -> None:
        """End all threads."""
        for team in self._teams.values():
            team.close()
        self._teams.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _current is self:
            shutdown()
        else:  # another one has been chosen meanwhile
            self.close()


def check_threads(threads: object) -> int:
    """Return a number of threads, or raise ArgumentError."""
    if isinstance(threads, bool) or not isinstance(threads, numbers.Integral) or threads < 1:
        raise ArgumentError(f"threads={threads!r}: give a whole number of threads, 1 or more")
    return int(threads)


_current: Runtime | None = None


def init(backend: str = "threads", *, threads: int | None = None) -> Runtime:
    """Choose where loops run; without it they run on all cores of this machine.

    Parameters
    ----------
    backend
        "threads": the cores of this machine.
    threads
        Number of threads; by default the cores that this process may use.

    Returns
    -------
    Runtime
        A context manager that calls `shutdown` at its end.
    """
    global _current
    if backend != "threads":
        raise ArgumentError(f"backend={backend!r} is not available: this version runs on 'threads'")
    size = available_cores() if threads is None else check_threads(threads)
    shutdown()
    _current = Runtime(size)
    return _current


def shutdown() -> None:
    """End the threads. The next loop starts with the defaults again."""
    global _current
    if _current is not None:
        _current.close()
        _current = None


def _forget() -> None:
    """In a forked child: the parent's threads are not there."""
    global _current
    _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def current() -> Runtime:
    """Return the runtime in force; the default one is started when needed."""
    return _current if _current is not None else init()
