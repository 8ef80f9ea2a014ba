"""Backend `threads`: logical nodes in this process, with a transport that can be slowed down."""

import heapq
import itertools
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from strads.cluster.cluster import DEFAULT_TIMEOUT, Cluster
from strads.cluster.comm import Comm
from strads.cluster.messages import Bytes, Message
from strads.cluster.node import Node, Outcome, ProgramCall, execute_call
from strads.cluster.thread_team import ThreadTeam
from strads.errors import ProgramStopped


class _ThreadsComm(Comm):
    """Delivers directly into the inboxes of the other nodes."""

    def __init__(self, rank: int, peers: list["_ThreadsComm"], size: int, timeout: float, link: "_Link | None"):
        super().__init__(rank, size, [socket.gethostname()] * size, timeout)
        self._peers = peers
        self._link = link

    def _transmit(self, to: int, tag: int, message: Message) -> None:
        inbox, run, own = self._peers[to]._inbox, self._inbox.run, message.copy()
        self._carry(message.nbytes, lambda: inbox.deliver(run, self.rank, tag, own))

    def _transmit_put(self, to: int, tag: int, data: Bytes) -> None:
        inbox, run = self._peers[to]._inbox, self._inbox.run
        self._carry(data.nbytes, lambda: inbox.deliver_put(run, self.rank, tag, data))

    def _carry(self, nbytes: int, deliver: Callable[[], None]) -> None:
        if self._link is None:
            deliver()
        else:
            self._link.carry(nbytes, deliver)


class _Link:
    """Simulates a node's network link: messages are sent one at a time at a bandwidth, and delayed by a latency."""

    def __init__(self, latency: float, bandwidth: float):
        self._latency = latency
        self._bandwidth = bandwidth
        self._free_at = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._news = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._deliver, name="strads-link", daemon=True)
        self._thread.start()

    def carry(self, nbytes: int, deliver: Callable[[], None]) -> None:
        """Call a function when a message of `nbytes` bytes would have arrived."""
        with self._news:
            self._free_at = max(self._free_at, time.monotonic()) + nbytes / self._bandwidth
            heapq.heappush(self._queue, (self._free_at + self._latency, next(self._numbers), deliver))
            self._news.notify()

    def _deliver(self) -> None:
        while True:
            with self._news:
                while not self._closed and (not self._queue or self._queue[0][0] > time.monotonic()):
                    self._news.wait(self._queue[0][0] - time.monotonic() if self._queue else None)
                if self._closed:
                    return
                deliver = heapq.heappop(self._queue)[2]
            deliver()

    def close(self) -> None:
        """End the thread; messages in flight are lost."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join()


class ThreadsCluster(Cluster):
    """Logical nodes: a program runs on one Python thread per node, its kernels on that node's thread team.

    Many nodes on few cores show the progress per sample of a large cluster; for the arguments see `strads.init`.
    """

    backend = "threads"

    def __init__(
        self,
        size: int,
        threads: int,
        timeout: float = DEFAULT_TIMEOUT,
        *,
        latency: float = 0.0,
        bandwidth: float | None = None,
    ):
        super().__init__(size, threads, timeout)
        slowed = latency > 0 or bandwidth is not None
        rate = float("inf") if bandwidth is None else bandwidth
        self._links = [_Link(latency, rate) for _ in range(size)] if slowed else []
        comms: list[_ThreadsComm] = []
        for rank in range(size):
            comms.append(_ThreadsComm(rank, comms, size, timeout, self._links[rank] if slowed else None))
        self.hosts = comms[0].hosts
        self._nodes = [Node(comm, threads) for comm in comms]
        self._threads = ThreadTeam(size, "strads-node")

    def _start(self, calls: Sequence[ProgramCall]) -> list[Outcome]:
        run = calls[0].run
        outcomes: dict[int, Outcome] = {}

        def execute(rank: int) -> None:
            outcome = execute_call(self._nodes[rank], calls[rank])
            outcomes[rank] = outcome
            if outcome.error is not None:
                self._stop(run, f"node {rank} failed")

        self._threads.run(execute, on_interrupt=lambda: self._stop(run, "the driver was interrupted"))
        return [outcomes[rank] for rank in range(self.size)]

    def _stop(self, run: int, reason: str) -> None:
        for node in self._nodes:
            node.comm._inbox.fail(run, ProgramStopped(reason))

    def _close(self) -> None:
        self._threads.close()
        for node in self._nodes:
            node.close()
        for link in self._links:
            link.close()


class Here(ThreadsCluster):
    """The driver's own process as the only node, for programs that run on the calling thread.

    It holds no lock meanwhile: programs may start others, on any thread.
    """

    def run(
        self, program: Callable[..., Any], *arguments: Any, each: Sequence[tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Run a node program immediately; its exceptions propagate unchanged."""
        return [program(self._nodes[0], *arguments, *(() if each is None else each[0]))]

    def discard(self, name: str) -> None:
        """Drop a stored object immediately."""
        self._nodes[0].store.pop(name, None)
