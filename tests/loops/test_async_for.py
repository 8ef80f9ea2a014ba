"""Bodies of every kind, against the same loop run in plain Python."""

import math
import threading
from typing import Any

import numpy as np
import pytest

import strads
from strads import async_for
from strads.loops import kept_loops

RATING = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")], align=True)


def make_ratings(n: int, users: int, items: int, seed: int = 0) -> strads.dvector:
    rng = np.random.default_rng(seed)
    data = np.empty(n, RATING)
    data["user"] = rng.integers(0, users, n)
    data["item"] = rng.integers(0, items, n)
    data["score"] = rng.normal(size=n)
    return strads.dvector(data)


def sgd(k, ratings, W, H, lr, reg, loss):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += lr * (err * h[f] - reg * wf)
        h[f] += lr * (err * wf - reg * h[f])
    loss.add(err * err)


def test_matrix_factorization_converges_and_reports():
    ratings = make_ratings(3000, 60, 40)
    W = strads.dvector.uniform((60, 4), high=0.1, seed=0)
    H = strads.dvector.uniform((40, 4), high=0.1, seed=1)
    losses = []
    for _ in range(4):
        loss = strads.accumulator(0.0)
        stats = async_for(range(len(ratings)), sgd, ratings, W, H, 0.05, 0.01, loss)
        losses.append(loss.value)
    assert losses == sorted(losses, reverse=True)
    assert stats.tasks == 3000
    assert stats.strategy == "rotation"
    assert stats.parallelism > 2
    assert stats.reconnaissance_seconds == stats.planning_seconds == stats.compile_seconds == 0.0
    assert 0 < stats.execution_seconds <= stats.seconds
    assert "rotation" in stats.plan.explain()


def test_result_is_that_of_the_recorded_serial_order():
    ratings = make_ratings(2000, 50, 30)
    tables = [(strads.dvector.uniform((50, 4), seed=0), strads.dvector.uniform((30, 4), seed=1)) for _ in range(3)]
    loss = strads.accumulator(0.0)
    stats = async_for(range(2000), sgd, ratings, *tables[0], 0.05, 0.01, loss, threads=2, record_order=True)
    async_for(range(2000), sgd, ratings, *tables[1], 0.05, 0.01, loss, threads=1)
    sequential = stats.order[:, None]
    for k in sequential:  # one task a call: nothing is left to schedule
        async_for(k, sgd, ratings, *tables[2], 0.05, 0.01, loss, strategy="components", threads=1)
        if k[0] == sequential[200, 0]:
            break
    else:
        pytest.fail("the order is too short")
    assert np.array_equal(tables[0][0].to_numpy(), tables[1][0].to_numpy())
    assert np.array_equal(tables[0][1].to_numpy(), tables[1][1].to_numpy())
    assert sorted(stats.order) == list(range(2000))


def test_helper_functions_and_globals():
    def predict(w, h):
        total = 0.0
        for f in range(len(w)):
            total += w[f] * h[f]
        return total

    def body(k, pairs, W, out):
        i = pairs[k, 0]
        j = pairs[k, 1]
        out[k] = math.sqrt(abs(predict(W[i], W[j]))) + np.float32(offset)

    offset = 2.0
    pairs = np.random.default_rng(0).integers(0, 10, (50, 2))
    W = strads.dvector.normal((10, 3), seed=0)
    out = strads.dvector.zeros(50)
    stats = async_for(50, body, pairs, W, out)
    w = W.to_numpy()
    expected = np.sqrt(np.abs((w[pairs[:, 0]] * w[pairs[:, 1]]).sum(1))) + 2
    assert np.allclose(out.to_numpy(), expected, rtol=1e-5)
    assert stats.strategy == "independent"


def test_a_changed_global_compiles_again():
    def make(scale):
        def body(k, x):
            x[k] = scale * k

        return body

    x = strads.dvector.zeros(5)
    async_for(5, make(2.0), x)
    first = async_for(5, make(2.0), x)
    assert first.compile_seconds == 0.0
    async_for(5, make(3.0), x)
    assert x.to_list() == [0, 3, 6, 9, 12]


