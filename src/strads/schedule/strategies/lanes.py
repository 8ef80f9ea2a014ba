"""Plans for loops with relaxed tables: one replica per lane, summed at barriers (decision 4)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.partition import offsets_of
from strads.schedule.kernels.packing import cut, pack
from strads.schedule.plan import Plan, RowLocks
from strads.schedule.strategies.precedence import barriers, parallelism

MAX_ROUNDS = 16  # of an independent plan
_BARRIER, _PER_BYTE = 2e4, 0.25  # nanoseconds of a barrier, and to sum a byte of a replica
_TASK, _SHARE = 10.0, 0.05  # assumed nanoseconds of a task; share of a loop's time that summing may take


def rounds_of(tasks: int, lanes: int, replica_bytes: int) -> int:
    """Return into how many rounds to cut an independent plan, so that replicas never differ by much.

    In a single round the steps that lanes take in a whole epoch would be added up, none knowing of those of the others.
    """
    once = _BARRIER + lanes * replica_bytes * _PER_BYTE
    return 1 if lanes == 1 else max(1, min(MAX_ROUNDS, int(_SHARE * tasks * _TASK / once)))


def with_lanes(
    plan: Plan, lanes: int, node_of: NDArray[np.int32] | None = None, nodes: int = 1, *, rounds: int = 1
) -> Plan:
    """Merge the jobs of each stage into at most `lanes`, with a barrier after every stage.

    For loops with relaxed tables: each lane works on a replica of them, and the replicas are summed at the barriers
    (decision 4). The jobs of an independent plan stay in the order of the loop, so that no data need to be copied into
    another.

    Parameters
    ----------
    plan
        The plan.
    lanes
        Replicas of the relaxed tables, at least 1.
    node_of : (jobs,), optional
        The node of each job. Then every node has equally many lanes, numbered across nodes, and jobs stay on their
        nodes.
    nodes
        Number of nodes.
    rounds
        Number of stages into which the single stage of an independent plan is cut; on one node only.

    Raises
    ------
    PlanError
        If `lanes` is below 1, or if jobs of one stage wait for each other.
    """
    if lanes < 1:
        raise PlanError(f"a plan needs at least 1 lane, not {lanes}")
    _refuse_waiting_within_stage(plan)
    plan = plan.listed()
    in_order = plan.strategy == "independent"
    filled = np.flatnonzero(np.diff(plan.offsets))
    rounds_of_jobs = np.arange(len(filled)) * rounds // max(len(filled), 1)
    old_stages = rounds_of_jobs if in_order and node_of is None else plan.stage[filled]
    work = plan.work
    members: list[NDArray[np.intp]] = []  # old jobs of each new job; empty for a barrier
    lane: list[int] = []
    stage: list[int] = []
    sizes: list[int] = []
    for number, old_stage in enumerate(np.unique(old_stages)):
        jobs = filled[slice(*np.searchsorted(old_stages, [old_stage, old_stage + 1]))]
        bin_of, load = _packed(work[jobs], lanes, None if node_of is None else node_of[jobs], nodes, in_order)
        heaviest_first = np.arange(lanes) if in_order else np.argsort(-load, kind="stable")
        used = [b for b in heaviest_first if np.any(bin_of == b)]
        members += [jobs[bin_of == b] for b in used] + [np.empty(0, np.intp)]
        lane += [int(b) for b in used] + [-1]
        stage += [number] * (len(used) + 1)
        sizes.append(len(used))
    return _merged(plan, members, np.array(lane, np.int32), np.array(stage, np.int32), sizes)


def _packed(
    work: NDArray[np.int64], lanes: int, node_of: NDArray[np.int32] | None, nodes: int, in_order: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the lane of each job, and the work of each lane."""
    pack_them = cut if in_order else pack
    if node_of is None:
        return pack_them(work, lanes)
    each = lanes // nodes
    bin_of, load = np.zeros(len(work), np.int32), np.zeros(lanes, np.int64)
    for node in range(nodes):
        here = node_of == node
        local, load[node * each : (node + 1) * each] = pack_them(work[here], each)
        bin_of[here] = node * each + local
    return bin_of, load


def with_barriers(plan: Plan) -> Plan:
    """End each stage of a plan with a barrier: *micro synchronization* (thesis §4.2), and where replicas are summed."""
    if np.any(np.diff(plan.offsets) == 0):
        return plan
    _refuse_waiting_within_stage(plan)
    plan = plan.listed()
    stages, sizes = np.unique(plan.stage, return_counts=True)
    last = np.repeat(np.arange(len(stages)), sizes) + np.arange(plan.jobs)  # numbers of the old jobs
    jobs = plan.jobs + len(stages)
    tasks, work, stage = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), np.zeros(jobs, np.int32)
    tasks[last], work[last] = np.diff(plan.offsets), plan.work
    stage[last] = plan.stage
    stage[np.cumsum(sizes + 1) - 1] = stages
    precedence = barriers(sizes)
    return replace(
        plan,
        offsets=offsets_of(tasks),
        stage=stage,
        **precedence._asdict(),
        parallelism=parallelism(work, precedence),
        details=replace(plan.details, cells=None, work=work),
    )


def _merged(
    plan: Plan,
    members: list[NDArray[np.intp]],
    lane: NDArray[np.int32],
    stage: NDArray[np.int32],
    sizes: list[int],
) -> Plan:
    old_work, old_tasks = plan.work, np.diff(plan.offsets)
    work = np.array([old_work[jobs].sum() for jobs in members], np.int64)
    tasks = np.array([old_tasks[jobs].sum() for jobs in members], np.int64)
    sequence = np.concatenate([*members, np.empty(0, np.intp)])
    positions = [slice(int(plan.offsets[job]), int(plan.offsets[job + 1])) for job in sequence]
    order = None
    if plan.permutation is not None or np.any(np.diff(sequence) < 0):
        order = np.concatenate([*(plan.order[p] for p in positions), plan.order[:0]])
    precedence = barriers(sizes)
    return replace(
        plan,
        reason=f"{plan.reason}; the jobs of a stage are merged into up to {max(sizes, default=0)} lanes",
        permutation=order,
        offsets=offsets_of(tasks),
        stage=stage,
        **precedence._asdict(),
        parallelism=parallelism(work, precedence),
        locks=_moved_locks(plan.locks, positions),
        details=replace(plan.details, cells=None, work=work),
        lane=lane,
    )


def _moved_locks(locks: RowLocks | None, positions: list[slice]) -> RowLocks | None:
    if locks is None:
        return None
    sizes = np.diff(locks.offsets)
    moved = np.concatenate([*(sizes[p] for p in positions), sizes[:0]])
    pieces = [locks.ids[locks.offsets[p.start] : locks.offsets[p.stop]] for p in positions]
    return RowLocks(locks.count, offsets_of(moved), np.concatenate([*pieces, locks.ids[:0]]))


def _refuse_waiting_within_stage(plan: Plan) -> None:
    """Refuse edges within a stage: lanes run the jobs of a stage in any order, so the edges would be lost."""
    source = np.repeat(np.arange(plan.jobs), np.diff(plan.successor_offsets))
    filled = np.diff(plan.offsets) > 0
    target = plan.successors
    waiting = (plan.stage[source] == plan.stage[target]) & filled[target]  # also across a barrier
    if np.any(waiting):
        edge = int(np.flatnonzero(waiting)[0])
        raise PlanError(
            f"job {int(target[edge])} waits for job {int(source[edge])} of the same stage: "
            "lanes need stages whose jobs do not wait for each other"
        )
