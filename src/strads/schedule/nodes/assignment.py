"""Which node runs which job, and which units of rows the jobs use: the input of `placement`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.partition import distinct_pairs, joined_ranges, offsets_of
from strads.schedule.kernels.packing import pack
from strads.schedule.nodes.placement import EVERYWHERE, NOWHERE, Units
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords, UniformRecords


@dataclass(frozen=True)
class Assignment:
    """The node of each job of a plan, the units that the jobs use, and the preferred layout of the tables.

    Attributes
    ----------
    node_of : (jobs,)
        Node of each job; NOWHERE for barriers, which a plan on nodes does not need: the moves of rows order its jobs.
    units
        Units of rows that the jobs use.
    bounds
        Table → (nodes + 1,) rows at which to cut it between nodes, for tables whose layout the plan prescribes.
    """

    node_of: NDArray[np.int32]
    units: Units
    bounds: dict[int, NDArray[np.int64]]


def assign(
    plan: Plan,
    records: AccessRecords,
    bounds: list[NDArray[np.int64]],
    nodes: int,
    whole: frozenset[int] = frozenset(),
) -> Assignment:
    """Assign the jobs of a plan to nodes.

    Parameters
    ----------
    plan
        A plan from `build_plan`, without lanes or barriers.
    records
        The rows that its tasks touch.
    bounds
        Current row bounds of each recorded table on the nodes.
    nodes
        Number of nodes.
    whole
        Tables of which one job that runs the loop may touch any row, recorded or not.

    Notes
    -----
    The largest table of a rotation is *pinned*: its rows, and the tasks that touch them, stay on their node, and
    the blocks of the other tables travel from node to node (thesis §4.2: a ring, because a stage is a diagonal of
    the grid of blocks). Other plans are split by stage into parts of equal work. Row locks do not span nodes: a
    locked plan runs on node 0.
    """
    if plan.strategy == "rotation" and plan.details.cells is not None:
        return _assign_rotation(plan, records, bounds, nodes)
    node_of = _balanced(plan, nodes)
    complete = sorted(whole) if plan.strategy == "sequential" else []
    tables = [table for table in range(len(records.tables)) if table not in complete]
    units = [_row_units(plan, records, tables, bounds), *(_whole_units(plan, t, bounds[t]) for t in complete)]
    return Assignment(node_of, _joined(units), {})


def _assign_rotation(plan: Plan, records: AccessRecords, bounds: list[NDArray[np.int64]], nodes: int) -> Assignment:
    """Assign a rotation, whose blocks may be sets of fine ones, dealt at random.

    Fine blocks lie in order between loops: neither the layout of the tables nor the node of a task changes when rows
    are dealt anew.
    """
    grid, cells = plan.details, plan.details.cells
    assert cells is not None
    numbers = {shape.name: number for number, shape in enumerate(records.tables)}
    cuts = list(grid.bounds.values())
    members = grid.members or tuple(np.arange(len(cut) - 1, dtype=np.int32) for cut in cuts)
    axis_of = grid.axis_of or {name: axis for axis, name in enumerate(grid.bounds)}
    blocks = [int(member.max()) + 1 for member in members]
    stays = [len(member) == count for member, count in zip(members, blocks, strict=True)]
    size = [records.tables[numbers[n]].rows * records.tables[numbers[n]].row_bytes for n in grid.bounds]
    pinned = max(range(len(cuts)), key=lambda axis: (stays[axis], size[axis]))
    node_of_block = _equal_work(cells[:, pinned], plan.work, blocks[pinned], nodes)
    node_of = node_of_block[cells[:, pinned]]
    # In several passes over the grid, the blocks of a half travel together, see `stage_in_passes`; dealt ones always.
    alone = not grid.members and plan.jobs == len(np.unique(cells, axis=0))
    found: dict[int, NDArray[np.int64]] = {}
    parts = []
    for name, axis in axis_of.items():
        table, cut, member, block = numbers[name], cuts[axis], members[axis], cells[:, axis]
        if axis == pinned and stays[axis]:
            home = node_of_block
        elif grid.members:
            home = (np.arange(len(member)) * nodes // len(member)).astype(np.int32)
        else:
            home = _first_users(block, node_of, len(member))
        found[table] = cut[np.searchsorted(home, np.arange(nodes + 1))]
        found[table][-1] = records.tables[table].rows
        parts.append(_block_units(table, cut, home, member, block, alone=alone))
        parts.append(_units_read_elsewhere(plan, records, table, np.repeat(member, np.diff(cut)), block, found[table]))
    others = [table for table in range(len(records.tables)) if table not in found]
    if others:
        parts.append(_row_units(plan, records, others, bounds))
    return Assignment(node_of, _joined(parts), found)


def _block_units(
    table: int,
    cut: NDArray[np.int64],
    home: NDArray[np.int32],
    member: NDArray[np.int32],
    block: NDArray[np.int32],
    *,
    alone: bool,
) -> Units:
    """Make a unit of each fine block of a table; the jobs of the block that it belongs to use it.

    `cut` holds the bounds of the fine blocks, `home` the node of each and `member` the block that each belongs to;
    `block` (jobs,) is the block of each job.
    """
    jobs = np.argsort(block, kind="stable")
    first, last = (np.searchsorted(block[jobs], member, side) for side in ("left", "right"))
    counts = last - first
    unit = np.repeat(np.arange(len(member)), counts)
    users = np.stack([unit, jobs[joined_ranges(first, counts)]], axis=1).astype(np.int64)
    tables, several = np.full(len(member), table, np.int32), alone & (np.diff(cut) > 1)
    return Units(tables, cut[:-1], cut[1:], home, several, np.ones(len(member), bool), users)


def _equal_work(block: NDArray[np.int32], work: NDArray[np.int64], blocks: int, nodes: int) -> NDArray[np.int32]:
    """Node of each block: contiguous runs of about equal work, none of them empty if there are enough blocks."""
    before = offsets_of(np.bincount(block, work, minlength=blocks))
    middle = (before[:-1] + before[1:]) / 2
    node = np.minimum((middle * nodes / max(before[-1], 1)).astype(np.int32), nodes - 1)
    return np.maximum.accumulate(node)


def _first_users(block: NDArray[np.int32], node_of: NDArray[np.int32], blocks: int) -> NDArray[np.int32]:
    """Home of each block: the node that uses it first, provided that every node still has one range of rows."""
    home = np.full(blocks, -1, np.int32)
    used, first = np.unique(block, return_index=True)
    home[used] = node_of[first]
    return np.maximum(np.maximum.accumulate(home), 0).astype(np.int32)


def _units_read_elsewhere(
    plan: Plan,
    records: AccessRecords,
    table: int,
    block_of_row: NDArray[np.int32],
    block: NDArray[np.int32],
    bounds: NDArray[np.int64],
) -> Units:
    """Make a unit of each row of a rotating table that a job touches outside its `block` (jobs,).

    No task writes such a row, or the rotation would not have been possible: readers get a copy from its home.
    """
    none = np.empty(0, np.int64)
    if isinstance(records, UniformRecords) and records.access_tables.count(table) == 1:
        task, row = none, none  # the block is made of the rows of it that each task touches
    else:
        task, _, row, _ = _accesses(records, [table])
    job = job_of_task(plan)[task] if len(task) else task
    outside = block_of_row[row] != block[job]
    users = distinct_pairs(row[outside], job[outside], plan.jobs)
    rows, users[:, 0] = np.unique(users[:, 0], return_inverse=True)
    home = (np.searchsorted(bounds, rows, side="right") - 1).astype(np.int32)
    no = np.zeros(len(rows), bool)
    return Units(np.full(len(rows), table, np.int32), rows, rows + 1, home, no, no, users)


def _whole_units(plan: Plan, table: int, bounds: NDArray[np.int64]) -> Units:
    """Make a unit of each node's rows of a table that all jobs use."""
    home = np.flatnonzero(np.diff(bounds) > 0)
    users = np.stack(np.meshgrid(np.arange(len(home)), np.arange(plan.jobs), indexing="ij"), axis=-1).reshape(-1, 2)
    numbers = np.full(len(home), table, np.int32)
    written = np.ones(len(home), bool)
    several = np.diff(bounds)[home] > 1
    low, high = bounds[home], bounds[home + 1]
    return Units(numbers, low, high, home.astype(np.int32), several, written, users.astype(np.int64))


