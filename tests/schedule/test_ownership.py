"""What jobs own: all that was recorded for them, and never what a job that is not ordered with them may touch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.records.access import SparseRecords, TableShape
from strads.schedule.records.ownership import Ownership, ownership

TABLES = (TableShape("x", 12, 8), TableShape("y", 7, 8))


@st.composite
def loops(draw: st.DrawFn) -> SparseRecords:
    """Records of up to 40 tasks with up to 4 accesses each."""
    access = st.tuples(st.integers(0, 1), st.integers(0, 6), st.just(True))
    tasks = draw(st.lists(st.lists(access, max_size=4), max_size=40))
    offsets = np.cumsum([0, *map(len, tasks)]).astype(np.int64)
    flat = [entry for task in tasks for entry in task]
    tags = np.array([2 * table + write for table, _, write in flat], np.uint8)
    return SparseRecords(TABLES, offsets, np.array([row for _, row, _ in flat], np.int32), tags)


def rows_of(plan: Plan, owned: Ownership, job: int, position: int) -> set[tuple[int, int]]:
    """(table, row) of all that a task at a position of the plan may touch."""
    holder = job if plan.locks is None else position
    found = set()
    claimed = (
        set(owned.claims[owned.offsets[holder] : owned.offsets[holder + 1]].tolist()) if len(owned.claims) else set()
    )
    for table, first in owned.first.items():
        for row in range(TABLES[table].rows):
            unit = first + (owned.block_of[table][row] if table in owned.block_of else row)
            if owned.low[table][job] <= row < owned.high[table][job] or unit in claimed:
                found.add((table, row))
    return found


def ordered(plan: Plan) -> np.ndarray:
    """Whether a path of successors leads from one job to another."""
    reach = np.eye(plan.jobs, dtype=bool)
    for job in reversed(range(plan.jobs)):
        for successor in plan.successors[plan.successor_offsets[job] : plan.successor_offsets[job + 1]]:
            reach[job] |= reach[successor]
    return reach | reach.T


@pytest.mark.parametrize("strategy", ["auto", "components", "buckets", "wavefront", "locked"])
@given(records=loops(), threads=st.integers(1, 4))
def test_jobs_own_what_they_touch_and_share_it_only_with_jobs_that_wait(strategy, records, threads):
    try:
        plan = build_plan(records, threads=threads, strategy=strategy)
    except Exception:
        return  # this strategy does not serve these records
    owned = ownership(plan, records, {0, 1})
    may = []
    for job in range(plan.jobs):
        for position in range(plan.offsets[job], plan.offsets[job + 1]):
            task = plan.order[position]
            of_task = rows_of(plan, owned, job, position)
            for access in range(records.offsets[task], records.offsets[task + 1]):
                tag = int(records.tags[access])
                assert (tag >> 1, int(records.rows[access])) in of_task
            may.append((job, position, of_task))
    reach = ordered(plan)
    for job, position, mine in may:
        for other, place, theirs in may:
            if plan.locks is None and reach[job, other]:
                continue
            if plan.locks is not None and (position == place or _share_a_lock(plan, position, place)):
                continue
            assert not mine & theirs


def _share_a_lock(plan: Plan, first: int, second: int) -> bool:
    locks = plan.locks
    held = [set(locks.ids[locks.offsets[p] : locks.offsets[p + 1]].tolist()) for p in (first, second)]
    return bool(held[0] & held[1])


@given(records=loops())
def test_parts_own_what_their_jobs_do(records):
    plan = build_plan(records, threads=2)
    owned = ownership(plan, records, {0, 1})
    jobs = np.array([*range(plan.jobs)[::-1], -1], np.int64)
    part = owned.of_jobs(jobs)
    for place, job in enumerate(jobs):
        mine = part.claims[part.offsets[place] : part.offsets[place + 1]].tolist()
        assert mine == (owned.claims[owned.offsets[job] : owned.offsets[job + 1]].tolist() if job >= 0 else [])
        for table in owned.low:
            assert part.high[table][place] == (owned.high[table][job] if job >= 0 else 0)
