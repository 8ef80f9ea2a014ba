"""Node program `run_minibatches`: this node's part of a `sync_for`."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.engine.minibatch.data_parallel import Exchange, Replica, exchange, share
from strads.engine.ps.execution import WorkerTimes
from strads.errors import StradsError
from strads.loops.failures import explain_failed_run
from strads.loops.on_nodes.bound_minibatches import BoundMinibatches, SyncCall
from strads.schedule.consistency import BSP, Hybrid
from strads.schedule.minibatches import TouchedRows

_HOW = "calling the body itself, with NumPy arrays, shows the line"


@dataclass(frozen=True)
class SyncResult:
    """The result of a `sync_for` on one node; positions are those of the arguments."""

    written: frozenset[int]  # tables that the body writes
    jobs: NDArray[np.int64]  # numbers of the workers
    totals: dict[int, NDArray[Any]]  # position of an accumulator → its sum in each of them; 0 for those of other nodes
    times: dict[int, WorkerTimes]  # by replica
    histograms: dict[int, NDArray[np.int64]]  # clock differentials, by table
    compile_seconds: float  # of the body, in this call
    reconnaissance_seconds: float  # time taken to check indices and to find the rows that are touched
    execution_seconds: float  # of the minibatches, without compiling
    bytes_sent: int  # to other nodes
    messages_sent: int  # to other nodes


def run_minibatches(node: Node, call: SyncCall) -> SyncResult:
    """Run this node's minibatches; if anything fails, tables are restored unless threads write to them directly."""
    traffic = node.comm.traffic.copy()
    loop = BoundMinibatches(node, call)
    begin = time.perf_counter()
    touched = loop.look_ahead()
    start = time.perf_counter()
    compiled = loop.compile_seconds
    times, histograms = _Run(loop, touched).run()
    end = time.perf_counter()
    compiled_late = loop.compile_seconds - compiled
    sent = node.comm.traffic.since(traffic)
    return SyncResult(
        loop.program.facts.written,
        np.arange(call.minibatches.workers),
        {position: totals[:, 0].copy() for position, totals in loop.totals.items()},
        times,
        histograms,
        loop.compile_seconds,
        start - begin,
        end - start - compiled_late,
        sent.bytes_sent,
        sent.messages_sent,
    )


