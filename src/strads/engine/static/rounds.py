"""One node's part of an iteration of the Static Engine: jobs on its threads, shards along the ring (thesis §4.2.2)."""

import threading
import time
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node, ThreadTeam
from strads.engine.plans.arrivals import Arrivals
from strads.engine.plans.job_pool import (
    FINISHED,
    WAIT,
    arrive,
    finish_and_take,
    make_job_pool,
    queue_lengths,
    stop,
    take,
)
from strads.engine.statistics import NodeStatistics
from strads.errors import ProgramStopped
from strads.schedule.nodes.placement import Move
from strads.schedule.static.rounds import Job, ShardKey
from strads.schedule.static.shard_routes import ShardRoutes

_SHARD = 1  # tag of shards in transit
_POLL = 0.05  # seconds between checks whether the run has been stopped


class RoundExecution:
    """Runs the jobs of a node once; the object serves one iteration.

    Of the ready jobs, those of the earliest round go first, the most expensive before the others (thesis §4.2.2): jobs
    that the ring waits for run before those that only this node waits for.

    Parameters
    ----------
    node
        This node.
    routes
        Jobs and shard transfers of this node.
    weight
        Cost of a job, in any unit.
    shards
        Shards on this node; the execution removes those it sends and adds those it receives.
    perform
        Called with a job and its shards, by several threads concurrently.
    synchronize
        Called on all nodes, by one thread, while no job runs on the node.
    team
        The threads that run the jobs.
    """

    def __init__(
        self,
        node: Node,
        routes: ShardRoutes,
        weight: Callable[[Job], float],
        shards: MutableMapping[ShardKey, Any],
        perform: Callable[[Job, tuple[Any, ...]], None],
        synchronize: Callable[[], None],
        team: ThreadTeam,
    ):
        self._node = node
        self._comm = node.comm
        self._part = part = routes.part
        self._jobs = routes.jobs
        self._shards_of = routes.shards
        self._pool = make_job_pool(part.plan, ranks=self._ranks(routes, weight))
        self._shards = shards
        self._perform = perform
        self._synchronize = synchronize
        self._team = team
        self._arrival_of = {move.number: number for number, move in enumerate(part.arrivals)}
        self._arrivals = Arrivals(part, node.comm, team.size, _name_of_shard)
        self._sources = sorted({move.source for move in part.arrivals})
        # Shards leave before messages are looked for, and what arrives may be more urgent than the other ready jobs.
        self._before_messages = len(part.departures) if self._sources else part.plan.jobs
        self._changed = threading.Condition()
        self._stopped = False
        self._changes = 0  # change counter: an idle thread waits for the next change

    def _ranks(self, routes: ShardRoutes, weight: Callable[[Job], float]) -> NDArray[np.int64] | None:
        """Rank departures first, then jobs by round and weight; None if the numbers of the jobs do it."""
        weights = [0.0 if job is None else weight(job) for job in self._jobs]
        if len({each for job, each in zip(self._jobs, weights, strict=True) if job is not None}) <= 1:
            return None
        ranks = np.empty(len(weights), np.int64)
        ranks[np.lexsort((-np.array(weights), routes.rounds))] = np.arange(len(weights))
        return ranks

    def run(self) -> NodeStatistics:
        """Run all jobs on the team.

        Raises
        ------
        The first exception of a job; no further job begins then.
        NodeFailure
            If a shard does not arrive within the limit of `strads.init(timeout=…)`.
        """
        start = time.perf_counter()
        sent = self._comm.traffic.copy()
        computing = [0.0] * self._team.size

        def work(thread: int) -> None:
            try:
                job = WAIT
                while (job := self._next(job)) != FINISHED:
                    computing[thread] += self._serve(job)
            except BaseException:
                self.stop()
                raise

        with self._comm.calling_on_failure(self.stop):
            self._team.run(work, on_interrupt=self.stop)
            self._comm.check()
        if self._stopped:
            raise ProgramStopped("the iteration was stopped")
        seconds = time.perf_counter() - start
        traffic = self._comm.traffic.since(sent)
        return NodeStatistics(
            self._node.rank,
            self._comm.hosts[self._node.rank],
            sum(job is not None for job in self._jobs),
            traffic.bytes_sent,
            traffic.messages_sent,
            sum(computing),
            max(seconds * self._team.size - sum(computing), 0.0),
            *queue_lengths(self._pool),
        )

    def stop(self) -> None:
        """Let no further job begin."""
        with self._changed:
            self._stopped = True
            stop(self._pool)
            self._announce()

    def _announce(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    def _next(self, ended: int) -> int:
        """Record that a job has ended (WAIT: none has), and return the next one."""
        if ended != WAIT:
            with self._changed:
                job = finish_and_take(self._pool, ended, self._before_messages)
                self._announce()
            if job != WAIT:
                return job
            if self._sources:
                self._comm.progress()
                self._receive()
        while True:
            with self._changed:
                job = take(self._pool)
                seen = self._changes
            if job != WAIT:
                return job
            self._wait(seen)

    def _serve(self, number: int) -> float:
        """Run a job, forward a shard, or synchronize; returns the seconds in the program's update."""
        job, seconds = self._jobs[number], 0.0
        if number < len(self._part.departures):
            self._forward(self._part.departures[number])
        elif job is None:
            self._synchronize()
        else:
            begin = time.perf_counter()
            self._perform(job, tuple(self._shards[key] for key in self._shards_of[number]))
            seconds = time.perf_counter() - begin
        return seconds

    def _forward(self, move: Move) -> None:
        self._comm.send((move.number, self._shards.pop(_key(move))), move.target, _SHARD)

    def _receive(self) -> bool:
        """Receive the shards that have arrived; returns whether there were any."""
        arrived = [message for source in self._sources for message in self._comm.poll(source, _SHARD)]
        if not arrived:
            return False
        with self._changed:
            for number, shard in arrived:
                position = self._arrival_of[number]
                self._arrivals.note(position)
                self._shards[_key(self._part.arrivals[position])] = shard
                arrive(self._pool, len(self._jobs) - len(self._arrival_of) + position)
            self._announce()
        return True

    def _wait(self, seen: int) -> None:
        """Wait until there may be a job: for the other threads of this node, or for a shard."""
        if self._arrivals.arrived.all():
            with self._changed:
                if self._changes == seen:
                    self._changed.wait(_POLL)
            return
        delivered = self._comm.deliveries
        if not self._receive():
            self._arrivals.wait(self._pool, delivered)


def _key(move: Move) -> ShardKey:
    assert isinstance(move.rows, slice)
    return move.table, move.rows.start


def _name_of_shard(move: Move) -> str:
    parameter_set, shard = _key(move)
    return f"shard {shard} of parameter set {parameter_set}"
