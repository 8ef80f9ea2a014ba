"""Loops on nodes: the same bits as on one, for every strategy, hint and kind of table; errors and interrupts."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import strads
from strads.loops.compile_clock import CompileClock
from strads.loops.driver import run_loop
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.specs import LoopOptions
from strads.schedule import loop_sample

RATING = [("user", "i4"), ("item", "i4"), ("score", "f4")]


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


def smooth(k, edges, x, change):
    e = edges[k]
    a, b = x[e.user], x[e.item]
    for f in range(len(a)):
        before = a[f]
        a[f] += e.score * (b[f] - before)
        b[f] += e.score * (before - b[f])
        change.add(1)


def gather_scatter(k, members, x):
    rows = members[k]
    total = 0.0
    for j in range(len(rows)):
        total += x[rows[j]]
    for j in range(len(rows)):
        x[rows[j]] = 0.5 * x[rows[j]] + 0.1 * total


def weigh(k, ends, columns, values, weights, z):
    total = 0.0
    for p in range(ends[k], ends[k + 1]):
        total += values[p] * weights[columns[p]]
    z[k] += total


def own_row(k, a, z):
    z[k] = 2.0 * a[k] + z[k]


def own_ragged_row(k, docs, topics, weight):
    doc, own = docs[k], topics[k]
    for i in range(len(doc)):
        own[i] += doc[i] + weight[doc[i]]


def three_tables(k, c, x, y, z):
    t = c[k]
    s = x[t.user] + y[t.item] + z[t.user % 7]
    x[t.user] = 0.5 * s
    y[t.item] = 0.25 * s
    z[t.user % 7] += 0.125 * s


def ratings_of(tasks: int, users: int, items: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    data = np.zeros(tasks, RATING)
    data["user"] = rng.random(tasks) ** 2 * users
    data["item"] = rng.random(tasks) ** 2 * items
    data["score"] = rng.random(tasks)
    return data


def run(tasks: int, body: Callable[..., None], *arguments: object, **options: object) -> None:
    """Run a loop, with options that `async_for` does not offer."""
    runtime = strads.cluster.current()
    options |= {"threads": runtime.threads, "team": runtime.team(None)} if runtime.is_local else {}
    place = runtime.here if runtime.is_local else runtime.cluster
    run_loop(place, body, arguments, LoopIndices.of(tasks), LoopOptions(**options), record_order=False)


def factorize(epochs: int = 2, **options: object) -> list[bytes]:
    ratings = strads.dvector(ratings_of(20_000, 900, 400))
    W = strads.dvector.uniform((900, 8), high=0.1, seed=0)
    H = strads.dvector.uniform((400, 8), high=0.1, seed=1)
    losses = []
    for _ in range(epochs):
        loss = strads.accumulator(0.0)
        run(len(ratings), sgd, ratings, W, H, 0.01, 0.02, loss, **options)
        losses.append(loss.value)
    return [W.to_numpy().tobytes(), H.to_numpy().tobytes(), np.array(losses).tobytes()]


def smooth_graph(strategy: str) -> list[bytes]:
    edges = ratings_of(3000, 500, 400, seed=1)
    edges["item"] = (edges["user"] + 1 + edges["item"]) % 600
    table = strads.dvector(edges)
    x = strads.dvector.uniform((600, 3), seed=2)
    for _ in range(2):
        change = strads.accumulator(0)
        strads.async_for(len(edges), smooth, table, x, change, strategy=strategy)
    return [x.to_numpy().tobytes(), np.array(change.value).tobytes()]


def scatter(strategy: str) -> list[bytes]:
    rng = np.random.default_rng(3)
    members = strads.dvector([rng.choice(500, rng.integers(1, 5), replace=False).tolist() for _ in range(800)], "i4")
    x = strads.dvector.uniform(500, seed=2)
    for _ in range(2):
        strads.async_for(800, gather_scatter, members, x, strategy=strategy)
    return [x.to_numpy().tobytes()]


def own_rows(indices: object) -> list[bytes]:
    a, z = strads.dvector.uniform(1000, seed=3), strads.dvector.zeros(1000)
    for _ in range(2):
        strads.async_for(indices, own_row, a, z)
    return [z.to_numpy().tobytes()]


def ragged_rows() -> list[bytes]:
    rng = np.random.default_rng(4)
    docs = strads.dvector([rng.integers(0, 50, rng.integers(0, 9)).tolist() for _ in range(300)], "i4")
    topics = strads.dvector([[0] * len(doc) for doc in docs], "i4")
    weight = strads.dvector(np.arange(50, dtype="i4"))
    for _ in range(2):
        strads.async_for(300, own_ragged_row, docs, topics, weight)
    return [np.concatenate(topics.to_numpy()).tobytes()]


def sparse_rows(smallest: int) -> list[bytes]:
    """Sums are vectorized in another way where indices may be negative."""
    rng = np.random.default_rng(6)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 60, 300))])
    values, weights = rng.normal(size=ends[-1]), rng.normal(size=500)
    columns = rng.integers(smallest, 500, ends[-1])
    tables, z = list(map(strads.dvector, (ends, columns, values, weights))), strads.dvector.zeros(300)
    for _ in range(2):
        strads.async_for(300, weigh, *tables, z)
    return [z.to_numpy().tobytes()]


def three() -> list[bytes]:
    table = strads.dvector(ratings_of(2000, 90, 80, seed=5))
    tables = [strads.dvector.uniform(rows, seed=rows, dtype="f8") for rows in (90, 80, 7)]
    for _ in range(2):
        strads.async_for(2000, three_tables, table, *tables, strategy="rotation")
    return [x.to_numpy().tobytes() for x in tables]


def wander(k, e, f, x):
    i, j = e[k], f[k]
    x[i] = (x[i] * 3 + x[j] + k) % 1000003
    x[j] = (x[j] * 5 + 1) % 1000003
    e[k] = (i + 1) % len(x)


def leave_the_recorded_rows() -> list[bytes]:
    rng = np.random.default_rng(0)
    e, f = (strads.dvector(rng.integers(0, 300, 2000)) for _ in range(2))
    x = strads.dvector(np.arange(300))
    strategies = [strads.async_for(2000, wander, e, f, x).strategy for _ in range(3)]
    assert strategies[1:] == ["sequential", "sequential"]
    return [e.to_numpy().tobytes(), x.to_numpy().tobytes()]


LOOPS = {
    "rotation": factorize,
    "rotation, fifo": lambda: factorize(job_order="fifo"),
    "rotation of three tables": three,
    "buckets": lambda: smooth_graph("buckets"),
    "components": lambda: smooth_graph("components"),
    "automatic": lambda: smooth_graph("auto"),
    "components, ragged": lambda: scatter("components"),
    "buckets, ragged": lambda: scatter("buckets"),
    "independent": lambda: own_rows(1000),
    "independent, backwards": lambda: own_rows(range(999, -1, -1)),
    "independent, negative": lambda: own_rows(range(-1000, 0)),
    "independent, array": lambda: own_rows(np.random.default_rng(0).permutation(1000)),
    "independent, ragged": ragged_rows,
    "independent, sparse": lambda: sparse_rows(0),
    "independent, sparse, from both ends": lambda: sparse_rows(-500),
    "one job after tasks left their rows": leave_the_recorded_rows,
}


@pytest.fixture(scope="module")
def on_one_machine(request: pytest.FixtureRequest) -> dict[str, list[bytes]]:
    """Results, on one thread of one process, of the loops that this run has tests of."""
    here = [item for item in request.session.items if item.getparent(pytest.Module) is request.node]
    needed = {"rotation"}.union(*(item.callspec.params.values() for item in here if hasattr(item, "callspec")))
    with strads.init("threads", threads=1):
        return {name: loop() for name, loop in LOOPS.items() if name in needed}


@pytest.mark.few(4)
@pytest.mark.nodes
@pytest.mark.parametrize("name", LOOPS)
def test_the_same_bits_on_any_number_of_nodes(on_one_machine, runtime, name):
    assert LOOPS[name]() == on_one_machine[name]


@pytest.mark.nodes
def test_barriers_after_every_step_change_nothing_but_the_sums_order(on_one_machine, runtime):
    found, expected = factorize(micro_sync=True), on_one_machine["rotation"]
    assert found[:2] == expected[:2]
    np.testing.assert_allclose(np.frombuffer(found[2]), np.frombuffer(expected[2]), rtol=1e-12)


@pytest.mark.nodes
def test_two_threads_on_each_node(on_one_machine, request, nodes):
    backend = request.config.getoption("--backend")
    with strads.init(backend, nodes=nodes, threads=2, timeout=60):
        assert factorize() == on_one_machine["rotation"]


def count_and_scale(k, a, totals, z):
    totals[k % 5] += a[k]
    z[k] = totals[0]


@pytest.mark.nodes
def test_relaxed_tables_are_summed_over_nodes(runtime):
    a = strads.dvector(np.arange(1000, dtype="f8"))
    totals, z = strads.dvector.zeros(5, "f8"), strads.dvector.zeros(1000, "f8")
    for _ in range(3):
        strads.async_for(1000, count_and_scale, a, strads.relaxed(totals), z)
    np.testing.assert_array_equal(totals.to_numpy(), 3 * np.arange(1000.0).reshape(-1, 5).sum(0))


@pytest.mark.nodes
def test_writes_between_loops_are_seen(runtime):
    a, z = strads.dvector(np.arange(100.0)), strads.dvector.zeros(100, "f8")
    strads.async_for(100, own_row, a, z)
    a[3] = 50.0
    z[7] = -1.0
    strads.async_for(100, own_row, a, z)
    expected = 4.0 * np.arange(100)
    expected[3], expected[7] = 6.0 + 100.0, -1.0 + 14.0
    np.testing.assert_array_equal(z.to_numpy(), expected)


@pytest.mark.nodes
def test_what_nodes_did_is_told(runtime, nodes):
    ratings = strads.dvector(ratings_of(20_000, 900, 400))
    W, H = strads.dvector.uniform((900, 8), seed=0), strads.dvector.uniform((400, 8), seed=1)
    for _ in range(2):
        stats = strads.async_for(20_000, sgd, ratings, W, H, 0.01, 0.02, strads.accumulator(0.0))
    if runtime.is_local:
        return
    assert [node.rank for node in stats.nodes] == list(range(nodes))
    assert sum(node.tasks for node in stats.nodes) == stats.tasks == 20_000
    for node in stats.nodes:
        assert node.compute_seconds > 0
        if nodes > 1:
            assert node.bytes_sent <= 1.1 * H.nbytes  # the smaller table rotates, once around the ring
            assert node.messages_sent > 0


def out_of_range(k, a, x):
    x[a[k]] += 1.0


@pytest.mark.nodes
def test_an_index_out_of_range_is_found_before_anything_is_written(runtime):
    rows = np.arange(100, dtype="i4")
    rows[77] = 100
    a, x = strads.dvector(rows), strads.dvector.zeros(100)
    with pytest.raises(strads.BodyIndexError, match=r"100.*\n.*x\[a\[k\]\]|index 100"):
        strads.async_for(100, out_of_range, a, x)
    assert not x.to_numpy().any()


def chase(k, p, x):
    i = p[k]
    x[i] += 1.0
    x[i + (1 if x[i] > 1.0 else 0)] += 0.5


@pytest.mark.nodes
def test_a_changed_access_pattern_is_undone_on_all_nodes(runtime):
    p = strads.dvector(np.repeat(np.arange(50, dtype="i4"), 2))
    x = strads.dvector.zeros(60, "f8")
    with pytest.raises(strads.AccessPatternError):
        strads.async_for(100, chase, p, x, strategy="components")
    assert not x.to_numpy().any()


def find_and_pass_on(k, y, x):
    i = y[k]
    x[i] += k
    if k + 1 < len(y):
        y[k + 1] = (i * 7 + 1) % len(x)


@pytest.mark.nodes
def test_rows_that_only_earlier_tasks_make_possible(runtime):
    start = np.full(2000, 10**6)
    start[0] = 3
    expected = start.copy(), np.zeros(500, int)
    for k in range(2000):
        find_and_pass_on(k, *expected)
    for mode in ("python", "compiled"):
        y, x = strads.dvector(start), strads.dvector(np.zeros(500, int))
        strads.async_for(2000, find_and_pass_on, y, x, order="sequential", mode=mode)
        np.testing.assert_array_equal(y.to_numpy(), expected[0])
        np.testing.assert_array_equal(x.to_numpy(), expected[1])
    y[:] = np.full(2000, 10**6)
    with pytest.raises(strads.BodyIndexError):
        strads.async_for(2000, find_and_pass_on, y, x, order="sequential")
    np.testing.assert_array_equal(x.to_numpy(), expected[1])
    assert y.to_numpy().min() == 10**6


def fails_late(k, ratings, W, H, flag):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    for f in range(len(w)):
        w[f] += 1.0
        h[f] += 1.0
    if flag > 0.0 and k == 19_000 and w[0] > 0.0:
        raise ValueError("task 19000")


@pytest.mark.nodes
def test_rows_come_home_after_a_failure(runtime):
    """Every row has the updates of the calls that succeeded."""
    data = ratings_of(20_000, 900, 400)
    ratings = strads.dvector(data)
    W, H = strads.dvector.zeros((900, 2)), strads.dvector.zeros((400, 2))
    strads.async_for(20_000, fails_late, ratings, W, H, 0.0)
    with pytest.raises(strads.BodyError, match="task 19000"):
        strads.async_for(20_000, fails_late, ratings, W, H, 1.0)
    np.testing.assert_array_equal(W.to_numpy()[:, 0], np.bincount(data["user"], minlength=900))
    np.testing.assert_array_equal(H.to_numpy()[:, 1], np.bincount(data["item"], minlength=400))


@pytest.mark.slow
def test_recorded_order_is_a_serial_order(request):
    with strads.init("threads", nodes=3, threads=1):
        ratings = strads.dvector(ratings_of(400, 60, 30))
        W, H = strads.dvector.uniform((60, 4), seed=0), strads.dvector.uniform((30, 4), seed=1)
        w, h = W.copy(), H.copy()
        loss = strads.accumulator(0.0)
        stats = strads.async_for(400, sgd, ratings, W, H, 0.01, 0.02, loss, record_order=True, fastmath=False)
        result = W.to_numpy(copy=True), H.to_numpy(copy=True)
    with strads.init("threads", threads=1):
        one = strads.dvector(ratings.to_numpy()[stats.order])
        for k in range(400):  # one task a loop: no freedom is left
            strads.async_for([k], sgd, one, w, h, 0.01, 0.02, loss, fastmath=False)
    np.testing.assert_array_equal(w.to_numpy(), result[0])
    np.testing.assert_array_equal(h.to_numpy(), result[1])


def copy_to(k, rows, values):
    values[rows[k]] = values[k]


@pytest.mark.nodes
def test_rows_that_are_only_read_come_from_where_they_are(runtime):
    """The same table is written by one index and read by another, and no row is both."""
    rows = strads.dvector(400 + np.random.default_rng(0).integers(0, 400, 400))
    values = strads.dvector(np.concatenate([np.arange(1.0, 401.0), np.zeros(400)]))
    expected = values.to_numpy(copy=True)
    stats = strads.async_for(400, copy_to, rows, values, record_order=True)
    for k in stats.order.tolist():
        expected[rows[k]] = expected[k]
    np.testing.assert_array_equal(values.to_numpy(), expected)


def by_own_values(k, W):
    W[int(W[1]) % 2] += W[k % 1]


@pytest.mark.nodes
def test_a_row_that_was_recorded_as_read_may_be_written_where_values_say_so(runtime):
    W = strads.dvector([1.0, 7.0])
    strads.async_for([7, 6], by_own_values, W)
    assert W.to_list() == [2.0, 8.0]


def scattered(k, places, x):
    for p in range(places.shape[1]):
        x[places[k, p]] = 0.5 * x[places[k, p]] + k


@pytest.mark.nodes
def test_a_plan_that_would_take_many_calls_is_made_nowhere(runtime, monkeypatch):
    monkeypatch.setattr(loop_sample, "TOO_MANY_CALLS", 5)
    places, start = np.random.default_rng(0).integers(0, 50_000, (270_000, 8)), np.arange(50_000.0)
    x, table = strads.dvector(start), strads.dvector(places)
    stats = [strads.async_for(len(places), scattered, table, x) for _ in range(2)][-1]
    assert stats.strategy == "sequential"
    assert "calls or more" in stats.plan.explain()
    with strads.init(nodes=1, threads=2):
        alone, table = strads.dvector(start), strads.dvector(places)
        for _ in range(2):
            strads.async_for(len(places), scattered, table, alone)
        np.testing.assert_array_equal(x.to_numpy(), alone.to_numpy())


def by_chance(k, rng, H):
    if rng.random() < 2:
        H[k, 0] = rng.integers(3)
    H[rng.integers(len(H)) % 1, 1] = 1


@pytest.mark.nodes
def test_fewer_tasks_than_jobs_under_locks(runtime):
    H = strads.dvector.zeros((1, 4), "i8")
    strads.async_for(1, by_chance, strads.random(97), H, strategy="locked")
    assert H[0, 1] == 1


def test_nodes_that_compile_at_once_do_so_in_turn_and_all_of_it_counts():
    clock, steps = CompileClock(), []

    def compile_something() -> None:
        with clock.running(), clock.running():  # a program compiles its parts
            steps.append("begin")
            time.sleep(0.02)
            steps.append("end")

    threads = [threading.Thread(target=compile_something) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert steps == ["begin", "end"] * 4
    assert clock.seconds >= 4 * 0.02
