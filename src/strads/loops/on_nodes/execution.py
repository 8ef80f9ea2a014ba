"""Node program `run`: one execution of this node's part of a prepared loop."""

import time
from collections.abc import Hashable
from typing import Any

import numpy as np

from strads.cluster import Node, ThreadTeam, Traffic
from strads.dds.ragged import read_only
from strads.engine.plans.executor import Claiming, Execution, execute, zero_totals
from strads.engine.plans.replicas import Replicas
from strads.engine.plans.transfers import NodeTransfers, TransferBuffer
from strads.engine.statistics import NodeStatistics
from strads.engine.views.live import Guarded
from strads.engine.views.near import Near, group_token
from strads.engine.views.roles import Checking, Role
from strads.errors import StradsError
from strads.loops.arguments import TableArgument
from strads.loops.failures import explain_failed_run
from strads.loops.on_nodes.binding import bind, compiling
from strads.loops.on_nodes.first_look import look, reason_to_stay
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.nonnegative_inputs import nonnegative_numbers
from strads.loops.on_nodes.plan_order import IN_PLAN_ORDER, InPlanOrder
from strads.loops.on_nodes.specs import NodeLoop, NodeResult, TableRef
from strads.loops.on_nodes.undo import restore, values_before
from strads.loops.program import Variant
from strads.loops.python_mode import run_checked

_HOLD = 2.0  # safety factor: messages are held back for the time that blocks can wait, divided by this


def run(
    node: Node,
    name: str,
    arguments: tuple[Any, ...],
    contents: dict[int, Hashable],
    team: ThreadTeam | None = None,
    record_order: bool = False,
) -> NodeResult:
    """Execute this node's part of a prepared loop once, with the current values of the arguments.

    Copies in plan order remain valid while `contents`, the keys of their arguments, are unchanged. `record_order`:
    whether to record that of tasks under row locks.
    """
    loop: NodeLoop = node.store[name]
    loop.tables = tuple(argument for argument in arguments if isinstance(argument, TableRef))
    loop.run, loop.before, loop.arrived = node.comm.run, None, None
    call = _Call(loop, NodeTasks.of(node, loop.spec, arguments, team, variant=loop.variant))
    copy_seconds = call.in_order.update(contents)
    before = look(call.tasks) if loop.samples_rows else None
    compile_seconds = call.compile() + (0.0 if before is None else before.compile_seconds)
    limits = call.program.lasting_limits(call.bound)
    execution, traffic = call.execute(record_order)
    stays = None
    if before is not None:
        in_order = loop.spec.options.order == "sequential"
        stays = reason_to_stay(before, look(call.tasks, before), in_order=in_order)
    if node.size == 1:
        loop.before = None  # with several nodes, another may still fail
    statistics = NodeStatistics(
        node.rank,
        node.comm.hosts[node.rank],
        loop.part.plan.tasks,
        traffic.bytes_sent,
        traffic.messages_sent,
        execution.compute_seconds,
        max(execution.seconds * call.team.size - execution.compute_seconds, 0.0),
        execution.mean_queue,
        execution.longest_queue,
    )
    sequence = None
    if execution.sequence is not None and len(execution.sequence) > 0:
        sequence = loop.part.tasks[np.argsort(execution.sequence)]
    return NodeResult(
        loop.part.jobs,
        {position: array[:, 0].copy() for position, array in call.totals.items()},
        sequence,
        statistics,
        execution.seconds,
        copy_seconds,
        compile_seconds,
        limits,
        stays,
    )


def run_in_interpreter(node: Node, name: str, arguments: tuple[Any, ...]) -> NodeResult:
    """Execute a prepared loop in the interpreter, on one thread, with every access checked."""
    start = time.perf_counter()
    loop: NodeLoop = node.store[name]
    bound, program = bind(node, loop.spec, arguments, variant=loop.variant)
    before = values_before(bound, program, {}, node.team)
    # Separate sums: an error also leaves accumulators unchanged.
    sums = {position: argument.empty() for position, argument in bound.sums.items()}
    plan = loop.part.plan
    try:
        checked = (
            program.body,
            bound.exchanged(sums),
            program.argument_roles,
            loop.spec.indices,
            plan,
            loop.records,
            loop.pools,
        )
        run_checked(*checked, exact=loop.variant not in (Variant.OUTCOMES, Variant.VARYING))
    except BaseException:
        restore(before)
        raise
    seconds = time.perf_counter() - start
    statistics = NodeStatistics(node.rank, node.comm.hosts[node.rank], plan.tasks, 0, 0, seconds, 0.0, 0.0, 0)
    jobs = np.arange(min(plan.jobs, 1))  # where all tasks have added to one sum
    totals = {position: np.full(len(jobs), argument.accumulator.value) for position, argument in sums.items()}
    return NodeResult(jobs, totals, None, statistics, seconds, 0.0, 0.0)


