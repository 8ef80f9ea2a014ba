"""Workers of a parameter server on a node: their threads, and the loop that serves messages concurrently."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.cluster.driver import mark_as_worker
from strads.engine.ps.client import Client
from strads.engine.ps.messages import Result, RowNumbers, Rows, ToClient, Values, Visible
from strads.engine.ps.server import Server
from strads.errors import ProgramStopped

_MESSAGE = 1  # tag
_LOOK = 0.5  # seconds between timeout checks in a wait
_WAKE, _OVER = "wake", "over"


class Endpoint:
    """A table on a node: its client and server, under one lock, so that messages between two nodes stay in order.

    Parameters
    ----------
    node
        This node.
    client, server
        Client and server of the table.
    """

    def __init__(self, node: Node, client: Client, server: Server):
        self._comm = node.comm
        self._client = client
        self._server = server
        self._news = threading.Condition()
        self._arrivals = 0  # messages that the client has processed
        self._stopped = False

    @property
    def is_over(self) -> bool:
        """Whether the server has nothing more to do."""
        with self._news:
            return self._server.is_over

    @property
    def histogram(self) -> NDArray[np.int64]:
        """Clock differentials of reads."""
        return self._client.histogram

    def receive(self, source: int, message: Any) -> None:
        """Process a message of another node."""
        with self._news:
            if isinstance(message, Rows | Visible):
                self._to_client(source, message)
            else:
                self._server.receive(source, message)
            self._deliver()

    def _to_client(self, shard: int, message: ToClient) -> None:
        self._client.receive(shard, message)
        self._arrivals += 1
        self._news.notify_all()

    def _deliver(self) -> None:
        """Send the outgoing messages; those for this node itself are delivered directly."""
        rank = self._comm.rank
        while self._client.outbox or self._server.outbox:
            to_servers, self._client.outbox = self._client.outbox, []
            for shard, message in to_servers:
                if shard == rank:
                    self._server.receive(rank, message)
                else:
                    self._comm.send(message, shard, _MESSAGE)
            to_clients, self._server.outbox = self._server.outbox, []
            for client, answer in to_clients:
                if client == rank:
                    self._to_client(rank, answer)
                else:
                    self._comm.send(answer, client, _MESSAGE)

    def get(self, worker: int, rows: RowNumbers, out: Result) -> None:
        """Read rows; waits until they are fresh enough."""
        with self._news:
            self._check()
            lookup = self._client.read(worker, rows, out)
            if lookup.missing:
                self._deliver()
                self._wait(lambda: not lookup.missing)

    def inc(self, worker: int, rows: RowNumbers, deltas: Values) -> None:
        """Add to rows; waits until the model allows it."""
        with self._news:
            self._check()
            before = self._arrivals
            while (rest := self._client.add(worker, rows, deltas)) is not None:
                deltas = rest
                self._deliver()
                self._wait_for_arrival(before)
                before = self._arrivals

    def clock(self, worker: int) -> None:
        """Send a worker's updates and advance its clock; under a value bound (VAP), wait until they are within it.

        Staleness bounds (SSP) are waited for in `get`.
        """
        with self._news:
            self._check()
            self._client.advance(worker)
            self._deliver()
            self._wait(lambda: self._client.is_within_value_bound(worker))

    def retire(self, worker: int) -> None:
        """Send a worker's last updates."""
        with self._news:
            self._client.retire(worker)
            self._deliver()

    def stop(self) -> None:
        """Abort all waits, and all later calls of workers: the run has failed."""
        with self._news:
            self._stopped = True
            self._news.notify_all()

    def _check(self) -> None:
        """Raise ProgramStopped if the run has failed elsewhere: workers that never wait must notice it, too."""
        if self._stopped:
            raise ProgramStopped("the run has ended with an error elsewhere")

    def _wait_for_arrival(self, before: int) -> None:
        self._wait(lambda: self._arrivals > before)

    def _wait(self, ready: Callable[[], bool]) -> None:
        """Wait until `ready` is true; called under the lock, which is released meanwhile.

        Raises
        ------
        ProgramStopped
            If the run has failed elsewhere.
        NodeFailure
            If the limit of `strads.init(timeout=…)` is reached.
        """
        begin = time.monotonic()
        while not ready():
            self._check()
            if time.monotonic() - begin > self._comm.timeout:
                raise self._comm.timed_out("other workers or the shards of a table", None)
            self._news.wait(_LOOK)


@dataclass(frozen=True)
class WorkerTimes:
    """Seconds of a worker.

    Attributes
    ----------
    computing
        Time in the program.
    communicating
        Time in `get`, `inc` and `clock`.
    """

    computing: float
    communicating: float


class WorkerThreads:
    """Runs the workers of a node while it serves the tables; the object serves one run.

    Parameters
    ----------
    node
        This node.
    endpoints
        Endpoints of the tables, by table number.
    workers
        Numbers of this node's workers.
    work
        The function of a worker; called with its number.
    """

    def __init__(self, node: Node, endpoints: Sequence[Endpoint], workers: Sequence[int], work: Callable[[int], Any]):
        self._comm = node.comm
        self._endpoints = endpoints
        self._workers = workers
        self._work = work
        self._values: dict[int, Any] = {}
        self._failure: BaseException | None = None
        self._running = len(workers)
        self._ending = threading.Lock()
        self._finished_nodes = 0  # nodes whose shards are finished
        self._has_announced_end = False

    def run(self) -> dict[int, Any]:
        """Run the workers; return the result of each.

        Raises
        ------
        The exception of a worker, or of another node.
        """
        names = [(worker, f"strads-worker-{worker}") for worker in self._workers]
        threads = [threading.Thread(target=self._run_worker, args=(worker,), name=name) for worker, name in names]
        for thread in threads:
            thread.start()
        try:
            self._serve()
        finally:
            for endpoint in self._endpoints:
                endpoint.stop()  # no thread is waiting now, unless something has failed
            for thread in threads:
                thread.join()
        return self._values

    def _run_worker(self, worker: int) -> None:
        mark_as_worker()
        try:
            value = self._work(worker)
            for endpoint in self._endpoints:
                endpoint.retire(worker)
            self._values[worker] = value
        except BaseException as error:
            with self._ending:
                if self._failure is None or isinstance(self._failure, ProgramStopped):
                    self._failure = error
        finally:
            with self._ending:
                self._running -= 1
            self._comm.send(_WAKE, self._comm.rank, _MESSAGE)

    def _serve(self) -> None:
        """Process messages until the shards of all nodes are finished, however long the workers compute."""
        self._comm.wait_for(self._process, "the shards of a table", limit=math.inf)

    def _process(self) -> bool | None:
        """Process the messages that have arrived; returns whether that was all, or None."""
        for source in range(self._comm.size):
            for message in self._comm.poll(source, _MESSAGE):
                self._receive(source, message)
        if self._failure is not None:
            self._comm.check()  # the error that has ended the program elsewhere takes precedence
            raise self._failure
        if not self._has_announced_end and self._running == 0 and all(endpoint.is_over for endpoint in self._endpoints):
            self._has_announced_end = True
            for rank in range(self._comm.size):
                self._comm.send(_OVER, rank, _MESSAGE)
        return self._finished_nodes == self._comm.size or None

    def _receive(self, source: int, message: Any) -> None:
        if not isinstance(message, str):
            self._endpoints[message.table].receive(source, message)
        elif message == _OVER:
            self._finished_nodes += 1
