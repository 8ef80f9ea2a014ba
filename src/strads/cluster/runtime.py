"""The runtime: backend and threads that programs run on, chosen once by `strads.init`."""

import atexit
import math
import numbers
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from strads.checkpoints import Session, running_session
from strads.cluster.cluster import DEFAULT_TIMEOUT, Cluster
from strads.cluster.cores import available_cores, check_count, check_threads
from strads.cluster.thread_team import ThreadTeam
from strads.cluster.threads import Here, ThreadsCluster
from strads.errors import ArgumentError, NodeFailure
from strads.launchers import is_launched

_MAX_THREADS = 4096  # of this process, with the nodes in it
_MOST = 1 << 16  # nodes, or threads of each
BACKENDS = ("threads", "mpi", "ray")


class Runtime:
    """The nodes and threads that loops run on. Use it as a context manager to restore the defaults afterwards."""

    def __init__(self, threads: int, cluster: Cluster | None = None):
        self.threads = threads
        self.sessions = ExitStack()  # of checkpoints
        self._restart: Callable[[], Cluster] | None = None
        self._teams: dict[int, ThreadTeam] = {}
        self._cluster = cluster
        self._here: Here | None = None
        self._making = threading.Lock()  # engine programs may run loops on several threads

    @property
    def here(self) -> Here:
        """This process as a single node, whatever the cluster is."""
        with self._making:
            if self._here is None:
                self._here = Here(1, self.threads)
            return self._here

    @property
    def cluster(self) -> Cluster:
        """The nodes; by default, this process is the only one."""
        with self._making:
            if self._cluster is None:
                self._cluster = ThreadsCluster(1, self.threads)
            return self._cluster

    def check_nodes(self) -> None:
        """Raise a NodeFailure if a node is lost."""
        if self._cluster is not None:
            self._cluster.run(_answer)

    def replace_nodes(self) -> None:
        """Replace all nodes after one was lost, by fewer if there are no spare ones; what was stored on them is lost.

        Raises
        ------
        NodeFailure
            If the backend cannot.
        """
        if self._restart is None:
            raise NodeFailure("this backend cannot replace nodes")
        if self._cluster is not None:
            self._cluster.close()
        self._cluster = self._restart()

    @property
    def can_replace_nodes(self) -> bool:
        """Whether lost nodes can be replaced."""
        return self._restart is not None

    @property
    def is_local(self) -> bool:
        """Whether this process is the only node, so that tables need not be sent."""
        return self._cluster is None or self._cluster.is_local

    def run(
        self, program: Callable[..., Any], *arguments: Any, each: Sequence[tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Run a node program on all nodes: see `Cluster.run`."""
        return self.cluster.run(program, *arguments, each=each)

    def team(self, threads: int | None = None) -> ThreadTeam:
        """Return a team of `threads` threads (by default the runtime's number); created on first use."""
        size = self.threads if threads is None else check_threads(threads)
        with self._making:
            if size not in self._teams:
                self._teams[size] = ThreadTeam(size)
            return self._teams[size]

    def save_to(self, url: str | os.PathLike[str], *, every: int = 1, keep: int = 2) -> Session:
        """Save the program to a folder until the end, and continue an earlier run: see `strads.checkpoint`."""
        session = Session(url, every=every, keep=keep, nodes=self if self.can_replace_nodes else None)
        self.sessions.enter_context(running_session(session))
        atexit.register(session.close)
        self.sessions.callback(atexit.unregister, session.close)  # which keeps the copies of the last snapshot
        return session

    def close(self) -> None:
        """Write a last snapshot if there are checkpoints, and end all nodes and threads."""
        self.sessions.close()
        for team in self._teams.values():
            team.close()
        self._teams.clear()
        for cluster in (self._here, self._cluster):
            if cluster is not None:
                cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if _current is self:
            shutdown()
        else:  # another runtime has been chosen meanwhile
            self.close()


def _answer(node: Any) -> None:
    """Do nothing, which a lost node cannot."""


def _number(name: str, value: object, of: str, *, zero: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value) or value < 0:
        raise ArgumentError(f"{name}={value!r}: give a number of {of}")
    if value == 0 and not zero:
        raise ArgumentError(f"{name}={value!r}: give more than 0 {of}")
    return float(value)


_current: Runtime | None = None


def init(
    backend: str | None = None,
    *,
    nodes: int | None = None,
    threads: int | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    address: str | None = None,
    latency: float = 0.0,
    bandwidth: float | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
    checkpoint_keep: int = 2,
) -> Runtime:
    """Choose where loops run; by default on all cores of this machine, or on all processes of `mpiexec`.

    Parameters
    ----------
    backend
        "threads": this process. "mpi": the processes started by `mpiexec`; rank 0 continues with the program, on
        the others `init` does not return: they serve until rank 0 ends. "ray": actors of a Ray cluster. By default
        "mpi" under `mpiexec`, else "threads".
    nodes
        Number of nodes. "threads": logical nodes in this process, 1 by default. "ray": actors, by default one per
        machine of the cluster. "mpi": the number of processes; may be omitted.
    threads
        Threads per node; by default its share of the cores that the process may use.
    timeout
        Seconds that a node waits for another before it raises NodeFailure.
    address
        "ray": the cluster to join, as in `ray.init`; by default the one in RAY_ADDRESS, or a new local one.
    latency, bandwidth
        "threads": simulate a network between the nodes: seconds per message, and bytes per second of each node.
    checkpoint_dir, checkpoint_every, checkpoint_keep
        Save the program there until `shutdown`, and continue an earlier run: see `strads.checkpoint`.

    Returns
    -------
    Runtime
        A context manager that calls `shutdown` on exit.

    Raises
    ------
    ArgumentError
        For an unknown backend, or one whose packages are not installed.
    """
    global _current
    backend = ("mpi" if is_launched() else "threads") if backend is None else backend
    if backend not in BACKENDS:
        raise ArgumentError(f"backend={backend!r} is not available; choose one of {', '.join(BACKENDS)}")
    count = None if nodes is None else check_count("nodes", nodes)
    each = None if threads is None else check_threads(threads)
    for name, value in (("nodes", count), ("threads", each)):
        if value is not None and value > _MOST:
            raise ArgumentError(f"{name}={value}: at most {_MOST} are possible")
    limit = _number("timeout", timeout, "seconds", zero=False)
    late = _number("latency", latency, "seconds", zero=True)
    rate = None if bandwidth is None else _number("bandwidth", bandwidth, "bytes per second", zero=False)
    if backend != "threads" and (latency or bandwidth is not None):
        raise ArgumentError("latency and bandwidth imitate a network, which only the backend 'threads' does")
    if backend != "ray" and address is not None:
        raise ArgumentError("address is an option of the backend 'ray'")
    shutdown()
    if backend == "threads":
        _current = _on_threads(count or 1, each, limit, late, rate)
    elif backend == "mpi":
        from strads.cluster.mpi.cluster import start_mpi

        cluster = start_mpi(count, each, limit)
        _current = Runtime(cluster.threads, cluster)
    else:
        from strads.cluster.ray.cluster import start_ray

        cluster = start_ray(count, each, limit, address)
        _current = Runtime(cluster.threads, cluster)
        _current._restart = partial(_start_again, cluster.size, cluster.threads, limit, address)
    if checkpoint_dir is not None:  # only the driver gets here
        try:
            _current.save_to(checkpoint_dir, every=checkpoint_every, keep=checkpoint_keep)
        except BaseException:  # a program that goes on would do so without checkpoints
            shutdown()
            raise
    return _current


def _start_again(nodes: int, threads: int, limit: float, address: str | None) -> Cluster:
    """Start nodes on Ray after one was lost; fewer if the remaining machines have no room for as many."""
    from strads.cluster.ray.cluster import start_ray

    count = nodes
    while True:
        try:
            cluster = start_ray(count, threads, limit, address)
            break
        except (ArgumentError, NodeFailure):
            if count == 1:
                raise
            count -= 1
    if count < nodes:
        message = f"the remaining machines have no room for more: continuing with {count} nodes instead of {nodes}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return cluster


def _on_threads(nodes: int, threads: int | None, timeout: float, latency: float, bandwidth: float | None) -> Runtime:
    size = max(1, available_cores() // nodes) if threads is None else threads
    if nodes * size > _MAX_THREADS:
        raise ArgumentError(f"{nodes} nodes of {size} threads: a process can have at most {_MAX_THREADS} threads")
    if nodes == 1:
        return Runtime(size)
    return Runtime(size, ThreadsCluster(nodes, size, timeout, latency=latency, bandwidth=bandwidth))


def shutdown() -> None:
    """End the nodes and threads. The next loop starts with the defaults."""
    global _current
    if _current is not None:
        runtime, _current = _current, None
        runtime.close()


def _forget() -> None:
    """Reset the runtime in a forked child, where the parent's threads do not exist."""
    global _current
    _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def current() -> Runtime:
    """Return the current runtime; starts the default one if there is none."""
    return _current if _current is not None else init()
