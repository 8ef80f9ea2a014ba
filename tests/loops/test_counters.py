"""Loops that only add integers to a table: threads have copies of it, and the result has the bits of any order."""

import math

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads import async_for
from strads.bodies.analysis import Field, TableKind, analyse_body
from strads.schedule.loop_sample import PlanningCost

INTEGERS, FLOATS = TableKind(1, integer=True), TableKind(1, floating=True)
GRID = TableKind(2, integer=True)
RECORDS = TableKind(1, fields=(Field("i", integer=True), Field("x", floating=True)))
TASKS = 3000


def one(T, i):
    T[i] += 1


def store_later(k, D, T):
    t = T[D[k]]
    for n in range(2):
        T[D[k]] = t + n


def read_twice(k, D, T):
    t = T[D[k]]
    T[D[k]] += 5
    T[D[k]] = t + 1


def by_helper(k, D, T):
    one(T, D[k])
    one(T, 0)


def with_condition(k, D, T):
    T[D[k]] += 1 if D[k] > 3 else -2


def many(k, D, T):
    for i in range(k % 5):
        T[(D[k] + i) % len(T)] -= i * D[k] // 3


def carried(k, D, T):
    n = 0
    for i in range(k % 7):
        n += i
    T[D[k]] += n


def in_words(k, D, T):
    i = D[k]
    T[i] = T[i] + i // 2


def by_row(k, D, T):
    row = T[D[k]]
    for f in range(len(row)):
        row[f] += D[k] > f
    T[0, 0] -= T.shape[1]


def whole_rows(k, D, T):
    T[D[k]] += 1


def of_a_record(k, D, T):
    r = D[k]
    T[r.i % 10] += r.i


COUNTING = [
    (by_helper, INTEGERS, INTEGERS),
    (with_condition, INTEGERS, INTEGERS),
    (many, INTEGERS, INTEGERS),
    (carried, INTEGERS, INTEGERS),
    (in_words, INTEGERS, INTEGERS),
    (by_row, INTEGERS, GRID),
    (whole_rows, INTEGERS, GRID),
    (of_a_record, RECORDS, INTEGERS),
]


def of_a_float(k, D, T):
    T[k % 10] += 0.5


def of_a_field(k, D, T):
    T[0] += D[k].x


def of_a_quotient(k, D, T):
    T[k % 10] += k / 2


def of_a_root(k, D, T):
    T[k % 10] += math.sqrt(k)


def of_itself(k, D, T):
    T[D[k]] += T[0]


def at_itself(k, D, T):
    T[T[D[k]] % 10] += 1


def compared(k, D, T):
    if T[D[k]] < 5:
        T[D[k]] += 1


def doubled(k, D, T):
    T[D[k]] *= 2


def set_to(k, D, T):
    T[D[k]] += 1
    T[0] = k


def elsewhere(k, D, T):
    t = T[D[k]] + 1
    T[0] = t


def sum_kept(k, D, T):
    t = T[D[k]] + 1
    T[D[k]] = t
    if t > 100:
        T[0] += 1


def powers(k, D, T):
    T[k % 10] += 2 ** -D[k]


def moved(k, D, T):
    i = D[k]
    t = T[i] + 1
    i += 1
    T[i % 10] = t


def unsigned(k, D, T):
    T[k % 10] += np.uint64(k)


def into_unsigned_shift(k, D, T):
    T[k % 10] += 1 << np.uint32(3)


def chosen_later(k, D, T):
    a = T[D[k]]
    b = T[0]
    t = a if k > 3 else b
    T[D[k]] = t + 1


OTHERS = [
    (store_later, INTEGERS, INTEGERS),
    (read_twice, INTEGERS, INTEGERS),
    (of_a_float, INTEGERS, INTEGERS),
    (of_a_field, RECORDS, INTEGERS),
    (of_a_quotient, INTEGERS, INTEGERS),
    (of_a_root, INTEGERS, INTEGERS),
    (of_itself, INTEGERS, INTEGERS),
    (at_itself, INTEGERS, INTEGERS),
    (compared, INTEGERS, INTEGERS),
    (doubled, INTEGERS, INTEGERS),
    (set_to, INTEGERS, INTEGERS),
    (elsewhere, INTEGERS, INTEGERS),
    (sum_kept, INTEGERS, INTEGERS),
    (powers, INTEGERS, INTEGERS),
    (moved, INTEGERS, INTEGERS),
    (unsigned, INTEGERS, INTEGERS),
    (into_unsigned_shift, INTEGERS, INTEGERS),
    (chosen_later, INTEGERS, INTEGERS),
    (by_helper, INTEGERS, FLOATS),
    (by_helper, INTEGERS, TableKind(1)),
    (by_helper, INTEGERS, TableKind(1, integer=True, relaxed=True)),
]


def name_of(value):
    return value.__name__ if callable(value) else ""


@pytest.mark.parametrize(("body", "data", "table"), COUNTING, ids=name_of)
def test_integer_sums_are_counters(body, data, table):
    assert analyse_body(body, [data, table]).counters == {1}


