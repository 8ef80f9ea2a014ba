"""`async_for`: a loop over shared tables, in parallel and serializable (thesis §7.1.3, §7.2.4)."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.cluster import ThreadTeam
from strads.engine.executor import Barriers, Execution, execute, serial_order, zero_totals
from strads.engine.job_pool import JOB_ORDERS
from strads.engine.live import Aligned, Guarded
from strads.engine.replicas import Replicas
from strads.engine.roles import Role
from strads.errors import ArgumentError
from strads.loops.arguments import (
    AccumulatorArgument,
    BoundArguments,
    ScalarArgument,
    TableArgument,
    bind_arguments,
    read_only,
)
from strads.loops.failures import explain_failed_run, may_stop_half_way
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes import run_on_nodes
from strads.loops.on_nodes.driver import LoopOptions
from strads.loops.preparation import PreparedLoop, prepare
from strads.loops.program import LoopProgram, find_program
from strads.loops.python_mode import run_checked
from strads.loops.statistics import LoopStatistics, NodeStatistics
from strads.schedule.plan import Plan

STRATEGIES = ("auto", "independent", "rotation", "buckets", "components", "locked")
_MODES = ("compiled", "python")


def async_for(
    indices: Any,
    body: Callable[..., Any],
    *arguments: Any,
    strategy: str = "auto",
    mode: str = "compiled",
    fastmath: bool = True,
    threads: int | None = None,
    seed: int = 0,
    record_order: bool = False,
    micro_sync: bool = False,
    job_order: str = "heaviest",
) -> LoopStatistics:
    """Run `body(k, *arguments)` for every k in `indices`, in parallel; the result is that of some serial order.

    On its first call a loop is run once without effect, to find which rows each task touches and to check every
    index; from that a plan is made in which no two threads ever touch the same written row. Plans are kept: a call
    with the same body, indices and index tables goes straight to work.

    Parameters
    ----------
    indices
        A range, a number of iterations, or a one-dimensional sequence of integers.
    body
        A plain Python function in the subset that Numba compiles. Its first parameter is the loop index. It may
        call other functions; it must not choose rows by values that the loop itself changes.
    *arguments
        dvectors, maps (of existing whole-number keys), `strads.relaxed(v)`, `strads.readonly(v)`,
        `strads.accumulator(...)`, numbers, tuples of numbers, and NumPy arrays that it only reads. A Python float
        takes the floating dtype of the tables, as do float literals in the body.
    strategy
        "auto", or the one to use: "independent", "rotation", "buckets", "components", "locked". The result of a
        "locked" loop depends on timing; that of all others on the plan alone.
    mode
        "compiled", or "python": run by the interpreter, one task at a time in the plan's order, each access
        checked against the recorded ones. Slow; for debugging.
    fastmath
        Whether sums may be reordered, which lets the compiler vectorize them.
    threads
        Number of threads; by default that of `strads.init`, which alone decides on a cluster.
    seed
        Decides the order of tasks where a strategy samples them.
    record_order
        Whether `order` of the result gives an equivalent serial order.
    micro_sync
        Whether to hold all nodes at a barrier after every stage of the plan (a rotation step), instead of one at
        the end: slower, here to measure what that is worth (thesis §4.2).
    job_order
        Which ready job a thread takes: the "heaviest" first, or for comparison "fifo". The result is the same.

    Returns
    -------
    LoopStatistics
        Times, strategy, parallelism, and the plan: `print(stats.plan.explain())`.

    Raises
    ------
    ArgumentError
        For a wrong argument.
    CompileError
        For a body that Numba cannot compile; the offending line first.
    BodyIndexError
        For an index out of range: line, table, index, bound. No table has been changed.
    BodyKeyError
        For a key that a map does not have: line, map, key. No table has been changed.
    AccessPatternError
        When the rows that a task touches change while the loop runs. Tables are as before the call.
    BodyError
        When the body raises.
    PlanError
        For a strategy that cannot serve this loop.
    """
    start = time.perf_counter()
    _check_options(strategy, mode, seed, job_order)
    runtime = cluster.current()
    loop_indices = LoopIndices.of(indices)
    if not runtime.is_local and mode == "compiled":
        check_node_threads(threads, runtime.threads)
        options = LoopOptions(strategy, int(seed), fastmath, micro_sync, job_order)
        statistics = run_on_nodes(runtime.cluster, body, arguments, loop_indices, options)
        return replace(statistics, order=_plan_order(loop_indices, statistics.plan)) if record_order else statistics
    team = runtime.team(threads)
    bound = bind_arguments(body, arguments)
    program = find_program(body, bound, fastmath=fastmath)
    compiled_before = program.compile_seconds if program.used else 0.0
    program.used = True
    keep_records = mode == "python"
    prepared, is_new = prepare(
        program, bound, loop_indices, team, strategy=strategy, seed=seed, keep_records=keep_records
    )
    call = _Call(program, bound, loop_indices, prepared, team, job_order)
    execution = call.run_in_python() if mode == "python" else call.run(record_order)
    plan = prepared.schedule.plan
    return LoopStatistics(
        tasks=len(loop_indices),
        seconds=time.perf_counter() - start,
        compile_seconds=program.compile_seconds - compiled_before,
        reconnaissance_seconds=prepared.reconnaissance_seconds if is_new else 0.0,
        planning_seconds=prepared.planning_seconds if is_new else 0.0,
        copy_seconds=prepared.copy_seconds if is_new else 0.0,
        execution_seconds=execution.seconds,
        strategy=plan.strategy,
        parallelism=plan.parallelism,
        threads=team.size,
        plan=plan,
        nodes=(_statistics_of(execution, len(loop_indices), 1 if mode == "python" else team.size),),
        order=serial_order(prepared.schedule, execution) if record_order else None,
    )


def _statistics_of(execution: Execution, tasks: int, threads: int) -> NodeStatistics:
    """What this process did, as the only node."""
    waited = max(execution.seconds * threads - execution.compute_seconds, 0.0)
    return NodeStatistics(
        rank=0,
        host=socket.gethostname(),
        tasks=tasks,
        bytes_sent=0,
        messages_sent=0,
        compute_seconds=execution.compute_seconds,
        wait_seconds=waited,
        mean_queue=execution.mean_queue,
        longest_queue=execution.longest_queue,
    )


def check_node_threads(threads: int | None, of_node: int) -> None:
    """Refuse another number of threads than the nodes have."""
    if threads is not None and cluster.check_threads(threads) != of_node:
        raise ArgumentError(
            f"threads={threads}: the nodes of this cluster have {of_node} threads each; strads.init(threads=…) chooses"
        )


def _plan_order(indices: LoopIndices, plan: Plan) -> NDArray[np.integer]:
    """Return the loop indices in the order of the plan's jobs, which is a serial order with the same result."""
    return indices.at(plan.order)