def _row_units(plan: Plan, records: AccessRecords, tables: list[int], bounds: list[NDArray[np.int64]]) -> Units:
    """Make a unit of each row that any task touches."""
    task, table, row, write = _accesses(records, tables)
    first_row = offsets_of([shape.rows for shape in records.tables])
    used, unit = np.unique(row + first_row[table], return_inverse=True)
    written = np.zeros(len(used), bool)
    written[unit[write]] = True
    users = distinct_pairs(unit, job_of_task(plan)[task], plan.jobs)
    table_of = np.asarray(np.searchsorted(first_row[1:], used, side="right"), np.int32)
    rows = used - first_row[table_of]
    home = np.zeros(len(used), np.int32)
    for number in tables:
        of_table = table_of == number
        home[of_table] = np.searchsorted(bounds[number], rows[of_table], side="right") - 1
    return Units(table_of, rows, rows + 1, home, np.zeros(len(used), bool), written, users)


def _accesses(
    records: AccessRecords, tables: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Task, table, row and kind of every access to the given tables."""
    if isinstance(records, UniformRecords):
        columns = [column for column, table in enumerate(records.access_tables) if table in tables]
        tasks, arity = records.tasks, len(columns)
        return (
            np.repeat(np.arange(tasks), arity),
            np.tile(np.array([records.access_tables[column] for column in columns], np.int64), tasks),
            records.rows[:, columns].astype(np.int64).reshape(-1),
            np.tile(np.array([records.access_writes[column] for column in columns], bool), tasks),
        )
    table = (records.tags >> 1).astype(np.int64)
    chosen = np.isin(table, tables)
    task = np.repeat(np.arange(records.tasks), np.diff(records.offsets))
    return task[chosen], table[chosen], records.rows[chosen].astype(np.int64), (records.tags[chosen] & 1).astype(bool)


def job_of_task(plan: Plan) -> NDArray[np.int64]:
    """Job of each task, by its position in the loop's indices; shape (tasks,)."""
    jobs = np.empty(plan.tasks, np.int64)
    jobs[plan.order] = np.repeat(np.arange(plan.jobs), np.diff(plan.offsets))
    return jobs


def renumbered(assignment: Assignment, old: Plan, new: Plan, lanes: int | None = None) -> Assignment:
    """Carry an assignment over to a plan made by merging the jobs of another, with barriers between them.

    Parameters
    ----------
    assignment
        The assignment of the old plan.
    old, new
        The plans; the new one has the same tasks.
    lanes
        Lanes of each node, if the new plan has lanes: the lane determines the node of a job.
    """
    first = np.append(old.order, 0)[old.offsets[:-1]] if old.tasks else np.zeros(old.jobs, np.int64)
    filled = np.diff(old.offsets) > 0
    new_job = np.full(old.jobs, -1, np.int64)
    new_job[filled] = job_of_task(new)[first[filled]]
    node_of = np.full(new.jobs, EVERYWHERE, np.int32)
    if lanes is not None and new.lane is not None:
        node_of = np.where(new.lane >= 0, new.lane // lanes, EVERYWHERE).astype(np.int32)
    else:
        node_of[new_job[filled]] = assignment.node_of[filled]
    users = assignment.units.users
    moved = distinct_pairs(users[:, 0], new_job[users[:, 1]], new.jobs)
    units = assignment.units._replace(users=moved)
    return Assignment(node_of, units, assignment.bounds)


def _balanced(plan: Plan, nodes: int) -> NDArray[np.int32]:
    """Node of each job: each stage is split into parts of equal work, contiguous if there is only one stage."""
    filled = np.diff(plan.offsets) > 0
    node_of = np.where(filled, 0, NOWHERE).astype(np.int32)
    if plan.locks is not None:
        return node_of
    stages = np.unique(plan.stage)
    for stage in stages:
        jobs = np.flatnonzero((plan.stage == stage) & filled)
        if len(stages) == 1:
            first = plan.order[np.minimum(plan.offsets[jobs], max(plan.tasks - 1, 0))] if plan.tasks else jobs
            jobs = jobs[np.argsort(first, kind="stable")]
            node_of[jobs] = _equal_work(np.arange(len(jobs), dtype=np.int32), plan.work[jobs], len(jobs), nodes)
        else:
            node_of[jobs] = pack(plan.work[jobs], nodes)[0]
    return node_of


def _joined(parts: list[Units]) -> Units:
    """Concatenate the units of several tables, numbered consecutively."""
    first = offsets_of([len(part.table) for part in parts])
    users = [part.users + np.array([start, 0]) for part, start in zip(parts, first, strict=False)]
    return Units(
        np.concatenate([part.table for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.home for part in parts]),
        np.concatenate([part.alone for part in parts]),
        np.concatenate([part.written for part in parts]),
        np.concatenate(users).astype(np.int64),
    )
