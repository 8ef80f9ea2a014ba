"""Loops in their own order: because it was asked for, or because nothing else serves or promises to be faster."""

import numpy as np
import pytest
from numba import njit

import strads
from strads import async_for
from strads.loops.on_nodes import node_tasks
from strads.schedule import choice, loop_sample, planner

full, zeros = strads.dvector.full, strads.dvector.zeros


def sequential(body, n, *tables):
    """The tables after the loop in plain Python."""
    copies = [t.to_numpy().copy() if isinstance(t, strads.dvector) else t for t in tables]
    for k in range(n):
        body(k, *copies)
    return copies


# -- order="sequential" --------------------------------------------------------


def stencil(k, u, width):
    if k % width != 0 and k % width != width - 1 and k >= width and k < len(u) - width:
        u[k] = 0.25 * (u[k - 1] + u[k + 1] + u[k - width] + u[k + width]) + 1


def forward(k, starts, columns, values, x):
    total = x[k]
    for p in range(starts[k], starts[k + 1]):
        total -= values[p] * x[columns[p]]
    x[k] = total


def game(k, games, rating):
    a, b = games[k, 0], games[k, 1]
    change = 0.1 * (rating[a] - rating[b])
    rating[a] -= change
    rating[b] += change


def ways(k, coins, count):
    for c in range(len(coins)):
        if coins[c] <= k:
            count[k] = (count[k] + count[k - coins[c]]) % 1009


def problem(name):
    rng = np.random.default_rng(0)
    if name == "stencil":
        return stencil, 40 * 30, (strads.dvector(rng.random(40 * 30)), 30)
    if name == "forward":
        lengths = np.minimum(rng.integers(0, 5, 400), np.arange(400))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.concatenate([rng.integers(0, max(k, 1), lengths[k]) for k in range(400)])
        tables = (starts, columns, rng.normal(0, 0.1, len(columns)), rng.random(400))
        return forward, 400, tuple(map(strads.dvector, tables))
    if name == "game":
        return game, 3000, (strads.dvector(rng.integers(0, 500, (3000, 2))), strads.dvector(rng.random(500)))
    count = np.zeros(500, np.int64)
    count[0] = 1
    return ways, 500, (strads.readonly(strads.dvector(np.array([1, 5, 10, 25]))), strads.dvector(count))


@pytest.mark.few(2)
@pytest.mark.nodes
@pytest.mark.parametrize("strategy", ["auto", "wavefront", "sequential"])
@pytest.mark.parametrize("name", ["stencil", "forward", "game", "ways"])
def test_the_result_is_that_of_the_sequential_loop(runtime, name, strategy):
    body, n, tables = problem(name)
    plain = [getattr(t, "table", t) for t in tables]  # without the hint
    for _ in range(2):
        expected = sequential(body, n, *plain)
        async_for(n, body, *tables, order="sequential", strategy=strategy, fastmath=False)
        for table, wanted in zip(plain, expected, strict=True):
            if isinstance(table, strads.dvector):
                assert np.array_equal(table.to_numpy(), wanted)


@pytest.mark.few(1)
@pytest.mark.nodes
@pytest.mark.parametrize("name", ["ways", "forward"])
def test_what_only_its_order_makes_right_runs_in_its_order(runtime, name):
    body, n, tables = problem(name)
    plain = [getattr(t, "table", t) for t in tables]
    expected = sequential(body, n, *plain)
    stats = async_for(n, body, *tables, fastmath=False)
    assert stats.strategy in ("wavefront", "sequential")
    assert "so the loop's order is kept" in stats.plan.explain()
    assert np.array_equal(plain[-1].to_numpy(), expected[-1])


