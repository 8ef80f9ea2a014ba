"""From a plan to the parts of the nodes: which jobs each runs, which rows they own, and from which they draw."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strads.engine.plans.executor import ExecutablePlan
from strads.engine.views.roles import Role
from strads.errors import ArgumentError
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.specs import LoopOptions, LoopSpec
from strads.schedule.nodes.assignment import Assignment, assign, renumbered
from strads.schedule.nodes.placement import NodePlan, place
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.ownership import Ownership, ownership
from strads.schedule.records.pools import Pools, merged, pools
from strads.schedule.strategies.dealing import DEAL_EVERY
from strads.schedule.strategies.lanes import rounds_of, with_barriers, with_lanes

_STRETCH = 1 << 16  # tasks

Part = tuple[NodePlan, Ownership | None, tuple[Pools, ...]]
# The plan as it will be run, the preferred layout of tables, and each node's part.
Placed = tuple[Plan, dict[int, NDArray[np.int64]], list[Part]]


def placed_on_nodes(
    tasks: NodeTasks,
    options: LoopOptions,
    plan: Plan,
    records: AccessRecords,
    near: tuple[Pools, ...],
    *,
    everything: bool = False,
) -> Placed:
    """Place a plan: on one node, or on all of a cluster.

    `everything`: whether its only job may touch any row, as none was recorded.
    """
    argument_roles, size, lanes = tasks.program.argument_roles, tasks.node.size, tasks.team.size
    guarded = {argument_roles.table_of[position] for position in argument_roles.with_role(Role.GUARDED)}
    original = plan
    assignment = None if size == 1 else _assigned(tasks, plan, records, everything)
    if argument_roles.has_lanes:
        if assignment is None:
            plan = with_lanes(plan, lanes, rounds=rounds_of(plan.tasks, lanes, tasks.replica_bytes))
        else:
            plan = with_lanes(plan, size * lanes, assignment.node_of, size)
            assignment = renumbered(assignment, original, plan, lanes)
    elif options.micro_sync or argument_roles.has_relaxed:
        plan = with_barriers(plan)
        assignment = assignment and renumbered(assignment, original, plan)
    if plan is not original:
        near = tuple(merged(found, original, plan) for found in near)
    groups = zip(near, argument_roles.near_tables(), strict=True)
    plan = plan.with_details(near={records.tables[t].name: found for found, tables in groups for t in sorted(tables)})
    if assignment is None:
        owned = ownership(plan, records, guarded) if guarded and plan.strategy != "sequential" else None
        return plan, {}, [(NodePlan(plan, None, np.arange(plan.jobs), (), ()), owned, near)]
    owned = ownership(plan, records, guarded, one_node=False) if guarded and not everything else None
    parts = [
        (part, None if owned is None else _of_part(owned, plan, part), tuple(p.of_jobs(part.jobs) for p in near))
        for part in place(plan, assignment.node_of, assignment.units, size, lanes)
    ]
    return plan, {argument_roles.position_of[table]: cut for table, cut in assignment.bounds.items()}, parts


def _assigned(tasks: NodeTasks, plan: Plan, records: AccessRecords, everything: bool) -> Assignment:
    """Assign the jobs to nodes."""
    argument_roles, tables = tasks.program.argument_roles, range(len(records.tables))
    bounds = [tasks.shards[argument_roles.position_of[table]].bounds for table in tables]
    whole = frozenset(tables) if everything else frozenset().union(*argument_roles.near_tables())
    return assign(plan, records, bounds, tasks.node.size, whole)


def _of_part(owned: Ownership, plan: Plan, part: NodePlan) -> Ownership:
    """Return the ownership of a node's jobs or, under row locks, which do not span nodes, of its tasks."""
    if plan.locks is None:
        return owned.of_jobs(part.jobs)
    of_jobs = replace(owned, offsets=np.zeros(plan.jobs + 1, np.int64), claims=owned.claims[:0]).of_jobs(part.jobs)
    return replace(of_jobs, offsets=owned.offsets, claims=owned.claims)


def executable_plan(spec: LoopSpec, part: NodePlan, owned: Ownership | None) -> ExecutablePlan:
    """Return a node's part of a plan as its workers need it."""
    indices = spec.indices
    if indices.is_range and (part.in_loop_order or _is_counting(part.tasks)):
        return ExecutablePlan(part.plan, None if indices.is_counting else (indices.start, indices.step), owned)
    of_tasks = (
        indices.values if len(part.tasks) == len(indices) and _is_counting(part.tasks) else indices.at(part.tasks)
    )
    return ExecutablePlan(part.plan, of_tasks, owned)


def _is_counting(tasks: NDArray[np.integer]) -> bool:
    """Whether tasks are in the order of the loop; returns early if they are not."""
    starts = range(0, len(tasks), _STRETCH)
    return all(
        np.array_equal(part := tasks[start : start + _STRETCH], np.arange(start, start + len(part))) for start in starts
    )


def check_near(tasks: NodeTasks) -> None:
    """Refuse tables of different lengths that share rows drawn by `near`, or weights for another number of rows."""
    tables, drawn = tasks.bound.tables, tasks.program.facts
    for group in sorted(set(drawn.near.values())):
        first, *others = sorted(position for position, number in drawn.near.items() if number == group)
        rows = len(tables[first].storage)
        weights = [position for number, position in drawn.weights.items() if number == group]
        for position in [*others, *weights]:
            found = len(tables[position].storage)
            if found != rows:
                raise ArgumentError(
                    f"rng.near draws rows of {tables[first].name!r}, which has {rows:,}, but "
                    f"{tables[position].name!r}, which is used with them, has {found:,}: both need equally many"
                )


def pools_of(tasks: NodeTasks, records: AccessRecords, plan: Plan) -> tuple[Pools, ...]:
    """Return the rows from which each job of a plan draws, for each group of tables."""
    program, drawn_from = tasks.program, tasks.bound.tables
    weights = {group: drawn_from[position].dense for group, position in program.facts.weights.items()}
    groups = enumerate(program.argument_roles.near_tables())
    return tuple(pools(plan, records, tables, weights.get(group)) for group, tables in groups)


def notes_on_pools(tasks: NodeTasks, plan: Plan, near: Sequence[Pools]) -> tuple[str, ...]:
    """Describe from which rows jobs draw, and how often these change."""
    lines, program, bound = list[str](), tasks.program, tasks.bound
    for group, found in enumerate(near):
        names = " and ".join(
            bound.arguments[p].name for p, number in program.argument_roles.near.items() if number == group
        )
        sizes = found.sizes[np.diff(plan.offsets) > 0]
        least, most = int(sizes.min(initial=len(found.rows))), int(sizes.max(initial=0))
        many = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        if plan.strategy == "sequential":
            of = "all rows"
        elif found.dealt:
            of = f"the block that the job has, of {many} rows; rows are dealt to other blocks every {DEAL_EVERY} calls"
        else:
            of = f"the rows that tasks of the job touch, {many}; "
            of += f"a new plan every {DEAL_EVERY} calls" if plan.details.is_dealt else "they are the same in every call"
        lines.append(f"rng.near draws rows of {names}{found.about_weights} from {of}")
    return tuple(lines)