def test_ragged_rows_are_read_and_written():
    def body(k, docs, counts, lengths, topics):
        words = docs[k]
        topic = topics[k]
        for n in range(len(words)):
            counts[words[n]] += 1
            topic[n] = words[n] * 10 + n
        lengths[k] = len(words)

    docs = strads.dvector([[0, 1, 1], [], [2], [3, 3, 0, 1]])
    topics = strads.dvector([[0, 0, 0], [], [0], [0, 0, 0, 0]])
    counts, lengths = strads.dvector.zeros(4, "i8"), strads.dvector.zeros(4, "i8")
    stats = async_for(4, body, docs, counts, lengths, topics)
    assert counts.to_list() == [2, 3, 1, 2]
    assert lengths.to_list() == [3, 0, 1, 4]
    assert topics.to_list() == [[0, 11, 12], [], [20], [30, 31, 2, 13]]
    assert stats.tasks == 4


def test_array_expressions_on_rows():
    def body(k, pairs, W):
        i, j = pairs[k, 0], pairs[k, 1]
        W[i] += 0.5 * W[j]
        W[j, 1:] = W[i, 1:] * 2.0

    pairs = strads.dvector([[0, 1], [2, 3], [4, 5]])
    W = strads.dvector(np.arange(18, dtype="f4").reshape(6, 3))
    expected = W.to_numpy(copy=True)
    for i, j in [(0, 1), (2, 3), (4, 5)]:
        expected[i] += 0.5 * expected[j]
        expected[j, 1:] = expected[i, 1:] * 2
    async_for(3, body, pairs, W)
    assert np.array_equal(W.to_numpy(), expected)


def test_accumulators_of_both_kinds_do_not_depend_on_threads():
    def body(k, x, total, count):
        total.add(x[k])
        count.add(1)

    x = strads.dvector.normal(10_000, seed=0)
    totals = []
    for threads in (1, 2, 3):
        total, count = strads.accumulator(0.0), strads.accumulator(0)
        async_for(range(10_000), body, x, total, count, threads=threads)
        totals.append(total.value)
        assert count.value == 10_000
        assert isinstance(count.value, int)
    assert totals[0] == totals[1] == totals[2]
    assert totals[0] == pytest.approx(x.to_numpy().sum(dtype="f8"))


def test_relaxed_table_sums_the_changes_of_all_threads():
    def body(k, rows, W, totals):
        w = W[rows[k]]
        w[0] += 1
        totals[k % 7] += 1

    rows = strads.dvector(np.random.default_rng(0).integers(0, 40, 5000))
    W, totals = strads.dvector.zeros((40, 2)), strads.dvector.zeros(7, "i8")
    for _ in range(2):
        stats = async_for(5000, body, rows, W, strads.relaxed(totals))
    assert totals.to_numpy().sum() == 10_000
    assert totals.to_list() == [2 * len(range(t, 5000, 7)) for t in range(7)]
    assert W.to_numpy()[:, 0].sum() == 10_000
    assert stats.plan.lane is not None


def test_relaxed_result_depends_on_the_plan_alone():
    def body(k, x, totals):
        totals[k % 3] += totals[(k + 1) % 3] * 0.01 + x[k]

    x = strads.dvector.normal(2000, seed=0)
    results = []
    for _ in range(5):
        totals = strads.dvector.zeros(3)
        async_for(2000, body, x, strads.relaxed(totals))
        results.append(totals.to_list())
    assert all(result == results[0] for result in results)


def test_readonly_overrules_a_doubt():
    def body(k, table, out):
        out[k] = np.dot(table[k], table[k])

    table, out = strads.dvector.normal((20, 3), seed=0), strads.dvector.zeros(20)
    async_for(20, body, strads.readonly(table), out)
    assert np.allclose(out.to_numpy(), (table.to_numpy() ** 2).sum(1))


