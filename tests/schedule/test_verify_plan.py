"""verify_plan finds what is wrong with a plan."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from access_patterns import edges, k_partite_loops, ratings, sparse, uniform
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_check import verify_plan

from strads.errors import PlanError
from strads.schedule.plan import Plan, RowLocks
from strads.schedule.planner import build_plan
from strads.schedule.records.access import UniformRecords


def without_edge(plan: Plan, edge: int) -> Plan:
    source = int(np.searchsorted(plan.successor_offsets, edge, side="right")) - 1
    offsets, predecessors = plan.successor_offsets.copy(), plan.predecessors.copy()
    offsets[source + 1 :] -= 1
    predecessors[plan.successors[edge]] -= 1
    return replace(
        plan,
        successor_offsets=offsets,
        predecessors=predecessors,
        successors=np.delete(plan.successors, edge),
    )


def two_jobs(edges: list[list[int]], *, order: list[int] | None = None) -> Plan:
    """Tasks 0 and 1 as jobs 0 and 1."""
    counts = np.bincount([e for out in edges for e in out], minlength=2)
    return Plan(
        "own",
        "",
        np.array(order or [0, 1], np.int32),
        np.array([0, 1, 2]),
        np.zeros(2, np.int32),
        counts.astype(np.int32),
        np.cumsum([0] + [len(out) for out in edges]),
        np.array([e for out in edges for e in out], np.int32),
        1.0,
    )


CONFLICT = uniform([3], [0], [[2], [2]])


def test_unordered_conflict_names_jobs_and_row() -> None:
    with pytest.raises(PlanError, match="jobs 0 and 1 both touch row 2 of W"):
        verify_plan(two_jobs([[], []]), CONFLICT)
    verify_plan(two_jobs([[1], []]), CONFLICT)
    verify_plan(two_jobs([[], [0]]), CONFLICT)
    verify_plan(two_jobs([[], []]), uniform([3], [0], [[2], [2]], [False]))


def test_missing_and_doubled_tasks() -> None:
    with pytest.raises(PlanError, match="task 0 is planned 2 times"):
        verify_plan(two_jobs([[1], []], order=[0, 0]), CONFLICT)
    with pytest.raises(PlanError, match="task 2 is missing"):
        verify_plan(two_jobs([[1], []]), uniform([3], [0], [[2], [2], [1]]))
    with pytest.raises(PlanError, match="task 1 is not among the 1 tasks"):
        verify_plan(two_jobs([[1], []]), uniform([3], [0], [[2]]))


def test_circles_and_wrong_counts() -> None:
    with pytest.raises(PlanError, match="circle"):
        verify_plan(two_jobs([[1], [0]]), CONFLICT)
    with pytest.raises(PlanError, match="job 1 says 0 predecessors"):
        verify_plan(replace(two_jobs([[1], []]), predecessors=np.zeros(2, np.int32)), CONFLICT)
    with pytest.raises(PlanError, match="stage decreases"):
        verify_plan(replace(two_jobs([[1], []]), stage=np.array([1, 0], np.int32)), CONFLICT)


@settings(max_examples=80, deadline=None)
@given(k_partite_loops(), st.data())
def test_a_dropped_edge_is_found_where_it_matters(records: UniformRecords, data: st.DataObject) -> None:
    records = replace(records, rows=records.rows[:40])
    plan = build_plan(records, threads=2, strategy="rotation")
    if len(plan.successors) == 0:
        return
    broken = without_edge(plan, data.draw(st.integers(0, len(plan.successors) - 1)))
    if all_conflicts_ordered(broken, records):
        verify_plan(broken, records)
    else:
        with pytest.raises(PlanError, match="no path of successors"):
            verify_plan(broken, records)


def all_conflicts_ordered(plan: Plan, records: UniformRecords) -> bool:
    """Try all pairs of jobs; all columns write."""
    reached = [reachable(plan, job) for job in range(plan.jobs)]
    rows = [touched_rows(plan, records, job) for job in range(plan.jobs)]
    return all(
        second in reached[first] or first in reached[second]
        for first, second in combinations(range(plan.jobs), 2)
        if rows[first] & rows[second]
    )


def touched_rows(plan: Plan, records: UniformRecords, job: int) -> set[tuple[int, int]]:
    tasks = plan.order[plan.offsets[job] : plan.offsets[job + 1]]
    return {(c, int(r)) for c in range(records.rows.shape[1]) for r in records.rows[tasks, c]}


def reachable(plan: Plan, source: int) -> set[int]:
    seen, queue = set(), [source]
    while queue:
        job = queue.pop()
        following = plan.successors[plan.successor_offsets[job] : plan.successor_offsets[job + 1]].tolist()
        queue += set(following) - seen
        seen.update(following)
    return seen


@pytest.mark.parametrize("records", [ratings(5000, 300, 200), edges(5000, 300)], ids=["ratings", "edges"])
def test_a_task_moved_to_another_job_of_its_stage_is_found(records: UniformRecords) -> None:
    plan = build_plan(records, threads=2, strategy="rotation" if len(records.tables) > 1 else "buckets")
    job = int(np.flatnonzero(plan.stage == 0)[1])
    offsets = plan.offsets.copy()
    offsets[job] -= 1  # the last task of the job before
    with pytest.raises(PlanError, match="no path of successors"):
        verify_plan(replace(plan, offsets=offsets), records)


def test_many_jobs_are_checked_in_slabs() -> None:
    records = uniform([9000], [0], np.repeat(np.arange(4500), 2))
    one_each = np.arange(9001)
    degree = np.tile([1, 0], 4500)
    plan = Plan(
        "own",
        "",
        np.arange(9000, dtype=np.int32),
        one_each,
        np.zeros(9000, np.int32),
        np.tile([0, 1], 4500).astype(np.int32),
        np.concatenate([[0], np.cumsum(degree)]),
        np.arange(1, 9000, 2, dtype=np.int32),
        1.0,
    )
    verify_plan(plan, records)
    with pytest.raises(PlanError, match="jobs 8998 and 8999 both touch row 4499"):
        verify_plan(without_edge(plan, 4499), records)


def test_locks_must_cover_and_ascend() -> None:
    records = sparse([4], [[(0, 1, True), (0, 3, True)], [(0, 3, True)]])
    plan = build_plan(records, threads=2, strategy="locked")
    verify_plan(plan, records)
    assert plan.locks is not None
    assert plan.locks.ids.tolist() == [1, 3, 3]
    for ids, words in [([1, 3, 2], "without a lock"), ([3, 1, 3], "do not ascend"), ([1, 9, 9], "not among")]:
        locks = RowLocks(4, plan.locks.offsets, np.array(ids, np.int32))
        with pytest.raises(PlanError, match=words):
            verify_plan(replace(plan, locks=locks), records)