class _Call:
    """One execution on a node's tables."""

    def __init__(self, loop: NodeLoop, tasks: NodeTasks):
        self.loop, self.tasks = loop, tasks
        self.node, self.team, self.program, self.bound = tasks.node, tasks.team, tasks.program, tasks.bound
        tasks.replicate_read_tables(loop.checking)
        if loop.attached != loop.tables:
            for kept, moves in ((loop.departures, loop.part.departures), (loop.arrivals, loop.part.arrivals)):
                kept[:] = [TransferBuffer(move, tasks.shards[loop.tables_of_moves[move.table]]) for move in moves]
            loop.attached = loop.tables
        self.roles = self.program.live_roles(self.bound, loop.checking, in_loop_order=loop.executable.in_loop_order)
        self.in_order = InPlanOrder(loop, tasks, self.roles)
        plan = loop.part.plan
        self.replicas = {
            position: Replicas(self.bound.tables[position].dense, self.team.size, self.node.comm)
            for position in self.program.argument_roles.with_role(Role.RELAXED, Role.CHECKED_RELAXED)
            if self.bound.same[position] == position
        }
        self.totals = {p: zero_totals(plan.jobs, a.dtype) for p, a in self.bound.sums.items()}
        ownership = loop.executable.ownership
        self.claiming: Claiming | None = None if ownership is None else ownership.claiming()

    def _storage(self, position: int, argument: TableArgument) -> Any:
        first = self.bound.same[position]
        if first in self.replicas:
            return self.replicas[first].storage
        role = self.roles[position]
        if role in IN_PLAN_ORDER:
            return self.in_order.storage(position)
        storage = argument.raw if position in self.program.facts.written else read_only(argument.raw)
        if role is Role.GUARDED:
            storage = self._guarded(position, argument)
        if position in self.program.argument_roles.near and self.program.is_near(self.loop.checking):
            group = self.program.argument_roles.near[position]
            rows, low, high, share, other = read_only(self.loop.pools[group].arrays)
            return Near(storage, argument.raw, rows, low, high, share, other, group_token(group))
        return storage

    def _guarded(self, position: int, argument: TableArgument) -> Guarded:
        ownership, table = self.loop.executable.ownership, self.program.argument_roles.table_of[position]
        assert ownership is not None
        assert self.claiming is not None
        owner = self.claiming[0][ownership.first[table] :]
        blocks = ownership.block_of.get(table)
        return Guarded(argument.raw, ownership.low[table], ownership.high[table], owner, blocks)

    def compile(self) -> float:
        """Compile the worker; returns the seconds taken."""
        self.storages = self.bound.storages(self._storage, self.totals)
        loop = self.loop
        if loop.nonnegative is None or loop.checking is Checking.ALL:  # the data may have changed since the last call
            loop.nonnegative = nonnegative_numbers(self.tasks, changing=loop.checking is Checking.ALL)
        known = loop.nonnegative
        self.worker, seconds = compiling(
            lambda: self.program.worker(self.bound, loop.executable, self.storages, loop.checking, known)
        )
        return seconds

    def execute(self, record_order: bool) -> tuple[Execution, Traffic]:
        """Execute the plan; also returns the traffic."""
        node, loop, comm = self.node, self.loop, self.node.comm
        is_recorded = loop.checking is not Checking.ALL
        certain = self.program.is_certain(self.bound) if is_recorded else self.program.is_proved(self.bound)
        # If the second sample, taken after the run, is interrupted, the run is undone as well.
        keeps = loop.samples_rows or not certain
        loop.before = values_before(self.bound, self.program, self.tasks.shards, self.team) if keeps else None
        transfers = None
        if self.node.size > 1 or self.replicas:
            replicas = list(self.replicas.values())
            transfers = NodeTransfers(loop.part, loop.departures, loop.arrivals, replicas, comm, self.team.size)
            loop.arrived = transfers.arrived
        traffic = comm.traffic.copy()
        # A departing block is needed about 1 / nodes of an epoch later, so it may be held back that long, for batching.
        comm.hold = loop.seconds / (_HOLD * node.size) if loop.seconds else None
        try:
            with comm.calling_on_failure(transfers.halt if transfers is not None else lambda: None):
                execution = execute(
                    self.worker,
                    loop.executable,
                    self.storages,
                    self.team,
                    claiming=self.claiming,
                    transfers=transfers,
                    job_order=loop.spec.options.job_order,
                    record_order=record_order,
                )
                comm.check()
        except StradsError:
            raise
        except (IndexError, KeyError) as error:
            self._find_cause()
            raise explain_failed_run(self.program, error, restored=loop.before is not None) from error
        except Exception as error:
            raise explain_failed_run(self.program, error, restored=loop.before is not None) from error
        finally:
            comm.hold = None
            comm.flush()
        for position in self.program.facts.written & self.tasks.shards.keys():
            self.tasks.shards[position].is_complete = self.bound.same[position] in self.replicas
        loop.seconds = execution.seconds
        return execution, comm.traffic.since(traffic)

    def _find_cause(self) -> None:
        """Raise the error, with its line, that reconnaissance finds for an index that was out of range in the run."""
        loop = self.loop
        if loop.checking is not Checking.ALL or self.node.size > 1:  # where recording takes all nodes
            return
        restore(loop.before)
        if loop.failure is not None:
            raise loop.failure
        self.tasks.record()
