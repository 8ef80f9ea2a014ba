"""Node program `prepare`: distributed reconnaissance, and a plan of which each node keeps its part (DESIGN §4.3)."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node, ThreadTeam
from strads.dds.shard import Shard, complete
from strads.engine.executor import Schedule
from strads.engine.roles import Role
from strads.loops.arguments import BoundArguments
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.binding import bind, bring_what_is_read, shards_of
from strads.loops.on_nodes.specs import LoopFacts, LoopSpec, NodeLoop
from strads.loops.program import LoopProgram
from strads.loops.reconnaissance import TaskFailed
from strads.schedule.access import AccessRecords
from strads.schedule.assignment import assign, renumbered
from strads.schedule.lanes import with_barriers, with_lanes
from strads.schedule.placement import NodePlan, place
from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.record_parts import chosen, concatenated


def prepare(node: Node, spec: LoopSpec) -> LoopFacts | None:
    """Record this node's share of the tasks; node 0 plans; each node keeps its part of the plan.

    Returns
    -------
    The facts of the loop on node 0; None elsewhere.
    """
    shards = shards_of(node, spec.arguments)
    bound, program, compile_seconds = bind(node, spec, spec.arguments)
    start = time.perf_counter()
    share = _share(node, program, bound, spec.indices, shards)
    bring_what_is_read(node, program, shards)
    own = spec.indices.part(share[node.rank], share[node.rank + 1])
    records = node.comm.gather(record(node, program, bound, own, shards))
    recorded = time.perf_counter()
    facts, parts = None, None
    if records is not None:
        whole = concatenated(records)
        plan, bounds, parts = _plan(node, spec, program, whole, shards)
        facts = LoopFacts(
            plan,
            bounds,
            program.facts.written,
            frozenset(position for position, role in enumerate(program.cast.roles) if role.is_relaxed),
            program.facts.deciding,
            program.facts.dynamic,
            compile_seconds,
            recorded - start,
            time.perf_counter() - recorded,
        )
    part, guards = node.comm.alltoall(parts if parts is not None else [None] * node.size)[0]
    schedule = Schedule(part.plan, spec.indices.at(part.tasks))
    first = {table: position for position, table in reversed(program.cast.table_of.items())}
    node.store[spec.name] = NodeLoop(spec, part, schedule, guards, first)
    return facts


def _share(
    node: Node, program: LoopProgram, bound: BoundArguments, indices: LoopIndices, shards: dict[int, Shard]
) -> NDArray[np.int64]:
    """Bounds of each node's tasks: where the rows of `A[k]` lie, else equal parts."""
    equal = np.linspace(0, len(indices), node.size + 1).astype(np.int64)
    aligned = program.cast.with_role(Role.ALIGNED)
    for position in aligned:
        shard = shards.get(position)
        if shard is not None and indices.is_counting and int(shard.bounds[-1]) == len(indices):
            equal = shard.bounds
            break
    for position in aligned:
        shard = shards.get(position)
        if shard is not None and not (indices.is_counting and np.array_equal(shard.bounds, equal)):
            complete(node, shard)
    return equal


def record(
    node: Node,
    program: LoopProgram,
    bound: BoundArguments,
    indices: LoopIndices,
    shards: dict[int, Shard],
    team: ThreadTeam | None = None,
) -> AccessRecords:
    """Record with ghosts where the body allows; with the real rows of the tables, fetched first, where not."""
    recorder = program.compile_recorder(bound, indices)
    records = None
    if not recorder.scratch:
        try:
            records = recorder.run(bound, indices, team or node.team)
        except TaskFailed:  # a real failure, or only made-up values: real rows tell
            records = None
    if all(node.comm.allgather(records is not None)):
        assert records is not None
        return records
    complete(node, *shards.values())
    return program.record(bound, indices, team or node.team)


def _plan(
    node: Node, spec: LoopSpec, program: LoopProgram, records: AccessRecords, shards: dict[int, Shard]
) -> tuple[Plan, dict[int, NDArray[np.int64]], list[Any]]:
    """Plan the loop and place it: the plan, how tables should lie, and each node's part."""
    threads = node.size * node.threads
    plan = build_plan(records, threads=threads, strategy=spec.strategy, seed=spec.seed, parallel=node.team.for_each)
    position_of = {table: position for position, table in reversed(program.cast.table_of.items())}
    bounds = [shards[position_of[table]].bounds for table in range(len(records.tables))]
    assignment = assign(plan, records, bounds, node.size)
    if program.cast.has_relaxed:
        laned = with_lanes(plan, threads, assignment.node_of, node.size)
        plan, assignment = laned, renumbered(assignment, plan, laned, node.threads)
    elif spec.micro_sync:
        parted = with_barriers(plan)
        plan, assignment = parted, renumbered(assignment, plan, parted)
    placed = place(plan, assignment.node_of, assignment.units, node.size, node.threads)
    guards = [_guards(records, part) if program.facts.dynamic else None for part in placed]
    wanted = {position_of[table]: cut for table, cut in assignment.bounds.items()}
    return plan, wanted, list(zip(placed, guards, strict=True))


def _guards(records: AccessRecords, part: NodePlan) -> tuple[Any, ...]:
    own = chosen(records, part.tasks)
    return own.offsets, own.rows, own.tags
