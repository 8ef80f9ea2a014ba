"""What every dynamic schedule promises, and what each adds."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strads.errors import ArgumentError
from strads.schedule.dynamic.dependencies import dense_dependencies
from strads.schedule.dynamic.schedules import CyclicSchedule, PrioritySchedule, RandomSchedule, ViolationSchedule

KINDS = {
    "cyclic": CyclicSchedule,
    "random": RandomSchedule,
    "dynamic": PrioritySchedule,
    "violation": ViolationSchedule,
}


def correlated(count, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, count))
    X[:, 1::3] = X[:, : len(X[0, 1::3]) * 3 : 3] + 0.3 * X[:, 1::3]
    return np.asfortranarray(X)


def make(kind, count, concurrency, seed, *, checked=False, first=5):
    options = {} if kind == "cyclic" else {"seed": seed}
    if kind == "dynamic":
        options |= {"rest": seed % 3}
    if checked and kind in ("dynamic", "violation"):
        options |= {"dependencies": dense_dependencies(correlated(count), concurrency), "crowding": 1.0}
    return KINDS[kind](range(first, first + count), concurrency, **options)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 1000), st.booleans(), st.data())
@settings(max_examples=60)
def test_nothing_is_proposed_while_in_flight_and_all_comes_in_the_end(kind, count, concurrency, seed, checked, data):
    schedule = make(kind, count, concurrency, seed, checked=checked)
    in_flight, seen, waiting = set(), set(), []
    rng = np.random.default_rng(seed)
    for _ in range(40 * (1 + count // concurrency)):
        plan, priorities = schedule.propose()
        assert len(plan) == len(priorities) <= concurrency
        assert len(set(plan)) == len(plan)
        assert in_flight.isdisjoint(plan)
        assert all(5 <= parameter < 5 + count for parameter in plan)
        seen.update(plan.tolist())
        in_flight.update(plan.tolist())
        waiting.append(plan)
        while len(waiting) > 2 or (waiting and len(waiting[-1]) == 0):
            back = waiting.pop(0)
            schedule.feedback(back, rng.normal(size=len(back)) * (rng.uniform(size=len(back)) < 0.3))
            in_flight.difference_update(back.tolist())
    assert seen == set(range(5, 5 + count))


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides(kind):
    def plans(seed):
        schedule, rng = make(kind, 50, 6, seed, checked=True), np.random.default_rng(0)
        found = []
        for _ in range(40):
            plan, _ = schedule.propose()
            schedule.feedback(plan, rng.normal(size=len(plan)))
            found.append(plan.tolist())
        return found

    assert plans(3) == plans(3)
    assert kind == "cyclic" or plans(3) != plans(4)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_feedback_is_refused(kind):
    schedule = make(kind, 10, 3, 0)
    plan, _ = schedule.propose()
    other = next(parameter for parameter in range(5, 15) if parameter not in plan)
    for wrong in ([other], [4], [15]):
        with pytest.raises(ArgumentError, match="in flight"):
            schedule.feedback(wrong, [1.0])
    with pytest.raises(ArgumentError, match="shapes"):
        schedule.feedback(plan, [1.0])
    schedule.feedback(plan, np.full(len(plan), np.nan))  # a diverging model is no error of the schedule
    assert len(schedule.propose()[0]) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_bad_arguments_are_refused(kind):
    for concurrency in (0, 1.5, True):
        with pytest.raises(ArgumentError, match="concurrency"):
            KINDS[kind](range(10), concurrency)
    with pytest.raises(ArgumentError, match="range"):
        KINDS[kind](range(0, 10, 2), 1)


def test_arrays_of_another_length_are_refused():
    with pytest.raises(ArgumentError, match=r"scales of shape \(4,\) for 5 parameters"):
        PrioritySchedule(range(5), 1, scales=np.ones(4))
    d = dense_dependencies(correlated(7), 2)
    for count in (6, 9):
        with pytest.raises(ArgumentError, match=f"7 columns for {count} parameters"):
            PrioritySchedule(range(count), 2, dependencies=d)
    assert PrioritySchedule(range(8), 2, dependencies=d).propose()[0].size  # the last one is an intercept
    for rest in (-1, 7, 1.5):
        with pytest.raises(ArgumentError, match="rest"):
            PrioritySchedule(range(5), 1, rest=rest)


@pytest.mark.parametrize("prioritize", [True, False])
def test_a_violation_of_nan_counts_as_the_largest(prioritize):
    schedule = ViolationSchedule(range(100), 1, prioritize=prioritize, seed=0)
    violations = np.ones(100)
    violations[3] = np.nan
    schedule.refresh(violations)
    assert np.isfinite(schedule.expected())
    drawn = set()
    for _ in range(2000):
        plan, _ = schedule.propose()
        schedule.feedback(plan, np.ones(len(plan)))
        drawn |= set(plan.tolist())
    assert 3 in drawn


def test_feedback_on_a_victim_is_refused():
    X = np.repeat(np.random.default_rng(0).normal(size=(50, 1)), 6, axis=1)
    schedule = PrioritySchedule(range(6), 2, dependencies=dense_dependencies(X, 2), seed=0)
    plan, _ = schedule.propose()
    victim = schedule.state.victims[0]
    assert victim not in plan
    with pytest.raises(ArgumentError, match="in flight"):
        schedule.feedback([victim], [1.0])


def test_cyclic_goes_round():
    schedule = CyclicSchedule(range(5), 2)
    plans = []
    for _ in range(5):
        plan, _ = schedule.propose()
        schedule.feedback(plan, np.ones(2))
        plans += plan.tolist()
    assert plans == [0, 1, 2, 3, 4] * 2


def test_random_is_uniform():
    schedule, counts = RandomSchedule(range(20), 5, seed=1), np.zeros(20)
    for _ in range(4000):
        plan, _ = schedule.propose()
        counts[plan] += 1
        schedule.feedback(plan, np.ones(5))
    np.testing.assert_allclose(counts / 4000, 0.25, atol=0.04)


@given(st.integers(0, 1000), st.integers(2, 12))
@settings(max_examples=30)
def test_no_plan_has_strong_dependencies_and_victims_come_first(seed, concurrency):
    X = correlated(30)
    C = np.abs(np.corrcoef(X.T))
    d = dense_dependencies(X, concurrency)
    schedule = PrioritySchedule(range(30), concurrency, dependencies=d, threshold=0.5, crowding=np.inf, seed=seed)
    rng, victims = np.random.default_rng(seed), []
    for _ in range(30):
        plan, _ = schedule.propose()
        assert all(C[a, b] <= 0.5 + 1e-5 for a, b in combinations(plan, 2))
        if victims:
            assert plan[0] == victims[0]
        victims = schedule.state.victims[: schedule.state.counters[1]].tolist()
        assert not set(victims) & set(plan)
        schedule.feedback(plan, rng.normal(size=len(plan)))


def test_large_changes_come_again_sooner():
    schedule, counts = PrioritySchedule(range(200), 4, seed=0), np.zeros(200)
    for round_number in range(1050):
        plan, _ = schedule.propose()
        counts[plan] += round_number >= 50  # by then all have been seen once
        schedule.feedback(plan, np.where(plan < 10, 1.0, 1e-3))
    assert counts[:10].min() > 20 * counts[10:].mean()
    assert counts[10:].min() > 0


def test_without_priorities_all_come_alike():
    schedule, counts = PrioritySchedule(range(40), 4, seed=0, prioritize=False), np.zeros(40)
    for _ in range(2000):
        plan, _ = schedule.propose()
        counts[plan] += 1
        schedule.feedback(plan, np.where(plan < 10, 1.0, 0.0))
    np.testing.assert_allclose(counts / counts.mean(), 1.0, atol=0.3)


def test_what_a_look_has_excluded_is_not_drawn_until_the_next():
    schedule = ViolationSchedule(range(3, 13), 4, seed=0)
    plan, _ = schedule.propose()
    with pytest.raises(ArgumentError, match="in flight"):
        schedule.refresh(np.ones(10))
    schedule.feedback(plan, np.ones(4))
    violations = np.full(10, -1.0)
    violations[[1, 4, 6]] = 5.0, 0.0, 1.0
    schedule.refresh(violations)
    seen = set()
    for _ in range(10):
        plan, _ = schedule.propose()
        seen.update(plan.tolist())
        schedule.feedback(plan, np.zeros(len(plan)))
    assert seen == {4, 7, 9}
    schedule.refresh(np.zeros(10))
    assert set(schedule.propose()[0]) | set(schedule.propose()[0]) | set(schedule.propose()[0]) == set(range(3, 13))
    schedule = ViolationSchedule(range(10), 4, seed=0)
    schedule.refresh(np.full(10, -1.0))
    assert len(schedule.propose()[0]) == 0
    with pytest.raises(ArgumentError, match="shape"):
        schedule.refresh(np.ones(9))


@pytest.mark.parametrize("rest", [0, 3])
def test_what_never_changes_rests_ever_longer(rest):
    schedule, turns = PrioritySchedule(range(60), 4, rest=rest, seed=0), [[] for _ in range(60)]
    for _ in range(3000):
        plan, _ = schedule.propose()
        for parameter in plan[plan >= 10]:
            turns[parameter].append(schedule.state.counters[4])
        schedule.feedback(plan, np.where(plan < 10, 1.0, 0.0))
    for drawn in turns[10:]:
        assert np.diff(drawn[3 + rest :]).mean() == pytest.approx(2**rest, rel=0.05)


def test_what_changes_again_no_longer_rests():
    schedule, drawn = PrioritySchedule(range(20), 4, rest=6, seed=0), 0
    for n in range(3000):
        plan, _ = schedule.propose()
        drawn += n >= 1500 and 3 in plan
        change = np.where(plan < 2, 1.0, 0.0)
        change[plan == 3] = 10.0 if n >= 1000 else 0.0
        schedule.feedback(plan, change)
    assert drawn > 1000
