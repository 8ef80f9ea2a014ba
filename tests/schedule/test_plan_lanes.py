"""Plans for loops with relaxed tables."""

import numpy as np
import pytest
from access_patterns import any_loops, ratings, scattered, sparse, uniform
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_check import verify_plan

from strads.errors import PlanError
from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.strategies.lanes import rounds_of, with_barriers, with_lanes


@settings(max_examples=100, deadline=None)
@given(any_loops(), st.integers(1, 5))
def test_lanes_are_safe_and_closed_by_barriers(records: AccessRecords, lanes: int) -> None:
    plan = build_plan(records, threads=2)
    laned = with_lanes(plan, lanes)
    verify_plan(laned, records)
    assert laned.lane is not None
    barrier = laned.lane < 0
    assert np.array_equal(barrier, np.diff(laned.offsets) == 0)
    for stage in np.unique(laned.stage):
        inside = laned.lane[laned.stage == stage]
        assert inside[-1] == -1
        assert sorted(set(inside[:-1].tolist())) == sorted(inside[:-1].tolist())
        assert 1 <= len(inside) - 1 <= lanes
        assert np.all(inside < lanes)


def ends_with_a_barrier(plan: Plan) -> bool:
    """Whether all jobs have ended once the last one, a barrier, is ready."""
    waits = np.zeros(plan.jobs, np.bool_)
    waits[-1] = True
    for job in reversed(range(plan.jobs - 1)):
        waits[job] = np.any(waits[plan.successors[plan.successor_offsets[job] : plan.successor_offsets[job + 1]]])
    return bool(plan.offsets[-1] == plan.offsets[-2] and np.all(waits))


@settings(max_examples=100, deadline=None)
@given(any_loops())
def test_barriers_close_every_stage(records: AccessRecords) -> None:
    plan = with_barriers(build_plan(records, threads=2))
    verify_plan(plan, records)
    assert plan.jobs == 0 or ends_with_a_barrier(plan)


def test_a_barrier_closes_the_last_of_some_batches() -> None:
    """Copies of counters and relaxed tables are summed at barriers, so there has to be one after all jobs."""
    records = scattered(20_000, 60_000, 9)
    plan = build_plan(records, threads=2)
    assert plan.details.batches > 1
    assert ends_with_a_barrier(plan)
    assert with_barriers(plan) is plan
    verify_plan(plan, records)


def test_lanes_are_balanced_and_deterministic() -> None:
    plan = build_plan(ratings(100_000, 3000, 2000), threads=2)
    one, other = with_lanes(plan, 4), with_lanes(plan, 4)
    assert one.jobs == 32 * 5
    assert one.parallelism > 3.5
    assert np.array_equal(one.order, other.order)
    assert "lanes: 4" in one.explain()
    assert "32 barriers" in one.explain()


def test_lanes_of_a_small_plan_exactly() -> None:
    plan = build_plan(uniform([3], [0], [[0], [1], [2], [0], [0]]), threads=1, strategy="rotation")
    laned = with_lanes(plan, 2)
    assert laned.order.tolist() == [0, 3, 4, 1, 2]
    assert laned.offsets.tolist() == [0, 3, 5, 5]
    assert laned.lane is not None
    assert laned.lane.tolist() == [0, 1, -1]
    assert laned.predecessors.tolist() == [0, 0, 2]
    assert laned.successors.tolist() == [2, 2]


def test_barriers_of_batches_are_replaced() -> None:
    records = scattered(20_000, 60_000, 9)
    plan = build_plan(records, threads=2)
    laned = with_lanes(plan, 2)
    assert laned.jobs == 3 * plan.details.batches
    verify_plan(laned, records)


def test_locks_move_with_their_tasks() -> None:
    rng = np.random.default_rng(1)
    records = sparse([30], [[(0, int(r), True) for r in rng.integers(0, 30, 6)] for _ in range(500)])
    verify_plan(with_lanes(build_plan(records, threads=2, strategy="locked"), 3), records)


def test_lanes_are_refused_when_they_make_no_sense() -> None:
    plan = build_plan(ratings(1000, 30, 30), threads=2)
    with pytest.raises(PlanError, match="at least 1 lane"):
        with_lanes(plan, 0)
    flat = type(plan)(**{**vars(plan), "stage": np.zeros(plan.jobs, np.int32)})
    with pytest.raises(PlanError, match="waits for job"):
        with_lanes(flat, 2)
    batches = build_plan(scattered(20_000, 60_000, 9), threads=2)
    flat = type(plan)(**{**vars(batches), "stage": np.zeros(batches.jobs, np.int32)})
    with pytest.raises(PlanError, match="waits for job"):
        with_lanes(flat, 2)


@pytest.mark.parametrize("rounds", [1, 4, 16])
def test_an_independent_plan_runs_in_rounds_each_of_consecutive_tasks(rounds: int) -> None:
    plan = build_plan(uniform([100_000], [0], [[task] for task in range(100_000)]), threads=2)
    assert plan.strategy == "independent"
    laned = with_lanes(plan, 2, rounds=rounds)
    assert laned.jobs == 3 * rounds
    assert laned.permutation is None
    assert laned.parallelism > 1.8


def test_replicas_are_summed_as_often_as_costs_little() -> None:
    assert rounds_of(10_000_000, lanes=2, replica_bytes=1000) == 16
    assert rounds_of(10_000_000, lanes=2, replica_bytes=1 << 20) == 9
    assert rounds_of(1000, lanes=2, replica_bytes=1000) == 1
    assert rounds_of(10_000_000, lanes=1, replica_bytes=1000) == 1