class _Run:
    """One run of a node's minibatches."""

    def __init__(self, loop: BoundMinibatches, touched: dict[int, TouchedRows]):
        self._loop = loop
        self._minibatches = loop.call.minibatches
        self._parameters = {position: loop.parameter(position, touched.get(position)) for position in loop.written}
        self._orders = {worker: self._minibatches.order(worker) for worker in loop.workers}
        self._is_hybrid = isinstance(loop.call.consistency, Hybrid)
        self._is_alone = loop.node.size == 1
        self._stop = np.zeros(1, np.int64)

    def run(self) -> tuple[dict[int, WorkerTimes], dict[int, NDArray[np.int64]]]:
        """Run all minibatches; returns times by replica, and clock differentials by table."""
        program = self._loop.program
        is_direct = self._is_hybrid and self._is_alone
        before = None
        if is_direct and program.may_stop_half_way(self._loop.bound):
            before = [parameter.table.copy() for parameter in self._parameters.values()]
        try:
            with self._loop.node.comm.calling_on_failure(self._halt):
                if is_direct:
                    return self._run_on_tables(), {}
                if self._is_alone and type(self._loop.call.consistency) is BSP and self._is_summed():
                    return self._run_in_rounds(), {}
                return self._run_on_replicas()
        except StradsError:
            raise
        except Exception as error:
            for parameter, values in zip(self._parameters.values(), before or (), strict=False):
                parameter.table[...] = values
            raise explain_failed_run(program, error, restored=not is_direct or before is not None, how=_HOW) from error

    def _is_summed(self) -> bool:
        """Whether changes are summed, weighted or not."""
        return all(isinstance(parameter.aggregation, str) for parameter in self._parameters.values())

    def _halt(self) -> None:
        self._stop[0] = 1

    def _on_team(self, work: Callable[[int], object]) -> dict[int, WorkerTimes]:
        """Run `work` on each thread; returns times by thread."""
        times: dict[int, WorkerTimes] = {}

        def timed(thread: int) -> None:
            start = time.perf_counter()
            try:
                work(thread)
            except BaseException:
                self._halt()
                raise
            times[thread] = WorkerTimes(time.perf_counter() - start, 0.0)

        self._loop.team.run(timed, on_interrupt=self._halt)
        self._loop.node.comm.check()
        return times

    def _runner(self, replicas: dict[int, NDArray[Any]]) -> Callable[[int, int, int], None]:
        """Return a function that runs a worker's minibatches `first..last - 1` on replicas (1, rows, …)."""
        storages = self._loop.storages(replicas)
        runner = self._loop.program.runner(self._loop.bound, storages)

        def run(worker: int, first: int, last: int) -> None:
            order = self._orders[worker]
            runner(order, first, min(last, len(order)), worker, self._stop, storages)

        return run

    def _run_on_tables(self) -> dict[int, WorkerTimes]:
        """Let all threads write to the tables directly: there is no other node to synchronize with."""
        run = self._runner({position: parameter.table[None] for position, parameter in self._parameters.items()})
        times = self._on_team(lambda thread: run(thread, 0, self._minibatches.count))
        return {0: WorkerTimes(sum(of_thread.computing for of_thread in times.values()), 0.0)}

    def _run_in_rounds(self) -> dict[int, WorkerTimes]:
        """Run the rounds of BSP without messages, on replicas of the workers."""
        workers, participants = self._minibatches.workers, self._minibatches.participants()
        orders = np.full((workers, len(participants)), -1, np.int64)
        for worker, order in self._orders.items():
            orders[worker, : len(order)] = order
        shared = {position: share(parameter, workers, participants) for position, parameter in self._parameters.items()}
        storages = tuple(
            self._loop.storages(
                {p: table.replicas[worker].reshape(1, *self._parameters[p].table.shape) for p, table in shared.items()}
            )
            for worker in range(workers)
        )
        tables, arrivals = tuple(shared.values()), np.zeros(1, np.int64)
        run = self._loop.program.rounds(self._loop.bound, tables, storages)
        team = self._loop.team.size
        times = self._on_team(lambda thread: run(orders, thread, team, tables, arrivals, self._stop, storages))
        for position, table in shared.items():
            self._parameters[position].flat[...] = table.values
        return times

    def _run_on_replicas(self) -> tuple[dict[int, WorkerTimes], dict[int, NDArray[np.int64]]]:
        """Run minibatches on replicas that a parameter server synchronizes."""
        tables = {position: parameter.table for position, parameter in self._parameters.items()}
        self._runner({p: np.empty((1, *table.shape), table.dtype) for p, table in tables.items()})  # to compile it
        runners: dict[int, Callable[[int, int, int], None]] = {}

        def run(replicas: Sequence[Replica], sharing: range, clock: int) -> None:
            if sharing.start not in runners:
                storages = [replica.storage for replica in replicas]
                runners[sharing.start] = self._runner(dict(zip(self._parameters, storages, strict=True)))
            own = runners[sharing.start]
            if self._is_hybrid:
                self._loop.team.run(lambda lane: own(sharing[lane], clock, clock + 1), on_interrupt=self._halt)
            else:
                own(sharing.start, clock, clock + 1)

        team, parameters = self._loop.team.size, list(self._parameters.values())
        lanes, turns = (team, threading.Semaphore(1)) if self._is_hybrid else (1, threading.Semaphore(team))
        times, histograms = exchange(
            self._loop.node, Exchange(self._minibatches, lanes, self._loop.call.consistency, parameters, run, turns)
        )
        for position in self._loop.program.facts.written:
            if position in self._loop.shards:
                self._loop.shards[position].is_complete = False
        return times, dict(zip(self._parameters, histograms, strict=True))