def test_one_table_passed_twice_is_one_table():
    def body(k, edges, W, V):
        W[edges[k, 0]] += 1.0
        V[edges[k, 1]] += 1.0

    rng = np.random.default_rng(0)
    edges = strads.dvector(rng.integers(0, 30, (20_000, 2)))
    degree = strads.dvector.zeros(30)
    stats = async_for(range(20_000), body, edges, degree, degree)
    assert np.array_equal(degree.to_numpy(), np.bincount(edges.to_numpy().ravel(), minlength=30))
    assert stats.strategy != "independent"


@pytest.mark.parametrize("indices", [range(5, 15), range(19, -1, -2), [3, 1, 3, 7], np.array([2, 2, 2]), 20, []])
def test_indices(indices):
    def body(k, aligned, counts, seen):
        counts[k] += 1
        seen.add(aligned[k])

    counts, seen = strads.dvector.zeros(20, "i8"), strads.accumulator(0)
    aligned = strads.dvector(np.arange(20) * 100)
    async_for(indices, body, aligned, counts, seen)
    wanted = list(range(indices)) if isinstance(indices, int) else list(indices)
    assert counts.to_list() == np.bincount(np.array(wanted, int), minlength=20).tolist()
    assert seen.value == 100 * sum(wanted)


def test_negative_indices_count_from_the_end():
    def body(k, x, y):
        y[-1 - k] = x[-2]

    x, y = strads.dvector([1.0, 2.0, 3.0]), strads.dvector.zeros(3, "f8")
    async_for(2, body, x, y)
    assert y.to_list() == [0, 2, 2]


def test_floats_take_the_tables_dtype():
    def body(k, x, scale, out):
        y = x[k] * scale + 0.1  # in double precision this would not round to float32 in between
        out[k] = y - 0.1

    x = strads.dvector.full(4, 1 / 3, "f4")
    out = strads.dvector.zeros(4, "f8")
    single = strads.dvector.zeros(4, "f4")
    async_for(4, body, x, 3.0, single)
    expected = (np.float32(1 / 3) * np.float32(3) + np.float32(0.1)) - np.float32(0.1)
    assert single[0] == pytest.approx(expected, abs=1e-7)
    async_for(4, body, strads.dvector.full(4, 1 / 3, "f8"), 3.0, out)
    assert out[0] == pytest.approx(1.0, abs=1e-15)


def test_floats_take_the_dtype_of_the_widest_field():
    def body(k, x, records, scale):
        records[k].q = records[k].q * scale + 0.9 + x[k]

    for dtype in ("f4", "f8"):
        records = strads.dvector(np.ones(4, [("p", "f4"), ("q", dtype)]))
        async_for(4, body, strads.dvector.zeros(4, "f4"), records, 0.3)
        assert records[1].q == np.dtype(dtype).type(0.3) + np.dtype(dtype).type(0.9)


def test_strategies_can_be_forced():
    def body(k, pairs, W):
        W[pairs[k, 0]] += 1.0
        W[pairs[k, 1]] += 1.0

    pairs = strads.dvector(np.random.default_rng(0).integers(0, 500, (3000, 2)))
    expected = np.bincount(pairs.to_numpy().ravel(), minlength=500)
    for strategy in ("buckets", "components", "locked"):
        W = strads.dvector.zeros(500)
        stats = async_for(3000, body, pairs, W, strategy=strategy)
        assert stats.strategy == strategy
        assert np.array_equal(W.to_numpy(), expected)
    with pytest.raises(strads.PlanError, match="independent"):
        async_for(3000, body, pairs, strads.dvector.zeros(500), strategy="independent")


def test_what_could_serve_instead_is_found_from_records_that_are_still_there():
    def body(k, t, W):
        W[t[k].row] += t[k].x

    t = np.zeros(30, [("a", "i4"), ("row", "i8"), ("x", "f8"), ("v", "f8", 2)])  # copied to where its rows are recorded
    t["row"], t["v"] = np.arange(30) % 12, 1e300
    for _ in range(3):
        with pytest.raises(strads.PlanError, match=r"Use rotation, buckets, components.* or "):
            async_for(30, body, strads.dvector(t), strads.dvector.zeros(12), strategy="independent")


