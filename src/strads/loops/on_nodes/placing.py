"""From a plan to the parts of the nodes: which jobs each runs, which rows they own, and from which they draw."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.dds.shard import Shard
from strads.engine.plans.executor import ExecutablePlan
from strads.engine.views.roles import Role
from strads.errors import ArgumentError
from strads.loops.arguments import BoundArguments
from strads.loops.on_nodes.specs import LoopOptions, LoopSpec
from strads.loops.program import LoopProgram
from strads.schedule.nodes.assignment import Assignment, assign, renumbered
from strads.schedule.nodes.placement import NodePlan, place
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.ownership import Ownership, ownership
from strads.schedule.records.pools import Pools, merged, pools
from strads.schedule.strategies.dealing import DEAL_EVERY, is_dealt
from strads.schedule.strategies.lanes import with_barriers, with_lanes

_STRETCH = 1 << 16  # tasks
NEAR = "rng.near"

Part = tuple[NodePlan, Ownership | None, tuple[Pools, ...]]
# The plan as it will be run, the preferred layout of tables, and each node's part.
Placed = tuple[Plan, dict[int, NDArray[np.int64]], list[Part]]


def placed_on_nodes(
    node: Node,
    options: LoopOptions,
    program: LoopProgram,
    plan: Plan,
    records: AccessRecords,
    near: tuple[Pools, ...],
    shards: dict[int, Shard],
    lanes: int,
    *,
    everything: bool = False,
) -> Placed:
    """Place a plan: on one node, or on all of a cluster.

    `lanes`: threads of a node. `everything`: whether its only job may touch any row, as none was recorded.
    """
    guarded = {program.cast.table_of[position] for position in program.cast.with_role(Role.GUARDED)}
    original = plan
    if node.size == 1:
        if program.cast.has_relaxed:
            plan = plan.with_lanes(lanes)
        elif options.micro_sync:
            plan = with_barriers(plan)
        near = _carried_over(near, original, plan)
        plan.details["near"] = _by_name(near, program, records)
        owned = ownership(plan, records, guarded) if guarded and plan.strategy != "sequential" else None
        return plan, {}, [(NodePlan(plan, None, np.arange(plan.jobs), (), ()), owned, near)]
    plan, assignment, wanted = _assigned(node, plan, program, records, shards, options.micro_sync, lanes, everything)
    near = _carried_over(near, original, plan)
    plan.details["near"] = _by_name(near, program, records)
    owned = ownership(plan, records, guarded, one_node=False) if guarded and not everything else None
    parts = [
        (part, None if owned is None else _of_part(owned, plan, part), tuple(p.of_jobs(part.jobs) for p in near))
        for part in place(plan, assignment.node_of, assignment.units, node.size, lanes)
    ]
    return plan, wanted, parts


def _carried_over(near: tuple[Pools, ...], old: Plan, new: Plan) -> tuple[Pools, ...]:
    return near if new is old else tuple(merged(found, old, new) for found in near)


def _by_name(near: tuple[Pools, ...], program: LoopProgram, records: AccessRecords) -> dict[str, Pools]:
    """Return the rows that jobs draw, by the name of the table."""
    groups = zip(near, program.cast.near_tables(), strict=True)
    return {records.tables[table].name: found for found, tables in groups for table in sorted(tables)}


def _assigned(
    node: Node,
    plan: Plan,
    program: LoopProgram,
    records: AccessRecords,
    shards: dict[int, Shard],
    micro_sync: bool,
    lanes: int,
    everything: bool,
) -> tuple[Plan, Assignment, dict[int, NDArray[np.int64]]]:
    """Assign the jobs to nodes; if requested, merge them into lanes or separate them by barriers."""
    position_of = {table: position for position, table in reversed(program.cast.table_of.items())}
    bounds = [shards[position_of[table]].bounds for table in range(len(records.tables))]
    whole = frozenset(range(len(records.tables))) if everything else frozenset().union(*program.cast.near_tables())
    assignment = assign(plan, records, bounds, node.size, whole)
    wanted = {position_of[table]: cut for table, cut in assignment.bounds.items()}
    if program.cast.has_relaxed:
        laned = with_lanes(plan, node.size * lanes, assignment.node_of, node.size)
        return laned, renumbered(assignment, plan, laned, lanes), wanted
    if micro_sync:
        parted = with_barriers(plan)
        return parted, renumbered(assignment, plan, parted), wanted
    return plan, assignment, wanted


def _of_part(owned: Ownership, plan: Plan, part: NodePlan) -> Ownership:
    """Return the ownership of a node's jobs or, under row locks, which do not span nodes, of its tasks."""
    of_part = owned.of_jobs(part.jobs)
    return of_part if plan.locks is None else replace(of_part, offsets=owned.offsets, claims=owned.claims)


