"""Node program `run_minibatches`: this node's part of a `sync_for`."""

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node, ThreadTeam
from strads.dds.shard import Shard, complete
from strads.engine.data_parallel import Aggregation, Exchange, Parameter, Replica, exchange, share
from strads.engine.executor import zero_totals
from strads.engine.minibatches import Runner
from strads.engine.ps.execution import WorkerTimes
from strads.engine.roles import Role
from strads.errors import ArgumentError, StradsError
from strads.loops.arguments import (
    AccumulatorArgument,
    BatchArgument,
    ScalarArgument,
    TableArgument,
    bind_arguments,
    read_only,
    table_of,
)
from strads.loops.batches import BatchProgram, as_parameters, touched_rows
from strads.loops.failures import explain_failed_run
from strads.loops.functions import plain_function
from strads.loops.on_nodes.binding import COMPILING, shards_of, table_over, values_of
from strads.loops.on_nodes.preparation import record
from strads.loops.on_nodes.specs import TableRef
from strads.loops.program import find_kept
from strads.schedule.consistency import BSP, Consistency, Hybrid
from strads.schedule.minibatches import Minibatches, TouchedRows

_KEPT, _MAX_KEPT = "checked minibatches", 8
_RECORDED_AT_A_TIME = 4096  # minibatches


@dataclass(frozen=True)
class SyncCall:
    """A `sync_for` as the driver describes it to the nodes.

    Attributes
    ----------
    body, fastmath, recon
        As given by the user.
    data, arguments
        References to what lies on the nodes; on the driver's own only node, the tables themselves.
    contents
        Of each argument, and last of the data: a key that changes with the content of a table, None for others.
    aggregations
        Of the tables among the arguments, by position.
    minibatches, consistency
        What runs, under which rules.
    team
        The threads, if they are not those of the node.
    """

    body: Callable[..., Any]
    data: Any
    arguments: tuple[Any, ...]
    contents: tuple[Any, ...]
    aggregations: dict[int, Aggregation]
    minibatches: Minibatches
    consistency: Consistency
    recon: bool
    fastmath: bool
    team: ThreadTeam | None = None


@dataclass(frozen=True)
class SyncResult:
    """What a `sync_for` leaves at one node; positions are those of the arguments."""

    written: frozenset[int]
    totals: dict[int, NDArray[Any]]
    times: dict[int, WorkerTimes]  # by replica
    histograms: dict[int, NDArray[np.int64]]  # clock differentials, by table
    compile_seconds: float
    reconnaissance_seconds: float
    execution_seconds: float
    bytes_sent: int
    messages_sent: int


def run_minibatches(node: Node, call: SyncCall) -> SyncResult:
    """Run this node's minibatches; tables are as before if anything fails, but where threads write to them directly."""
    traffic = node.comm.traffic.copy()
    loop = _Loop(node, call)
    begin = time.perf_counter()
    touched = loop.look_ahead()
    start = time.perf_counter()
    compiled = loop.compile_seconds
    times, histograms = loop.run(touched)
    end = time.perf_counter()
    compiled_late = loop.compile_seconds - compiled
    sent = node.comm.traffic.since(traffic)
    return SyncResult(
        loop.program.facts.written,
        {position: totals[:, 0].copy() for position, totals in loop.totals.items()},
        times,
        histograms,
        loop.compile_seconds,
        start - begin,
        end - start - compiled_late,
        sent.bytes_sent,
        sent.messages_sent,
    )