@pytest.mark.parametrize(("body", "data", "table"), OTHERS, ids=name_of)
def test_other_writes_are_no_counters(body, data, table):
    assert analyse_body(body, [data, table]).counters == frozenset()


def test_a_table_that_is_passed_twice_is_no_counter():
    def both(k, A, B):
        A[k % 3] += 1
        B[0] += 1

    assert analyse_body(both, [INTEGERS, INTEGERS], same=[0, 0]).counters == frozenset()
    assert analyse_body(both, [INTEGERS, INTEGERS]).counters == {0, 1}


@pytest.mark.few(3)
@pytest.mark.parametrize("of", [-5, True, np.int32(7), 2.0, 2**63, np.uint64(3)])
def test_scalars_count_if_they_are_signed_integers(of):
    def add(k, T, of):
        T[k % 10] += of

    table = strads.dvector(np.arange(10))
    before = table.to_numpy().copy()
    stats = async_for(TASKS, add, table, of, threads=2)
    assert ("each thread adds to a copy" in stats.plan.explain()) == (type(of) in (int, bool, np.int32) and of < 2**63)
    expected = before + (np.bincount(np.arange(TASKS) % 10) * int(of) if of != 2**63 else 0)
    if of != 2**63:
        np.testing.assert_array_equal(table.to_numpy(), expected)


@pytest.mark.nodes
@pytest.mark.parametrize("dtype", ["i8", "i4", "u1"])
@pytest.mark.parametrize(("body", "data", "table"), COUNTING, ids=name_of)
@pytest.mark.few(3)
def test_the_result_is_that_of_the_loop(runtime, body, data, table, dtype):
    if dtype == "u1" and body in (with_condition, whole_rows):
        pytest.skip("NumPy refuses to add -2 to a uint8, and Numba an int64 to an array of these")
    indices = np.random.default_rng(3).integers(0, 10, TASKS)
    if data.fields:
        records = np.zeros(TASKS, [("i", "i4"), ("x", "f8")])
        records["i"] = indices
        indices = records
    T = strads.dvector(np.arange(40).reshape(10, 4) if table.depth == 2 else np.arange(10), dtype=dtype)
    assert run_or_refuse(range(TASKS), body, strads.dvector(indices), T) is None