def test_a_first_call_does_not_wait_for_a_plan_that_takes_longer(monkeypatch):
    def body(k, x, sources):
        x[k] = 1
        for source in sources[k]:
            x[k] += x[source] % 3

    monkeypatch.setattr(choice, "SMALLEST_PART", 512)
    n = 8000
    plain = strads.dvector(np.random.default_rng(0).integers(0, np.maximum(np.arange(n) // 2, 1)[:, None], (n, 20)))
    expected, found = sequential(body, n, zeros(n, "i8"), plain)[0], []
    x = zeros(n, "i8")
    for _ in range(3):
        stats = async_for(n, body, x, plain, threads=2, order="sequential")
        assert np.array_equal(x.to_numpy(), expected)
        found.append((stats.strategy, "this first call" in stats.plan.explain()))
    assert found == [("sequential", True), ("wavefront", False), ("wavefront", False)]


@pytest.mark.few(1)
@pytest.mark.parametrize("fastmath", [True, False])
def test_one_thread_checks_the_indices_of_a_loop_in_order_once(monkeypatch, fastmath):
    def body(k, x, sources):
        x[k] = x[sources[k]] + 1.0

    monkeypatch.setattr(choice, "SMALLEST_PART", 512)
    n = 8000
    sources = strads.dvector(np.random.default_rng(0).integers(0, np.maximum(np.arange(n) // 2, 1)))
    x = zeros(n, "f8")
    for call in range(2):
        expected = sequential(body, n, x, sources)[0]
        stats = async_for(n, body, x, sources, threads=1, order="sequential", fastmath=fastmath)
        assert np.array_equal(x.to_numpy(), expected)
        assert stats.strategy == "sequential"
        assert "one thread would follow its order with any plan" in stats.plan.reason
        assert (stats.reconnaissance_seconds > 0) == (call == 0)


@pytest.mark.parametrize("order", ["any", "sequential"])
def test_what_the_middle_of_a_loop_tells_holds_on_nodes_too(order, monkeypatch):
    def body(k, x, sources, total):
        x[k] = x[sources[k]] + 1
        total.add(x[k])

    monkeypatch.setattr(choice, "SMALLEST_PART", 512)
    n = 6000
    early = np.arange(n)
    sources = np.where((early > 2000) & (early < 4000), early - 1, early // 3)  # a chain in the middle only
    found = []
    for nodes in (1, 2):
        with strads.init("threads", nodes=nodes, threads=2):
            x, total = zeros(n, "f8"), strads.accumulator(0.0)
            stats = async_for(range(1, n), body, x, strads.dvector(sources), total, order=order)
            found.append((stats.strategy, total.value, x.to_numpy().tobytes()))
    assert found[0] == found[1]
    assert found[0][0] == "sequential"


def test_orders_that_there_are_not():
    with pytest.raises(strads.ArgumentError, match="order='random' is unknown; choose one of any, sequential"):
        async_for(3, ways, np.ones(1), zeros(3), order="random")
    with pytest.raises(strads.PlanError, match="rotation changes the order of tasks"):
        async_for(3, game, np.zeros((3, 2), int), zeros(3), order="sequential", strategy="rotation")


# -- loops that no plan serves --------------------------------------------------------


def wander(k, X, W):
    X[k] += 1
    W[X[k] % len(W)] += k


def test_a_loop_that_wanders_runs_in_its_order_from_then_on():
    X, W = strads.dvector(np.arange(1000)), zeros(777, "f8")
    for call in range(4):
        expected = sequential(wander, 1000, X, W)
        stats = async_for(1000, wander, X, W)
        if call:
            assert stats.strategy == "sequential"
            assert np.array_equal(W.to_numpy(), expected[1])
        if call > 1:
            assert stats.reconnaissance_seconds == 0
        assert np.array_equal(X.to_numpy(), expected[0])


def chase(k, following, visits):
    visits[following[k]] += 1
    if k + 1 < len(following):
        following[k + 1] = (following[k] * 7 + 3) % len(visits)


def test_rows_that_only_earlier_iterations_make_possible():
    following, visits = full(1000, 10**9, "i8"), zeros(50, "i8")
    following[0] = 4
    expected = sequential(chase, 1000, following, visits)
    stats = async_for(1000, chase, following, visits)
    assert stats.strategy == "sequential"
    assert np.array_equal(visits.to_numpy(), expected[1])


def test_rows_that_nothing_makes_possible():
    following, visits, before = full(1000, 10**9, "i8"), zeros(50, "i8"), np.full(1000, 10**9)
    with pytest.raises(strads.BodyIndexError, match=r"visits\[following\[k\]\] \+= 1\n.*index 1000000000"):
        async_for(1000, chase, following, visits)
    assert np.array_equal(following.to_numpy(), before)
    assert not visits.to_numpy().any()


def crowd(k, p, total, W, sum_):
    total[0] += 1
    if total[0] % 3 == 1:
        W[p[k]] += total[0]
    sum_.add(1)


def long_rows(k, p, W):
    W[0, k % 1000] += 1
    row = p[k] if W[0, 5] >= 0 else 0
    W[row, 7] += 1


def test_what_all_share_is_not_planned_and_still_checked():
    rng = np.random.default_rng(0)
    rows, total, W = rng.integers(0, 90, 5000), zeros(1, "i8"), zeros(90, "i8")
    p = strads.dvector(rows)
    for call in range(5):
        if call == 3:  # other rows in each call, one of which does not exist
            p[:] = rng.integers(0, 90, 5000)
            p[4320] = 99
            before, sums = (total[0], W.to_numpy().copy()), strads.accumulator(0)
            with pytest.raises(strads.BodyIndexError, match=r"W\[p\[k\]\] \+= total\[0\]"):
                async_for(5000, crowd, p, total, W, sums)
            assert (total[0], sums.value) == (before[0], 0)
            assert np.array_equal(W.to_numpy(), before[1])
        p[:] = rng.integers(0, 90, 5000)
        sums = strads.accumulator(0)
        expected = total.to_numpy().copy(), W.to_numpy().copy()
        for k in range(5000):
            expected[0][0] += 1
            if expected[0][0] % 3 == 1:
                expected[1][p[k]] += expected[0][0]
        stats = async_for(5000, crowd, p, total, W, sums)
        assert stats.strategy == "sequential"
        assert sums.value == 5000
        assert np.array_equal(total.to_numpy(), expected[0])
        assert np.array_equal(W.to_numpy(), expected[1])


def test_long_rows_are_not_copied_to_look_ahead(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the loop was looked through")

    p, W = strads.dvector(np.arange(2000) % 4), zeros((4, 1000), "i8")
    monkeypatch.setattr(node_tasks.Reconnaissance, "check", refuse)
    stats = async_for(2000, long_rows, p, W)
    assert stats.strategy == "sequential"
    assert W.to_numpy().sum() == 4000
    monkeypatch.undo()
    p[17] = 4
    with pytest.raises(strads.BodyIndexError, match=r"W\[row, 7\] \+= 1"):
        async_for(2000, long_rows, p, W)
    assert W.to_numpy().sum() == 4000


# -- sizes that tell that an index exists --------------------------------------------------------


def nearest_of_a_map(k, X, C):
    best, of_best = 0, 1e300
    for c in range(len(C)):
        distance = (X[k] - C[c]) ** 2
        if distance < of_best:
            best, of_best = c, distance
    for c in range(max(0, best - 2), min(len(C), best + 3)):
        C[c] += 0.1 * (X[k] - C[c])


@pytest.mark.filterwarnings("error")
def test_what_the_body_proves_is_not_checked():
    X, C = strads.dvector.normal(5000, seed=0), strads.dvector.normal(50, seed=1)
    for _ in range(2):
        stats = async_for(5000, nearest_of_a_map, X, C)
    assert stats.strategy == "sequential"
    assert "checked in the run: nothing, as the body proves that its indices exist" in stats.plan.explain()


def margin(k, p, E, R, loss):
    h, r = E[p[k]], R[p[k] % len(R)]
    distance = 0
    for f in range(len(h)):
        distance += h[f]
    if distance > 40:
        for f in range(len(h)):
            h[f] -= 1
            r[f] += 1
        loss.add(1)


@pytest.mark.few(1)
@pytest.mark.parametrize("wide", [8, 12, 5])
def test_rows_of_another_table_that_are_as_long_or_not(wide):
    rng = np.random.default_rng(0)
    p, E, R = (
        strads.dvector(rng.integers(0, 30, 900)),
        strads.dvector(rng.integers(0, 20, (30, 8))),
        zeros((7, wide), "i8"),
    )
    before, loss = E.to_numpy().copy(), strads.accumulator(0)
    if wide < 8:
        with pytest.raises(strads.BodyIndexError):
            async_for(900, margin, p, E, R, loss)
        assert np.array_equal(E.to_numpy(), before)
        assert not R.to_numpy().any()
        return
    async_for(900, margin, p, E, R, loss)
    assert R.to_numpy()[:, :8].sum() == before.sum() - E.to_numpy().sum() == 8 * loss.value > 0


def scaled(k, n, X, W):
    local = np.zeros(n)
    if X[k] > 0:
        for f in range(n):
            local[f] += X[k]
            W[k, f] = local[f]


def test_sizes_by_a_number_that_changes():
    X, W = full(50, 2.0), zeros((50, 4))
    async_for(50, scaled, 4, X, W)
    assert np.all(W.to_numpy() == 2)
    with pytest.raises(strads.BodyIndexError):
        async_for(50, scaled, 5, X, W)
    assert np.all(W.to_numpy() == 2)
    async_for(50, scaled, 3, X, W)


def cut(k, X, W):
    row = W[k]
    part = row[1:]
    if X[k] > 0:
        for f in range(len(row)):
            part[f] = 7.0


def turned(k, X, A):
    cube = A[k]
    flat = cube.T
    if X[k] > 0:
        for f in range(cube.shape[0]):
            flat[f, 0] = 7.0


def test_slices_and_transposes_are_not_as_long():
    X, W, A = full(5, 1.0), zeros((5, 4)), zeros((5, 6, 2))
    with pytest.raises(strads.BodyIndexError):
        async_for(5, cut, X, W)
    assert not W.to_numpy().any()
    with pytest.raises(strads.BodyIndexError):
        async_for(5, turned, X, A)
    assert not A.to_numpy().any()


def rows_of_the_identity(k, x, shape):
    square, given, named = np.eye(3), np.zeros(shape), np.zeros(shape=(3, 4))
    row, other, third = square[1], given[1], named[1]
    x[k] += 3e8
    if x[k] > 4e8:
        row[int(x[k])] += 2
        other[int(x[k])] += 2
        third[int(x[k])] += 2
    x[k] += row[0] + other[0] + third[0]


def row_of_another_length(k, W, length):
    made = np.ones(length)
    W[k, 0] += 1
    if W[k, 0] > 5:
        W[k] = made


def step_of_zero(k, x):
    x[k] += 1
    for _ in range(0, 5, int(x[k]) - 2):
        x[k] += 0.5


def item_of_a_tuple(k, x, several):
    x[k] += 1
    if x[k] > 5:
        x[k] += several[int(x[k])]


def product_of_other_lengths(k, x, W, H):
    x[k] += 1
    if x[k] > 5:
        x[k] += np.dot(W[k], H[k])


def another_shape(k, x, W):
    x[k] += 1
    if x[k] > 5:
        x[k] += W[k].reshape((2, 2))[0, 0]


WRONG_LATE = {
    "identity": (np.array([0, 0, 1, 1]), rows_of_the_identity, (np.ones(4), (3, 4))),
    "row": (np.repeat(np.arange(4), 6), row_of_another_length, (np.ones((4, 3)), 4)),
    "step": (4, step_of_zero, (np.array([5.0, 5, 1, 5]),)),
    "tuple": (np.repeat(np.arange(4), 6), item_of_a_tuple, (np.ones(4), (1, 2))),
    "product": (np.repeat(np.arange(4), 6), product_of_other_lengths, (np.zeros(4), np.ones((4, 3)), np.ones((4, 2)))),
    "reshape": (np.repeat(np.arange(4), 6), another_shape, (np.zeros(4), np.ones((4, 3)))),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", list(WRONG_LATE))
def test_what_goes_wrong_late_leaves_tables_as_they_were(name):
    indices, body, values = WRONG_LATE[name]
    tables = [strads.dvector(v) if isinstance(v, np.ndarray) else v for v in values]
    with pytest.raises(strads.StradsError):
        async_for(indices, body, *tables)
    for table, value in zip(tables, values, strict=True):
        if isinstance(table, strads.dvector):
            assert np.array_equal(table.to_numpy(), value)


# -- tasks that feed later ones, in tables that several tasks write ----------------


def edit_distance(k, a, b, distance):
    i, j = k // len(b) + 1, k % len(b) + 1
    change = distance[i - 1, j - 1] + (a[i - 1] != b[j - 1])
    distance[i, j] = min(change, distance[i - 1, j] + 1, distance[i, j - 1] + 1)


def paths_of_a_graph(k, edges, paths):
    paths[edges[k, 1]] = (paths[edges[k, 1]] + paths[edges[k, 0]]) % 1009


def sizes_of_subtrees(k, parents, size):
    node = len(size) - 1 - k
    size[parents[node]] += size[node]


def feeding_problem(name):
    rng = np.random.default_rng(1)
    if name == "edit_distance":
        a, b = rng.integers(0, 4, 90), rng.integers(0, 4, 70)
        distance = np.zeros((91, 71), np.int64)
        distance[0], distance[:, 0] = np.arange(71), np.arange(91)
        return edit_distance, 90 * 70, (a, b, distance)
    if name == "paths_of_a_graph":
        ends = np.sort(rng.integers(0, 1000, 6000))
        ends = ends[ends > 0]
        paths = np.zeros(1000, np.int64)
        paths[0] = 1
        return paths_of_a_graph, len(ends), (np.stack([rng.integers(0, ends), ends], 1), paths)
    parents = np.array([0, *(rng.integers(0, k) for k in range(1, 5000))])
    return sizes_of_subtrees, 4999, (parents, np.ones(5000, np.int64))


@pytest.mark.few(3)
@pytest.mark.nodes
@pytest.mark.parametrize("name", ["edit_distance", "paths_of_a_graph", "sizes_of_subtrees"])
@pytest.mark.parametrize("smallest_part", [64, 1 << 17])
def test_tasks_that_read_what_earlier_ones_wrote_run_in_order(runtime, name, smallest_part, monkeypatch):
    monkeypatch.setattr(choice, "SMALLEST_PART", smallest_part)
    body, n, arrays = feeding_problem(name)
    tables = tuple(map(strads.dvector, arrays))
    for _ in range(2):
        expected = sequential(body, n, *tables)
        stats = async_for(n, body, *tables)
        assert np.array_equal(tables[-1].to_numpy(), expected[-1])
        assert "order" in stats.plan.explain()


@pytest.mark.few(1)
@pytest.mark.nodes
def test_the_middle_of_a_long_loop_stands_for_all_of_it_on_nodes_as_well(runtime, monkeypatch):
    def pass_on(k, edges, paths):
        source, target = edges[k % len(edges), 0], edges[k % len(edges), 1]
        paths[target] = (2 * paths[target] + paths[source]) % 1009

    monkeypatch.setattr(choice, "SMALLEST_PART", 64)
    _, n, (edges, paths) = feeding_problem("paths_of_a_graph")
    tables = strads.dvector(edges), strads.dvector(paths)
    expected = sequential(pass_on, 3 * n, *tables)
    async_for(3 * n, pass_on, *tables)
    assert np.array_equal(tables[-1].to_numpy(), expected[-1])


def test_cells_that_feed_others_run_along_diagonals():
    size = 1500
    a, b = np.random.default_rng(0).integers(0, 4, (2, size))
    distance = np.zeros((size + 1, size + 1), np.int64)
    distance[0] = distance[:, 0] = np.arange(size + 1)
    tables = tuple(map(strads.dvector, (a, b, distance)))
    body = njit(edit_distance)

    @njit
    def loop(tasks, a, b, distance):
        for k in range(tasks):
            body(k, a, b, distance)

    loop(size * size, a, b, distance)
    for _ in range(2):
        stats = async_for(size * size, edit_distance, *tables, threads=2)
        assert np.array_equal(tables[-1].to_numpy(), distance)
    assert stats.strategy == "wavefront"
    assert planner.KEPT in stats.plan.explain()


def test_sweeps_that_read_both_ways_may_change_their_order(monkeypatch):
    def sweep(k, u):
        i, j = k // (u.shape[1] - 2) + 1, k % (u.shape[1] - 2) + 1
        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])

    monkeypatch.setattr(choice, "SMALLEST_PART", 1 << 10)
    u = strads.dvector(np.random.default_rng(0).random((82, 82)))
    assert "order is kept" not in async_for(80 * 80, sweep, u, threads=2).plan.explain()


# -- plans that would serve one call ----------------------------------------------------------


def exchange(k, source, target, low, high):
    low[source[k]] += high[target[k]] % 7
    high[target[k]] -= low[source[k]] % 5


def edges(rng, n=20000, vertices=5000):
    return rng.integers(0, vertices, n).astype("i4"), rng.integers(0, vertices, n).astype("i4")


def exchanged(stats, *tables):
    for k in stats.order.tolist():
        exchange(k, *tables)
    return tables[2:]


@pytest.mark.nodes
def test_a_loop_whose_data_change_in_each_call_is_not_planned_anew(runtime):
    rng = np.random.default_rng(0)
    tables = [*map(strads.dvector, edges(rng)), zeros(5000, "i8"), zeros(5000, "i8")]
    found = []
    for call in range(6):
        if call in (1, 2, 5):
            tables[0][:], tables[1][:] = edges(rng)
        before = [table.to_numpy(copy=True) for table in tables]
        stats = async_for(20000, exchange, *tables, record_order=True)
        found.append(stats.strategy)
        for table, expected in zip(tables[2:], exchanged(stats, *before), strict=True):
            assert np.array_equal(table.to_numpy(), expected)
        assert ("change from call to call" in stats.plan.explain()) == (call in (1, 2, 5))
    planned = found[0]
    assert planned != "sequential"
    assert found == [planned, "sequential", "sequential", planned, planned, "sequential"]


def level_out(k, source, target, level):
    level[source[k]] -= 1
    level[target[k]] += level[source[k]] % 7


@pytest.mark.nodes
def test_a_first_call_makes_no_plan_that_would_take_many_times_as_long(runtime, monkeypatch):
    monkeypatch.setattr(loop_sample, "LONG", 0)
    tables, found = (*map(strads.dvector, edges(np.random.default_rng(0))), zeros(5000, "i8")), []
    for _ in range(3):
        replay = [table.to_numpy(copy=True) for table in tables]
        stats = async_for(20000, level_out, *tables, record_order=True)
        found.append("this first call" in stats.plan.explain())
        for k in stats.order.tolist():
            level_out(k, *replay)
        assert np.array_equal(tables[2].to_numpy(), replay[2])
    assert found == [True, False, False]


def test_a_first_call_that_makes_no_plan_still_refuses_indices_out_of_range(monkeypatch):
    monkeypatch.setattr(loop_sample, "LONG", 0)
    source, target = edges(np.random.default_rng(0))
    source[19990] = 5000
    level = zeros(5000, "i8")
    with pytest.raises(strads.BodyIndexError, match="task 19990"):
        async_for(20000, level_out, strads.dvector(source), strads.dvector(target), level)
    assert not level.to_numpy().any()


@pytest.mark.nodes
def test_nor_is_a_loop_over_other_indices_in_each_call(runtime):
    rng = np.random.default_rng(1)
    tables = [*map(strads.dvector, edges(rng, 40000)), zeros(5000, "i8"), zeros(5000, "i8")]
    chosen = [np.sort(rng.choice(40000, 20000 + call, replace=False)) for call in range(4)]
    found = []
    for indices in [*chosen, chosen[-1], chosen[-1]]:
        before = [table.to_numpy(copy=True) for table in tables]
        stats = async_for(indices, exchange, *tables, record_order=True)
        found.append(stats.strategy)
        for table, expected in zip(tables[2:], exchanged(stats, *before), strict=True):
            assert np.array_equal(table.to_numpy(), expected)
    planned = found[0]
    assert planned != "sequential"
    assert found == [planned, planned, "sequential", "sequential", planned, planned]


@pytest.mark.nodes
@pytest.mark.parametrize("tasks", [0, 1])
def test_a_loop_of_no_or_one_task_may_change_its_data_in_each_call(runtime, tasks):
    tables = [strads.dvector(np.arange(5)), strads.dvector(np.arange(5)), zeros(5, "i8"), zeros(5, "i8")]
    for call in range(1, 4):
        tables[0][0] = call
        before = [table.to_numpy(copy=True) for table in tables]
        stats = async_for(tasks, exchange, *tables, record_order=True)
        for table, expected in zip(tables[2:], exchanged(stats, *before), strict=True):
            assert np.array_equal(table.to_numpy(), expected)