class _Loop:
    """A call, bound to the tables of this node."""

    def __init__(self, node: Node, call: SyncCall):
        self.node = node
        self.call = call
        self.team = call.team or node.team
        self.shards = shards_of(node, call.arguments)
        batches = _batches(node, call)
        values = values_of(node, call.arguments)
        self.bound = as_parameters(bind_arguments(call.body, values, batches), recorded=call.recon)
        with COMPILING:
            self.program = find_kept(BatchProgram, call.body, self.bound, call.fastmath)
            self._compiled_before = self.program.compile_seconds if self.program.used else 0.0
            self.program.used = True
            self.is_checkable = self.program.compile_check(self.bound)
        threads = range(node.rank * self.team.size, (node.rank + 1) * self.team.size)
        self.threads = threads
        bounds = call.minibatches.bounds
        self.numbers = range(int(bounds[threads.start]), int(bounds[threads.stop]))
        self.totals = {
            position: zero_totals(call.minibatches.workers, argument.dtype)
            for position, argument in enumerate(self.bound.arguments)
            if isinstance(argument, AccumulatorArgument)
        }
        self.stop = np.zeros(1, np.int64)
        self._check()

    @property
    def compile_seconds(self) -> float:
        """Spent on this call so far."""
        return self.program.compile_seconds - self._compiled_before

    @property
    def written(self) -> list[int]:
        """Positions of the written tables, each once."""
        return sorted({self.bound.same[position] for position in self.program.facts.written})

    def _check(self) -> None:
        facts = self.program.facts
        for position in self.written:
            if _identity(self.call.arguments[position]) == _identity(self.call.data):
                name = self.bound.arguments[position].name
                raise ArgumentError(f"the body writes {name!r}, which is the data that minibatches are made of")
        if self.call.recon and facts.dynamic:
            raise ArgumentError(
                "recon=True cannot know which rows a minibatch touches: the body chooses them by values that the loop "
                "changes, or by random numbers. Draw these beforehand into a table, or use recon=False"
            )
        for position in self.written:
            table = self.bound.tables()[position]
            if table.storage.dtype.kind == "f":
                continue
            if self.call.aggregations[position] == "average":
                raise ArgumentError(
                    f"{table.name!r} holds whole numbers, which cannot be averaged: "
                    f'strads.register_aggregation({table.name}, "sum")'
                )
            if self.call.consistency.bound(0) < np.inf:
                raise ArgumentError(f"{table.name!r} holds whole numbers, which {self.call.consistency} cannot bound")

    # -- before the run ---------------------------------------------------------------------------------------------

    def look_ahead(self) -> dict[int, TouchedRows]:
        """Check all indices, and with `recon` find which rows of written tables are touched; keeps what it has found.

        Raises
        ------
        BodyIndexError, BodyKeyError, BodyError
            When a minibatch fails; nothing has been written.
        """
        read = self.program.cast.with_role(Role.READ, Role.CHECKED, Role.ALIGNED)
        complete(self.node, *(self.shards[position] for position in read if position in self.shards))
        if not self.is_checkable:
            return {}
        kept: list[tuple[Any, ...]] = self.node.store.setdefault(_KEPT, [])
        key = self._key()
        for program, found_key, found in kept:
            if program is self.program and found_key == key:
                return found
        table_of = self.program.cast.table_of
        count = len(set(table_of.values()))
        parts = 1 + self.call.minibatches.count // (_RECORDED_AT_A_TIME * self.node.size) if count else 1
        rows = touched_rows(
            lambda indices: record(self.node, self.program, self.bound, indices, self.shards, self.team),
            count,
            self.numbers,
            parts,
        )
        touched = {position: rows[table] for position, table in table_of.items()}
        if not self.program.facts.dynamic:
            kept.append((self.program, key, touched))
            del kept[:-_MAX_KEPT]
        return touched

    def _key(self) -> tuple[Any, ...]:
        """What decides which rows are touched, and whether they exist."""
        deciding = []
        for position in sorted(self.program.facts.deciding):
            argument, content = self.bound.arguments[position], self.call.contents[position]
            if content is None and isinstance(argument, TableArgument):
                content = argument.content_key()
            elif content is None and isinstance(argument, ScalarArgument):
                content = self.call.data if isinstance(argument, BatchArgument) else argument.value
            deciding.append(content)
        shapes = [(len(table.storage), table.values.shape) for table in self.bound.tables().values()]
        return tuple(deciding), tuple(shapes), self.call.minibatches, self.numbers

    # -- the run ----------------------------------------------------------------------------------------------------

    def run(self, touched: dict[int, TouchedRows]) -> tuple[dict[int, WorkerTimes], dict[int, NDArray[np.int64]]]:
        """Run all minibatches; returns times by replica, and clock differentials by table."""
        is_hybrid = isinstance(self.call.consistency, Hybrid)
        direct = is_hybrid and self.node.size == 1
        before = None
        if direct and self.program.may_stop_half_way:
            before = [self.bound.tables()[position].dense.copy() for position in self.written]
        try:
            with self.node.comm.inbox.calling_on_failure(self._halt):
                if direct:
                    return self._run_directly(), {}
                if self._runs_in_rounds():
                    return self._run_in_rounds(touched), {}
                return self._run_on_replicas(is_hybrid, touched)
        except StradsError:
            raise
        except Exception as error:
            for position, values in zip(self.written, before or [], strict=False):
                self.bound.tables()[position].dense[...] = values
            raise explain_failed_run(self.program, error, restored=not direct or before is not None) from error

    def _halt(self) -> None:
        self.stop[0] = 1

    def _runner(self, replicas: dict[int, NDArray[Any]]) -> Callable[[int, int, int, int], None]:
        """Return what has a thread run minibatches `first..last - 1` of its own, on replicas by position."""
        storages = self._storages(replicas)
        with COMPILING:
            runner: Runner = self.program.runner(self.bound, storages)
        orders = {thread: self.call.minibatches.order(thread) for thread in self.threads}

        def run(thread: int, first: int, last: int, lane: int) -> None:
            runner(orders[thread], first, last, thread, lane, self.stop, storages)

        return run

    def _storages(self, replicas: dict[int, NDArray[Any]]) -> tuple[Any, ...]:
        """Return what views are made of, given (1, rows, …) of each written table."""
        return self.bound.by_key([self._storage(position, replicas) for position in range(len(self.bound.same))])

    def _storage(self, position: int, replicas: dict[int, NDArray[Any]]) -> Any:
        argument = self.bound.arguments[position]
        if isinstance(argument, ScalarArgument):
            return argument.value
        if isinstance(argument, AccumulatorArgument):
            return self.totals[position]
        replica = replicas.get(self.bound.same[position])
        if replica is None or position not in self.program.facts.written:
            return read_only(argument.raw if replica is None else replica[0])
        return replica if self.program.cast.roles[position].is_relaxed else replica[0]

    def _run_directly(self) -> dict[int, WorkerTimes]:
        """Let all threads work on the tables themselves: there is no other node to tell."""
        run = self._runner({position: self.bound.tables()[position].dense[None] for position in self.written})
        count = np.diff(self.call.minibatches.bounds)
        times = np.zeros(self.team.size)

        def work(thread: int) -> None:
            start = time.perf_counter()
            run(thread, 0, int(count[thread]), 0)
            times[thread] = time.perf_counter() - start

        self.team.run(work, on_interrupt=self._halt)
        self.node.comm.check()
        return {0: WorkerTimes(float(times.sum()), 0.0)}

    def _runs_in_rounds(self) -> bool:
        """Whether compiled rounds give what the parameter server would."""
        plain = all(isinstance(self.call.aggregations[position], str) for position in self.written)
        return self.node.size == 1 and type(self.call.consistency) is BSP and plain

    def _run_in_rounds(self, touched: dict[int, TouchedRows]) -> dict[int, WorkerTimes]:
        """Run rounds of minibatches on replicas, one for each thread of this process."""
        minibatches, threads = self.call.minibatches, self.team.size
        rounds = int(np.diff(minibatches.bounds).max(initial=0))
        orders = np.full((threads, rounds), -1, np.int64)
        for thread in range(threads):
            own = minibatches.order(thread)
            orders[thread, : len(own)] = own
        parameters = [self._parameter(position, touched.get(position)) for position in self.written]
        tables = tuple(share(parameter, threads, minibatches.participants()) for parameter in parameters)
        shapes = [parameter.table.shape for parameter in parameters]
        replicas = [table.replicas.reshape(threads, *shape) for table, shape in zip(tables, shapes, strict=True)]
        each = [
            self._storages({p: replica[thread][None] for p, replica in zip(self.written, replicas, strict=True)})
            for thread in range(threads)
        ]
        with COMPILING:
            run = self.program.rounds(self.bound, tables, each[0])
        arrivals, times = np.zeros(1, np.int64), np.zeros(threads)

        def work(thread: int) -> None:
            start = time.perf_counter()
            try:
                run(orders, thread, tables, arrivals, self.stop, each[thread])
            except BaseException:
                self._halt()
                raise
            times[thread] = time.perf_counter() - start

        self.team.run(work, on_interrupt=self._halt)
        self.node.comm.check()
        for parameter, table in zip(parameters, tables, strict=True):
            parameter.flat[...] = table.values
        return {thread: WorkerTimes(float(times[thread]), 0.0) for thread in range(threads)}

    def _run_on_replicas(
        self, is_hybrid: bool, touched: dict[int, TouchedRows]
    ) -> tuple[dict[int, WorkerTimes], dict[int, NDArray[np.int64]]]:
        written = self.written
        parameters = [self._parameter(position, touched.get(position)) for position in written]
        runners: dict[int, Callable[[int, int, int, int], None]] = {}
        count = np.diff(self.call.minibatches.bounds)

        def run(replicas: Sequence[Replica], threads: range, clock: int) -> None:
            if threads.start not in runners:
                storages = [replica.storage for replica in replicas]
                runners[threads.start] = self._runner(dict(zip(written, storages, strict=True)))
            own = runners[threads.start]
            if not is_hybrid:
                own(threads.start, clock, clock + 1, 0)
                return
            ends = [min(clock + 1, int(count[thread])) for thread in threads]
            self.team.run(lambda lane: own(threads[lane], clock, ends[lane], 0), on_interrupt=self._halt)

        lanes = self.team.size if is_hybrid else 1
        outcome = exchange(self.node, Exchange(self.call.minibatches, lanes, self.call.consistency, parameters, run))
        for position in self.program.facts.written:
            if position in self.shards:
                self.shards[position].is_complete = False
        return outcome.times, dict(zip(written, outcome.histograms, strict=True))

    def _parameter(self, position: int, touched: TouchedRows | None) -> Parameter:
        argument = self.bound.tables()[position]
        shard: Shard | None = self.shards.get(position)
        bounds = np.array([0, len(argument.dense)]) if shard is None else shard.bounds
        return Parameter(argument.name, argument.dense, bounds, self.call.aggregations[position], touched)


def _identity(argument: Any) -> Any:
    """What two references to the same table have in common."""
    return argument.name if isinstance(argument, TableRef) else table_of(argument)


def _batches(node: Node, call: SyncCall) -> BatchArgument:
    """Return what minibatches are made of, on this node."""
    parameters = list(inspect.signature(plain_function(call.body)).parameters)
    name = parameters[0] if parameters else "batch"
    rows: range | TableArgument
    if isinstance(call.data, range):
        rows = call.data
    else:
        table = table_over(node.store[call.data.name]) if isinstance(call.data, TableRef) else call.data
        rows = TableArgument(name, table.storage, table)
    return BatchArgument.of(name, rows, call.minibatches.starts, call.minibatches.stops)