def test_plans_are_kept_and_made_anew_when_they_must_be():
    def body(k, index, x, scale):
        x[index[k]] += scale

    index, x = strads.dvector([0, 1, 2, 2]), strads.dvector.zeros(3)
    assert async_for(4, body, index, x, 1.0).reconnaissance_seconds > 0
    assert async_for(4, body, index, x, 2.0).reconnaissance_seconds == 0  # the scale chooses no row
    assert async_for(3, body, index, x, 2.0).reconnaissance_seconds > 0  # other indices
    index[0] = 2
    assert async_for(4, body, index, x, 2.0).reconnaissance_seconds > 0  # other rows
    async_for(4, body, index, x, 2.0)  # the same once more: now they are worth a look ahead
    assert async_for(4, body, index, x, 2.0).reconnaissance_seconds == 0
    assert async_for(4, body, index, strads.dvector.zeros(3), 2.0).reconnaissance_seconds > 0  # other table
    assert x.to_list() == [1 + 2 + 2, 1 + 2 + 2 + 2 + 2 + 2, 2 + 4 + 2 + 6 + 6 + 6]


def test_scalars_that_choose_rows_invalidate_the_plan():
    def body(k, x, shift):
        x[k + shift] += 1.0

    x = strads.dvector.zeros(6)
    async_for(3, body, x, 0)
    async_for(3, body, x, 3)
    assert x.to_list() == [1] * 6
    with pytest.raises(strads.BodyIndexError):
        async_for(3, body, x, 4)
    assert x.to_list() == [1] * 6


def test_aligned_data_are_copied_again_when_they_change():
    def body(k, index, value, x):
        x[index[k]] += value[k]

    index, value = strads.dvector([0, 1, 0, 1]), strads.dvector([1.0, 2.0, 3.0, 4.0])
    x = strads.dvector.zeros(2, "f8")
    async_for(4, body, index, value, x)
    value[2] = 30.0
    async_for(4, body, index, value, x)
    assert x.to_list() == [4 + 31, 6 + 6]


def test_tables_are_freed_with_their_last_reference():
    import gc
    import weakref

    def body(k, index, x):
        x[index[k]] += 1.0

    index, x = strads.dvector(np.zeros(10, int)), strads.dvector.zeros(3)
    async_for(10, body, index, x)
    storage = weakref.ref(index)
    del index
    gc.collect()
    assert storage() is None


def test_exceptions_of_the_body():
    def body(k, x):
        if k == 2:
            raise ValueError("bad task")
        x[k] = 1.0

    with pytest.raises(strads.BodyError, match="bad task"):
        async_for(4, body, strads.dvector.zeros(4))


def test_rows_written_only_sometimes_are_locked_in_any_case():
    def body(k, rows, beta, limit):
        j = rows[k]
        if beta[j] < limit:
            beta[j] += 1.0

    rows = strads.dvector(np.random.default_rng(0).integers(0, 20, 2000))
    beta = strads.dvector.zeros(20)
    for _ in range(3):  # in the later calls no row is below the limit
        stats = async_for(2000, body, rows, beta, 30.0)
    assert beta.to_list() == [30.0] * 20
    assert stats.reconnaissance_seconds == 0
    assert stats.strategy == "rotation"


def test_an_index_error_of_the_body_itself_is_told_as_such():
    def body(k, x):
        if x[k] > 0:
            raise IndexError("mine")
        x[k] = 1.0

    x = strads.dvector.zeros(4)
    async_for(4, body, x)
    with pytest.raises(strads.BodyError, match="mine"):
        async_for(4, body, x)


