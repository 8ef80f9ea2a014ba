"""One node's part of an iteration of the Static Engine: jobs on its threads, shards along the ring (thesis §4.2.2)."""

import threading
import time
from collections.abc import Callable, MutableMapping
from typing import Any

from strads.cluster import Node, ThreadTeam
from strads.engine.static.round_queue import RoundQueue
from strads.engine.statistics import NodeStatistics
from strads.errors import ProgramStopped
from strads.schedule.static.rounds import Job, ShardKey
from strads.schedule.static.shard_routes import ShardRoutes

_SHARD = 1  # tag of shards in transit
_REST = 2e-4  # seconds between polls for a job that another thread, or another node, may have made ready
_REST_ALONE = 5e-3  # where only messages from other nodes can make one ready
_POLL = 0.05  # seconds between checks whether the run has been stopped


class RoundExecution:
    """Runs the jobs of a node once; the object serves one iteration.

    Parameters
    ----------
    node
        This node.
    routes
        Jobs and shard transfers of this node.
    weight
        Cost of a job.
    shards
        Shards on this node; the execution removes those it sends and adds those it receives.
    perform
        Called with a job and its shards, by several threads concurrently.
    synchronize
        Called on all nodes, by one thread, while no job runs on the node.
    """

    def __init__(
        self,
        node: Node,
        routes: ShardRoutes,
        weight: Callable[[Job], float],
        shards: MutableMapping[ShardKey, Any],
        perform: Callable[[Job, tuple[Any, ...]], None],
        synchronize: Callable[[], None],
    ):
        self._node = node
        self._comm = node.comm
        self._routes = routes
        self._queue = RoundQueue(routes, weight)
        self._shards = shards
        self._perform = perform
        self._synchronize = synchronize
        self._sources = sorted({source for expected in routes.arrivals.values() for source, _ in expected})
        self._changed = threading.Condition()
        self._synchronizing = False
        self._stopped = False
        self._changes = 0  # change counter: an idle thread waits for the next change
        self._news = time.monotonic()

    def run(self, team: ThreadTeam) -> NodeStatistics:
        """Run all jobs on a team of threads.

        Raises
        ------
        The first exception of a job; no further job begins then.
        NodeFailure
            If a shard does not arrive within the limit of `strads.init(timeout=…)`.
        """
        start = time.perf_counter()
        sent = self._comm.traffic.copy()
        computing = [0.0] * team.size
        for key, target in self._routes.first_departures:
            self._forward(key, target)

        def work(thread: int) -> None:
            try:
                while self._step(thread, computing):
                    pass
            except BaseException:
                self.stop()
                raise

        with self._comm.inbox.calling_on_failure(self.stop):
            team.run(work, on_interrupt=self.stop)
            self._comm.check()
        if self._stopped:
            raise ProgramStopped("the iteration was stopped")
        seconds = time.perf_counter() - start
        traffic = self._comm.traffic.since(sent)
        queue = self._queue
        return NodeStatistics(
            self._node.rank,
            self._comm.hosts[self._node.rank],
            queue.taken,
            traffic.bytes_sent,
            traffic.messages_sent,
            sum(computing),
            max(seconds * team.size - sum(computing), 0.0),
            queue.queued / max(queue.taken, 1),
            queue.longest,
        )

    def stop(self) -> None:
        """Let no further job begin."""
        with self._changed:
            self._stopped = True
            self._announce()

    def _announce(self) -> None:
        self._changes += 1
        self._news = time.monotonic()
        self._changed.notify_all()

    def _step(self, thread: int, computing: list[float]) -> bool:
        """Do the next available piece of work; returns whether there may be more."""
        with self._changed:
            if self._stopped or self._queue.is_done:
                return False
            index = self._queue.take()
            due = index is None and not self._synchronizing and self._queue.must_synchronize
            self._synchronizing |= due
            seen = self._changes
        if index is not None:
            begin = time.perf_counter()
            job = self._queue.job(index)
            self._perform(job, tuple(self._shards[key] for key in job.shard_keys()))
            computing[thread] += time.perf_counter() - begin
            self._end(index)
        elif due:
            self._meet()
        else:
            self._wait(seen, alone=len(computing) == 1)
        return True

    def _end(self, index: int) -> None:
        with self._changed:
            departures = self._queue.finish(index)
            self._announce()
        for key, target in departures:
            self._forward(key, target)
        if self._sources:
            self._comm.progress()
            self._receive()

    def _forward(self, key: ShardKey, target: int) -> None:
        self._comm.send((key, self._shards.pop(key)), target, _SHARD)

    def _receive(self) -> bool:
        """Receive the shards that have arrived; returns whether there were any."""
        arrived = [message for source in self._sources for message in self._comm.poll(source, _SHARD)]
        if not arrived:
            return False
        with self._changed:
            for key, shard in arrived:
                self._shards[key] = shard
                self._queue.arrive(key)
            self._announce()
        return True

    def _meet(self) -> None:
        self._comm.flush()
        self._synchronize()
        with self._changed:
            self._queue.synchronized()
            self._synchronizing = False
            self._announce()

    def _wait(self, seen: int, *, alone: bool) -> None:
        if self._synchronizing or not self._sources:  # only this node's threads can make a job ready
            with self._changed:
                if self._changes == seen:
                    self._changed.wait(_POLL)
            return
        self._comm.flush()  # others may be waiting for this node
        delivered = self._comm.inbox.deliveries
        if self._receive():
            return
        self._comm.progress(_REST_ALONE if alone else _REST, delivered)
        if not self._receive() and time.monotonic() - self._news > self._comm.timeout:
            self._give_up()

    def _give_up(self) -> None:
        with self._changed:
            missing = self._queue.missing()
            busy = self._queue.running > 0 or self._synchronizing
        if missing is not None and not busy:
            (parameter_set, shard), source = missing
            what = f"shard {shard} of parameter set {parameter_set} from {self._comm.name(source)}"
            raise self._comm.timed_out(what, source)