def _check_options(strategy: str, mode: str, seed: int, job_order: str) -> None:
    if job_order not in JOB_ORDERS:
        raise ArgumentError(f"job_order={job_order!r} is unknown; choose one of {', '.join(JOB_ORDERS)}")
    if strategy not in STRATEGIES:
        raise ArgumentError(f"strategy={strategy!r} is unknown; choose one of {', '.join(STRATEGIES)}")
    if mode not in _MODES:
        raise ArgumentError(f"mode={mode!r} is unknown; choose one of {', '.join(_MODES)}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"seed={seed!r}: give a whole number, 0 or more")


@dataclass
class _Call:
    """One execution of a prepared loop on its tables."""

    program: LoopProgram
    bound: BoundArguments
    indices: LoopIndices
    prepared: PreparedLoop
    team: ThreadTeam
    job_order: str

    def run(self, record_order: bool) -> Execution:
        """Execute the plan with compiled code."""
        plan = self.prepared.schedule.plan
        replicas = self._replicas(plan)
        totals = {
            position: zero_totals(plan.jobs, argument.dtype)
            for position, argument in enumerate(self.bound.arguments)
            if isinstance(argument, AccumulatorArgument)
        }
        storages = tuple(self._storage(position, replicas, totals) for position in range(len(self.bound.arguments)))
        storages = self.bound.by_key(storages)
        worker = self.program.worker(self.bound, self.prepared.schedule, storages)
        before = self._snapshot()
        try:
            execution = execute(
                worker,
                self.prepared.schedule,
                storages,
                self.team,
                station=Barriers(list(replicas.values())) if replicas else None,
                job_order=self.job_order,
                record_order=record_order,
            )
        except Exception as error:
            raise self._explain(error, before) from error
        finally:
            self._mark_written()
        for position, sums in totals.items():
            argument = self.bound.arguments[position]
            assert isinstance(argument, AccumulatorArgument)
            argument.accumulator.add(sums[:, 0].sum().item())
        return execution

    def run_in_python(self) -> Execution:
        """Execute the plan in the interpreter, on one thread, with every access checked."""
        prepared, plan = self.prepared, self.prepared.schedule.plan
        assert prepared.records is not None
        start = time.perf_counter()
        try:
            run_checked(
                self.program.body,
                self.bound,
                self.program.cast.table_of,
                self.indices,
                plan.order,
                prepared.records,
            )
        finally:
            self._mark_written()
        # Job by job: numbers are priorities, so the plan's own order obeys every precedence.
        jobs = np.arange(plan.jobs, dtype=np.int32)
        sequence = np.arange(plan.tasks) if plan.locks is not None else None
        seconds = time.perf_counter() - start
        return Execution(seconds, jobs, sequence, compute_seconds=seconds)

    def _replicas(self, plan: Plan) -> dict[int, Replicas]:
        replicas: dict[int, Replicas] = {}
        lanes = 1 if plan.lane is None else int(plan.lane.max(initial=0)) + 1
        for position, argument in self.bound.tables().items():
            if self.program.cast.roles[position].is_relaxed:
                same = self.bound.same[position]
                replicas[position] = replicas.get(same) or Replicas(argument.dense, lanes)
        return replicas

    def _storage(self, position: int, replicas: dict[int, Replicas], totals: dict[int, Any]) -> Any:
        argument = self.bound.arguments[position]
        if isinstance(argument, ScalarArgument):
            return argument.value
        if isinstance(argument, AccumulatorArgument):
            return totals[position]
        if position in replicas:
            return replicas[position].storage
        cast = self.program.cast
        if cast.roles[position] is Role.ALIGNED:
            data = self.prepared.aligned_storage(position, argument, self.team)
            return Aligned(read_only(data), len(argument.storage))
        if cast.roles[position] is Role.GUARDED:
            assert self.prepared.guards is not None
            return Guarded(argument.raw, cast.table_of[position], *self.prepared.guards)
        return argument.raw if position in self.program.facts.written else read_only(argument.raw)

    def _written_tables(self) -> list[TableArgument]:
        written = self.program.facts.written
        return [argument for position, argument in self.bound.tables().items() if position in written]

    def _mark_written(self) -> None:
        for argument in self._written_tables():
            if argument.table is not None:
                argument.table.mark_written()

    def _snapshot(self) -> list[np.ndarray[Any, Any]] | None:
        """Copy what the loop writes, if indices that no reconnaissance could check may stop it half way."""
        if not may_stop_half_way(self.program):
            return None
        return [argument.values.copy() for argument in self._written_tables()]

    def _explain(self, error: Exception, before: list[np.ndarray[Any, Any]] | None) -> Exception:
        if before is not None:
            for argument, values in zip(self._written_tables(), before, strict=True):
                argument.values[...] = values
        return explain_failed_run(self.program, error, restored=before is not None)