def test_threads_with_more_loops_than_are_kept(monkeypatch):
    """What one thread is about to run is not dropped because another prepares its own."""
    import sys
    import threading

    def body(k, rows, x):
        x[rows[k]] += 1.0

    rows = [strads.dvector(np.arange(50) % (n + 1)) for n in range(24)]
    tables = [strads.dvector.zeros(n + 1) for n in range(24)]
    failed = []

    def call(first: int) -> None:
        try:
            for turn in range(60):
                n = 6 * first + turn % 6
                async_for(50, body, rows[n], tables[n], threads=1)
        except BaseException as error:
            failed.append(error)

    monkeypatch.setattr(kept_loops, "_MAX_KEPT", 1)
    threads = [threading.Thread(target=call, args=(first,)) for first in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed
    for n, table in enumerate(tables):
        assert table.to_list() == (10.0 * np.bincount(np.arange(50) % (n + 1))).tolist()


def test_loops_of_several_threads_on_one_table_take_turns() -> None:
    def count(k: int, rows: Any, counts: Any) -> None:
        counts[rows[k]] += 1

    rows = strads.dvector(np.random.default_rng(0).integers(0, 1000, 100_000))
    counts = strads.dvector(np.zeros(1000, np.int64))

    def call() -> None:
        for _ in range(5):
            strads.async_for(len(rows), count, rows, counts)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(counts.to_numpy(), 15 * np.bincount(rows.to_numpy(), minlength=1000))


def test_the_plan_after_changed_rows_does_not_depend_on_the_threads() -> None:
    def mix(k: int, earlier: Any, x: Any) -> None:
        x[k] = (x[earlier[k]] * 3 + x[k] + k) % 1_000_003

    tasks, results = 400_000, []
    for threads in (1, 2):
        earlier, x = strads.dvector(np.maximum(np.arange(tasks) - 5000, 0)), strads.dvector(np.arange(tasks) % 1000)
        for call in range(3):
            if call == 2:
                earlier[tasks // 2] = tasks // 2 + 100  # now a task reads a row that a later one writes
            statistics = strads.async_for(tasks, mix, earlier, x, threads=threads)
        results.append((statistics.strategy, x.to_numpy(copy=True)))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_reconnaissance_with_real_numbers_sees_what_the_task_has_written() -> None:
    def chase(k: int, following: Any, x: Any) -> None:
        place = following[k]
        following[k] = (place + 1) % len(x)
        x[following[k]] += 1  # a row that the task has just chosen

    n = 300
    start = np.random.default_rng(3).integers(0, n, n)
    following, x = strads.dvector(start), strads.dvector(np.zeros(n, np.int64))
    strads.async_for(n, chase, following, x)
    np.testing.assert_array_equal(following.to_numpy(), (start + 1) % n)
    np.testing.assert_array_equal(x.to_numpy(), np.bincount((start + 1) % n, minlength=n))


def _follow(k, pairs, x, y):
    x[pairs[k, 0]] += 1.0
    y[pairs[k, 1]] += x[pairs[k, 0]]


@pytest.mark.parametrize(("groups", "most"), [(1, 2), (2, 3), (1000, 8)])
def test_a_plan_gets_no_more_threads_than_it_can_keep_busy(monkeypatch, groups, most):
    counts = []
    run = strads.cluster.ThreadTeam.run

    def counted(team, function, members=None, **options):
        counts.append(members)
        return run(team, function, members, **options)

    monkeypatch.setattr(strads.cluster.ThreadTeam, "run", counted)
    group = np.arange(200_000) % groups
    pairs = np.stack([group, group], 1).astype("i4")
    with strads.init("threads", threads=8):
        x, y = (strads.from_numpy(np.zeros(groups)) for _ in range(2))
        stats = async_for(range(len(pairs)), _follow, strads.from_numpy(pairs), x, y, strategy="components")
    members = [count for count in counts if count is not None]
    assert members
    assert max(members) <= most
    assert max(members) >= min(8, stats.parallelism)
    assert float(np.asarray(x[:]).sum()) == len(pairs)