def test_overflow_wraps_as_in_the_loop():
    def add(k, D, T):
        T[D[k]] += 100

    T = strads.dvector(np.zeros(3, "u1"))
    stats = async_for(TASKS, add, strads.dvector(np.arange(TASKS) % 3), T, threads=2)
    assert "counts" not in stats.strategy
    np.testing.assert_array_equal(T.to_numpy(), np.full(3, TASKS // 3 * 100 % 256))


def test_small_counters_are_neither_recorded_nor_copied_into_plan_order():
    def count(k, D, T):
        T[D[k]] += 1

    D, T = strads.dvector(np.random.default_rng(0).integers(0, 5, 100_000)), strads.dvector.zeros(5, "i8")
    stats = async_for(len(D), count, D, T, threads=2)
    assert stats.strategy == "independent"
    assert "integers are only added to T: each thread adds to a copy of its own" in stats.plan.explain()
    assert np.array_equal(stats.plan.order, np.arange(len(D)))
    np.testing.assert_array_equal(T.to_numpy(), np.bincount(D.to_numpy()))
    D[:] = 4
    async_for(len(D), count, D, T, threads=2)
    assert T[4] > 100_000


def test_large_counters_have_copies_where_nothing_else_is_parallel():
    def sketch(k, D, T):
        for row in range(len(T)):
            T[row, (row * 7919 + D[k]) % T.shape[1]] += 1

    D = strads.dvector(np.random.default_rng(0).integers(0, 1 << 30, 50_000))
    T = strads.dvector.zeros((4, 50_021), "i8")
    stats = async_for(len(D), sketch, D, T, threads=2)
    assert stats.strategy == "independent"
    assert T.to_numpy().sum() == 4 * len(D)


def meet(k, D, X, steps):
    i, j = D[k, 0], D[k, 1]
    change = 0.1 * (X[i, 0] - X[j, 1])
    for f in range(4):
        X[i, f] += change
        X[j, f] -= change
    if change > 0:
        steps[0] += 1


def who_meet():
    rng = np.random.default_rng(0)
    D = strads.dvector(rng.integers(0, 20_000, (60_000, 2)))
    return D, strads.dvector(rng.normal(size=(20_000, 4))), strads.dvector.zeros(1, "i8")


def test_a_counter_of_all_tasks_does_not_serialize_a_loop():
    D, X, steps = who_meet()
    stats = async_for(len(D), meet, D, X, steps, threads=2)
    assert stats.strategy not in ("sequential", "locked"), stats.plan.explain()
    assert stats.parallelism > 1.5
    assert 0 < steps[0] < len(D)


def test_a_loop_with_a_counter_that_was_put_off_is_planned_in_the_second_call(monkeypatch):
    monkeypatch.setattr(PlanningCost, "exceeds_first_call", True)
    D, X, steps = who_meet()
    first, second = (async_for(len(D), meet, D, X, steps, threads=2) for _ in range(2))
    assert first.strategy == "sequential"
    assert second.strategy not in ("sequential", "locked"), second.plan.explain()


def test_counters_are_not_copied_if_one_thread_runs_the_loop_anyway():
    def follow(k, steps, place, visits):
        place[k + 1] = (place[k] * 5 + steps[k]) % 7
        visits[0] += 1

    n = 20_000
    steps = strads.dvector(np.random.default_rng(0).integers(0, 7, n))
    place, visits = strads.dvector(np.zeros(n + 1, np.int64)), strads.dvector(np.zeros(1, np.int64))
    for call in range(2):
        stats = strads.async_for(n, follow, steps, place, visits, threads=2)
        assert (stats.strategy, stats.plan.jobs) == ("sequential", 1)
        assert "copy of its own" not in stats.plan.explain()
        assert visits[0] == (call + 1) * n


def test_a_failing_task_leaves_the_counters_as_they_were():
    def count(k, D, T):
        T[D[k]] += 1

    D, T = strads.dvector(np.full(1000, 2)), strads.dvector.zeros(5, "i8")
    D[990] = 7
    with pytest.raises(strads.BodyIndexError):
        async_for(len(D), count, D, T, threads=2)
    assert not T.to_numpy().any()


@pytest.mark.parametrize("options", [{"order": "sequential"}, {"mode": "python"}, {"threads": 1}, {"threads": 3}])
def test_options(options):
    def count(k, D, T):
        T[D[k]] += k

    D, T = strads.dvector(np.random.default_rng(0).integers(0, 5, 2000)), strads.dvector.zeros(5, "i8")
    async_for(len(D), count, D, T, **options)
    np.testing.assert_array_equal(T.to_numpy(), np.bincount(D.to_numpy(), np.arange(2000)).astype(int))


def test_a_map_of_counts():
    def count(k, D, counts):
        if D[k] in counts:
            counts[D[k]] += 1

    D = strads.dvector(np.random.default_rng(0).integers(0, 9, 5000))
    counts = strads.dmap(np.arange(7), np.zeros(7, int))
    stats = async_for(len(D), count, D, counts, threads=2)
    assert stats.strategy == "independent"
    assert [counts[key] for key in range(7)] == np.bincount(D.to_numpy())[:7].tolist()


def skewed(k, T, D, total):
    for _ in range(D[k]):
        T[D[k] % len(T)] += 1
    total.add(1 / (1 + D[k]))


def drawn(k, A, T, rng):
    A[k] = rng.normal()
    T[min(len(T) - 1, int(abs(A[k]) * 8))] += 1


def test_jobs_that_count_are_dealt_as_they_come_and_add_floats_in_order():
    """Replicas are those of threads, so that jobs, which sums of floats depend on, need not be merged into as many."""
    D = np.arange(100_000, dtype="i8") % 50
    D[:1000] = 5000
    found = []
    for threads in (1, 2, 3):
        T, total = strads.dvector.zeros(32, dtype="i8"), strads.accumulator(0.0)
        for _ in range(2):
            stats = async_for(len(D), skewed, T, strads.dvector(D), total, threads=threads)
        assert stats.plan.strategy == "independent"
        assert np.count_nonzero(np.diff(stats.plan.offsets)) >= 64
        assert T.to_numpy().tolist() == (2 * np.bincount(D % 32, weights=D, minlength=32)).tolist()
        found.append(total.value)
    assert found[0] == found[1] == found[2]


def test_counters_of_drawn_rows_are_copied():
    found = []
    for threads in (1, 2):
        A, T = strads.dvector.zeros(50_000), strads.dvector.zeros(32, dtype="i8")
        for _ in range(3):
            stats = async_for(len(A), drawn, A, T, strads.random(5), threads=threads)
        assert stats.strategy == "independent"
        assert T.to_numpy().sum() == 3 * len(A)
        found.append((A.to_numpy().tobytes(), T.to_numpy().tobytes()))
    assert found[0] == found[1]


def smooth_and_count(k, e, x, kind, count):
    x[e[k, 0]] = 0.5 * (x[e[k, 0]] + x[e[k, 1]] + x[e[k, 2]])
    count[kind[k]] += 1


@pytest.mark.nodes
def test_copies_of_counters_beside_random_batches_are_all_summed(runtime):
    """Copies are summed at the barriers that close random batches, after the last one, too."""
    rng, n = np.random.default_rng(5), 30_000
    edges, kinds = rng.integers(0, n, (n, 3)), rng.integers(0, 4, n)
    x, count = strads.dvector(rng.random(n)), strads.dvector.zeros(4, "i8")
    for _ in range(2):
        stats = strads.async_for(n, smooth_and_count, strads.dvector(edges), x, strads.dvector(kinds), count)
    assert stats.strategy == "components"
    assert "random batches" in stats.plan.explain()
    assert "copy of its own" in stats.plan.explain()
    np.testing.assert_array_equal(count.to_numpy(), 2 * np.bincount(kinds))