def executable_plan(spec: LoopSpec, part: NodePlan, owned: Ownership | None) -> ExecutablePlan:
    """Return a node's part of a plan as its workers need it."""
    indices = spec.indices
    if not indices.is_range or not (part.in_loop_order or _is_counting(part.tasks)):
        return ExecutablePlan(part.plan, indices.at(part.tasks), owned)
    return ExecutablePlan(part.plan, None if indices.is_counting else (indices.start, indices.step), owned)


def _is_counting(tasks: NDArray[np.integer]) -> bool:
    """Whether tasks are in the order of the loop; returns early if they are not."""
    starts = range(0, len(tasks), _STRETCH)
    return all(
        np.array_equal(part := tasks[start : start + _STRETCH], np.arange(start, start + len(part))) for start in starts
    )


# -- rows that `near` draws --------------------------------------------------------------------------------------------


def check_near(program: LoopProgram, bound: BoundArguments) -> None:
    """Refuse tables of different lengths that share rows drawn by `near`, or weights for another number of rows."""
    tables, drawn = bound.tables(), program.facts
    for group in sorted(set(drawn.near.values())):
        first, *others = sorted(position for position, number in drawn.near.items() if number == group)
        rows = len(tables[first].storage)
        weights = [position for number, position in drawn.weights.items() if number == group]
        for position in [*others, *weights]:
            found = len(tables[position].storage)
            if found != rows:
                raise ArgumentError(
                    f"rng.near draws rows of {tables[first].name!r}, which has {rows:,}, but {tables[position].name!r} "
                    f"that the body uses with them has {found:,}: both need as many"
                )


def pools_of(program: LoopProgram, bound: BoundArguments, records: AccessRecords, plan: Plan) -> tuple[Pools, ...]:
    """Return the rows from which each job of a plan draws, for each group of tables."""
    weights = {group: bound.tables()[position].dense for group, position in program.facts.weights.items()}
    groups = enumerate(program.cast.near_tables())
    return tuple(pools(plan, records, tables, weights.get(group)) for group, tables in groups)


def notes_on_pools(program: LoopProgram, bound: BoundArguments, plan: Plan, near: Sequence[Pools]) -> list[str]:
    """Describe from which rows jobs draw, and how often these change."""
    lines = []
    for group, found in enumerate(near):
        names = " and ".join(bound.arguments[p].name for p, number in program.cast.near.items() if number == group)
        weighted = " with weights" if group in program.facts.weights else ""
        sizes = found.sizes[np.diff(plan.offsets) > 0]
        least, most = int(sizes.min(initial=len(found.rows))), int(sizes.max(initial=0))
        many = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        if plan.strategy == "sequential":
            of = "all rows"
        elif found.dealt:
            of = f"the block that the job has, of {many} rows; rows are dealt to other blocks every {DEAL_EVERY} calls"
        else:
            of = f"the rows that tasks of the job touch, {many}; "
            of += f"a new plan every {DEAL_EVERY} calls" if is_dealt(plan) else "they are the same in every call"
        lines.append(f"{NEAR} draws rows of {names}{weighted} from {of}")
    return lines
