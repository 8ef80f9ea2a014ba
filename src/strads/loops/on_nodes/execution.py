"""Node program `run`: one execution of this node's part of a prepared loop."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node, Traffic
from strads.dds import RaggedArray
from strads.dds.shard import Shard, fetch_rows
from strads.engine.executor import Execution, execute, zero_totals
from strads.engine.live import Aligned, Guarded
from strads.engine.replicas import Replicas
from strads.engine.roles import Role
from strads.engine.rotation import Cargo, NodeStation
from strads.engine.statistics import NodeStatistics
from strads.errors import StradsError
from strads.loops.arguments import AccumulatorArgument, BoundArguments, ScalarArgument, read_only
from strads.loops.failures import explain_failed_run, may_stop_half_way
from strads.loops.on_nodes.binding import COMPILING, bind, bring_what_is_read, shards_of
from strads.loops.on_nodes.specs import NodeLoop, NodeResult, TableRef
from strads.loops.program import LoopProgram

_HOLD = 2.0  # how many times shorter messages are held back than blocks can wait


def run(node: Node, name: str, arguments: tuple[Any, ...], versions: tuple[int, ...]) -> NodeResult:
    """Execute this node's part of a prepared loop once.

    Parameters
    ----------
    node
        This node.
    name
        Of the loop in the node's store.
    arguments
        As in the loop's specification, with the present values.
    versions
        Of the content of the tables that are only read: what was derived from them holds while these are the same.
    """
    loop: NodeLoop = node.store[name]
    begin = time.perf_counter()
    loop.tables = arguments
    loop.run, loop.before, loop.arrived = node.comm.inbox.run, None, None
    shards = shards_of(node, arguments)
    bound, program, compile_seconds = bind(node, loop.spec, arguments)
    bring_what_is_read(node, program, shards)
    tables = tuple(argument for argument in arguments if isinstance(argument, TableRef))
    _attach(node, loop, program, shards, (tables, versions))
    replicas = {
        position: Replicas(bound.tables()[position].dense, node.threads, node.comm)
        for position in program.cast.with_role(Role.RELAXED, Role.CHECKED_RELAXED)
        if bound.same[position] == position
    }
    execution, totals, traffic, compiled = _execute(node, loop, program, bound, shards, replicas)
    for position in program.facts.written:
        shards[position].is_complete = bound.same[position] in replicas
    seconds = time.perf_counter() - begin
    statistics = NodeStatistics(
        node.rank,
        node.comm.hosts[node.rank],
        len(loop.part.tasks),
        traffic.bytes_sent,
        traffic.messages_sent,
        execution.compute_seconds,
        max(execution.seconds * node.threads - execution.compute_seconds, 0.0),
        execution.mean_queue,
        execution.longest_queue,
    )
    sums = {position: array[:, 0].copy() for position, array in totals.items()}
    copied = max(seconds - execution.seconds - compiled, 0.0)
    return NodeResult(loop.part.jobs, sums, statistics, execution.seconds, copied, compile_seconds + compiled)


def _attach(
    node: Node, loop: NodeLoop, program: LoopProgram, shards: dict[int, Shard], current: tuple[Any, ...]
) -> None:
    """Prepare what depends on where the tables are, and on the content of those in plan order."""
    if loop.attached == current:
        return
    for kept, moves in ((loop.departures, loop.part.departures), (loop.arrivals, loop.part.arrivals)):
        kept[:] = [Cargo(move, shards[loop.tables_of_moves[move.table]]) for move in moves]
    for position in program.cast.with_role(Role.ALIGNED):
        if position in shards:
            loop.aligned[position] = _in_plan_order(node, shards[position], loop.schedule.indices)
    loop.attached = current


def _in_plan_order(node: Node, shard: Shard, indices: NDArray[np.integer]) -> Any:
    """Rows of `A[k]` in the order of the plan; row 0 stands for those that no task reads."""
    rows = len(shard.whole)
    if rows == 0:
        whole = shard.whole
        if isinstance(whole, RaggedArray):
            return whole.values, np.zeros(len(indices) + 1, np.int64)
        return np.zeros((len(indices), *whole.shape[1:]), whole.dtype)
    wrapped = np.where(indices < 0, indices + rows, indices)
    found = fetch_rows(node, shard, np.where((wrapped >= 0) & (wrapped < rows), wrapped, 0).astype(np.int64))
    return (found.values, found.offsets) if isinstance(found, RaggedArray) else found


def _execute(
    node: Node,
    loop: NodeLoop,
    program: LoopProgram,
    bound: BoundArguments,
    shards: dict[int, Shard],
    replicas: dict[int, Replicas],
) -> tuple[Execution, dict[int, NDArray[Any]], Traffic, float]:
    sums = {p: a for p, a in enumerate(bound.arguments) if isinstance(a, AccumulatorArgument)}
    totals = {p: zero_totals(loop.part.plan.jobs, a.dtype) for p, a in sums.items()}
    storages = tuple(_storage(p, loop, program, bound, totals, replicas) for p in range(len(bound.arguments)))
    storages = bound.by_key(storages)
    with COMPILING:
        before = program.compile_seconds
        worker = program.worker(bound, loop.schedule, storages)
        compiled = program.compile_seconds - before
    loop.before = _snapshot(program, shards)
    station = NodeStation(loop.part, loop.departures, loop.arrivals, list(replicas.values()), node.comm, node.threads)
    loop.arrived = station.arrived
    traffic = node.comm.traffic.copy()
    # A block that leaves is needed about 1 / nodes of an epoch later: so long, at most, it may wait for company.
    node.comm.hold = loop.seconds / (_HOLD * node.size) if loop.seconds else None
    try:
        with node.comm.inbox.calling_on_failure(station.halt):
            execution = execute(
                worker,
                loop.schedule,
                storages,
                node.team,
                station=station,
                job_order=loop.spec.job_order,
                patience=station.patience,
            )
            node.comm.check()
    except StradsError:
        raise
    except Exception as error:
        raise explain_failed_run(program, error, restored=loop.before is not None) from error
    finally:
        node.comm.hold = None
        node.comm.flush()
    loop.seconds = execution.seconds
    return execution, totals, node.comm.traffic.since(traffic), compiled


def _storage(
    position: int,
    loop: NodeLoop,
    program: LoopProgram,
    bound: BoundArguments,
    totals: dict[int, NDArray[Any]],
    replicas: dict[int, Replicas],
) -> Any:
    argument = bound.arguments[position]
    if isinstance(argument, ScalarArgument):
        return argument.value
    if isinstance(argument, AccumulatorArgument):
        return totals[position]
    first = bound.same[position]
    if first in replicas:
        return replicas[first].storage
    role = program.cast.roles[position]
    if role is Role.ALIGNED:
        data = loop.aligned.get(position)
        if data is None:  # a NumPy array, which came with the call
            data = argument.raw[loop.schedule.indices]
        return Aligned(read_only(data), len(argument.storage))
    if role is Role.GUARDED:
        assert loop.guards is not None
        return Guarded(argument.raw, program.cast.table_of[position], *loop.guards)
    return argument.raw if position in program.facts.written else read_only(argument.raw)


def _snapshot(program: LoopProgram, shards: dict[int, Shard]) -> dict[int, NDArray[Any]] | None:
    """Copy this node's rows of what the loop writes, if indices that nobody could check may stop it half way."""
    if not may_stop_half_way(program):
        return None
    return {p: shards[p].values(shards[p].low, shards[p].high).copy() for p in program.facts.written if p in shards}
