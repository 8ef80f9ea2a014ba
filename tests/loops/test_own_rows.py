"""Loops whose tasks provably keep to row k are planned without records, and only those."""

import numpy as np
import pytest

import strads
from strads import async_for
from strads.loops.on_nodes.node_tasks import NodeTasks

TASKS = 500


def smoothed(k, signal, result):
    """A filter of one row; a result is read again."""
    state = signal[k, 0]
    for t in range(signal.shape[1]):
        state = 0.9 * state + 0.1 * signal[k, t]
        result[k, t] = state
    for t in range(1, signal.shape[1]):
        result[k, t] -= result[k, t - 1]


def conditional(k, signal, result):
    """Which elements are written depends on what the loop writes."""
    row = result[k]
    for t in range(signal.shape[1]):
        if row[0] < 3:
            row[0] += 1
            row[t] = signal[k, t]


def halved(k, signal, result):
    k = k // 2
    result[k, 0] = 0.5 * result[k, 0] + signal[k, 0]


def from_before(k, signal, result):
    if k > 0:
        result[k, 0] = 0.5 * result[k - 1, 0] + signal[k, 0]


def two_parts(k, signal, result):
    result[k, 0] += signal[k, 0]
    result[0, 1] = signal[k, 1]


def in_plain_python(indices, body, arrays):
    for k in indices:
        body(k, *arrays)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names the loops that have been recorded."""
    found, reconnaissance = [], NodeTasks.reconnaissance

    def noted(tasks, *args):
        found.append(tasks.program.body.__name__)
        return reconnaissance(tasks, *args)

    monkeypatch.setattr(NodeTasks, "reconnaissance", noted)
    return found


def problem():
    return [np.random.default_rng(0).normal(size=(TASKS, 8)), np.zeros((TASKS, 8))]


@pytest.mark.parametrize("body", [smoothed, conditional])
@pytest.mark.parametrize("indices", [range(TASKS), range(3, TASKS, 2), range(TASKS - 1, -1, -1)])
@pytest.mark.parametrize("order", ["any", "sequential"])
def test_own_rows_need_no_records(body, indices, order, recorded):
    arrays = problem()
    tables = [strads.dvector(array) for array in arrays]
    for _ in range(2):
        stats = async_for(indices, body, *tables, threads=2, order=order, fastmath=False)
        in_plain_python(indices, body, arrays)
        np.testing.assert_array_equal(tables[1].to_numpy(), arrays[1])
    assert stats.strategy == "independent"
    assert not recorded


@pytest.mark.parametrize("threads", [1, 2])
def test_the_plan_does_not_depend_on_the_threads(threads, recorded):
    tables = [strads.dvector(array) for array in problem()]
    stats = async_for(TASKS, smoothed, *tables, threads=threads)
    assert (stats.strategy, stats.plan.jobs) == ("independent", 64)
    assert not recorded


@pytest.mark.parametrize(
    ("body", "indices"),
    [
        (halved, range(TASKS)),
        (from_before, range(TASKS)),
        (two_parts, range(TASKS)),
        (smoothed, [3, 4, 5, 3]),
        (smoothed, range(-4, TASKS - 4)),
    ],
)
def test_other_loops_are_recorded(body, indices, recorded):
    arrays = problem()
    tables = [strads.dvector(array) for array in arrays]
    stats = async_for(indices, body, *tables, threads=2, fastmath=False, record_order=True)
    in_plain_python(stats.order, body, arrays)
    np.testing.assert_array_equal(tables[1].to_numpy(), arrays[1])
    assert recorded


def test_a_table_under_two_names_has_all_its_accesses(recorded):
    array = np.arange(TASKS, dtype=float)
    table = strads.dvector(array)

    def chained(k, x, y):
        if k > 0:
            x[k] += y[k - 1]

    async_for(TASKS, chained, table, table, threads=2, order="sequential")
    in_plain_python(range(TASKS), chained, (array, array))
    np.testing.assert_array_equal(table.to_numpy(), array)
    assert recorded


def test_rows_that_do_not_exist_are_an_error(recorded):
    signal, result = problem()
    tables = [strads.dvector(signal), strads.dvector(result[:-1])]
    with pytest.raises(strads.BodyIndexError, match=str(TASKS - 1)):
        async_for(TASKS, smoothed, *tables, threads=2)
    assert not tables[1].to_numpy().any()
    assert recorded


def test_contents_that_prove_an_index_are_followed(recorded):
    def looked_up(k, names, values, result):
        result[k] += values[names[k]]

    names, values = np.arange(TASKS)[::-1] % 10, np.arange(10.0)
    tables = [strads.dvector(names), strads.dvector(values), strads.dvector.zeros(TASKS, "f8")]
    async_for(TASKS, looked_up, *tables, threads=2)
    np.testing.assert_array_equal(tables[2].to_numpy(), values[names])
    assert not recorded
    tables[0][7] = 10
    with pytest.raises(strads.BodyIndexError, match="10"):
        async_for(TASKS, looked_up, *tables, threads=2)
    np.testing.assert_array_equal(tables[2].to_numpy(), values[names])


def reversed_parts(k, points, tours):
    """Elements of a row are chosen by what it holds, and moved until none improves: not proved, but checked."""
    tour = tours[k]
    for i in range(len(tour) - 1):
        j = i
        while j >= 0 and points[tour[j]] > points[tour[j + 1]]:
            tour[j], tour[j + 1] = tour[j + 1], tour[j]
            j -= 1


def unproved(k, sizes, values, result):
    total = 0.0
    for p in range(sizes[k]):
        total += values[k, p]
    result[k] = total


def kmers(k, reads, counts, unknown):
    code = 0
    for letter in reads[k]:
        if letter > 3:
            unknown[k] += 1
        code = (code * 4 + letter) & 0xFF
        counts[code] += 1


def test_records_of_many_accesses_to_own_rows_are_not_missed():
    rng = np.random.default_rng(0)
    points = rng.permutation(50)
    tours = np.array([rng.permutation(50)[:40] for _ in range(TASKS)])
    tables = strads.dvector(points), strads.dvector(tours)
    stats = async_for(TASKS, reversed_parts, *tables, threads=2)
    assert stats.strategy == "independent"
    np.testing.assert_array_equal(tables[1].to_numpy(), tours[np.arange(TASKS)[:, None], np.argsort(points[tours])])


def test_indices_that_are_not_proved_are_checked_beforehand():
    sizes, values = np.arange(TASKS) % 10, np.ones((TASKS, 8))
    tables = [strads.dvector(sizes), strads.dvector(values), strads.dvector.zeros(TASKS, "f8")]
    with pytest.raises(strads.BodyIndexError, match="task 9"):
        async_for(TASKS, unproved, *tables, threads=2)
    assert not tables[2].to_numpy().any()
    sizes %= 8
    tables[0] = strads.dvector(sizes)
    for _ in range(2):
        stats = async_for(TASKS, unproved, *tables, threads=2)
        assert stats.strategy == "independent"
        np.testing.assert_array_equal(tables[2].to_numpy(), sizes)


def test_counters_beside_own_rows_are_copied_without_records(recorded):
    reads = np.random.default_rng(0).integers(0, 5, (TASKS, 30))
    counts, unknown = np.zeros(256, "i8"), np.zeros(TASKS, "i4")
    tables = [strads.dvector(array) for array in (reads, counts, unknown)]
    for _ in range(2):
        stats = async_for(TASKS, kmers, *tables, threads=2)
        in_plain_python(range(TASKS), kmers, (reads, counts, unknown))
    np.testing.assert_array_equal(tables[1].to_numpy(), counts)
    np.testing.assert_array_equal(tables[2].to_numpy(), unknown)
    assert stats.strategy == "independent"
    assert "integers are only added to counts" in stats.plan.explain()
    assert not recorded


def raised(k, signal, result):
    result[k, 0] += 1
    if k == 390:
        raise ValueError("no")


def endless(k, signal, result):
    result[k, 0] += 1
    i = 0
    while i < 3:
        i += 1 if k != 390 else 0


def of_a_shape(k, signal, result):
    result[k, 0] += 1
    row = np.zeros(3)
    row[:] = result.shape


def of_a_pair(k, signal, result):
    row = result[k]
    row[0] += 1
    row[:] = divmod(row[1], 2.0)


def of_a_tuple(k, signal, result):
    result[k, 0] += 1
    result[k] = (1.0, 2.0)


@pytest.mark.few(3)
@pytest.mark.parametrize("body", [raised, endless, of_a_shape, of_a_pair, of_a_tuple])
@pytest.mark.parametrize("order", ["any", "sequential"])
def test_what_fails_for_reasons_of_its_own_changes_nothing(body, order):
    tables = [strads.dvector(array) for array in problem()]
    with pytest.raises(strads.BodyError):
        async_for(TASKS, body, *tables, threads=2, order=order)
    assert not tables[1].to_numpy().any()


def pulled_near(k, result, other, rng):
    """Draws another row of the table of which it writes row k."""
    near = result[rng.near(result)]
    other[k] = near[0]
    result[k, 0] = 0.5 * result[k, 0] + 0.5 * near[0]


@pytest.mark.parametrize("count", [1, 2])
def test_rows_drawn_near_are_not_own_ones(count):
    """Jobs own the rows that they draw from, which only records say."""
    strads.init("threads", nodes=count, threads=1)
    outcomes = []
    for options in ({}, {"mode": "python"}):
        result, other = strads.dvector(np.arange(4000.0).reshape(2000, 2)), strads.dvector.zeros(2000)
        stats = async_for(2000, pulled_near, result, other, strads.random(3), **options)
        outcomes.append((stats.strategy, stats.plan.jobs, result.to_numpy().tobytes(), other.to_numpy().tobytes()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:2] == ("independent", 64)


def scored(k, points, weights, result):
    """Which weight it is depends on the point."""
    found = 0.0
    for t in range(points.shape[1]):
        found += weights[int(points[k, t])]
    result[k] += found


@pytest.mark.parametrize("threads", [1, 2])
def test_data_that_vary_are_checked_in_the_run(threads, recorded):
    rng = np.random.default_rng(0)
    weights, expected = rng.integers(0, 9, 10).astype(float), np.zeros(TASKS)
    points, result = strads.dvector.zeros((TASKS, 8), "f8"), strads.dvector.zeros(TASKS, "f8")
    table = strads.dvector(weights)
    for call in range(4):
        points[:] = rng.uniform(-10, 10, (TASKS, 8))
        stats = async_for(TASKS, scored, points, table, result, threads=threads)
        in_plain_python(range(TASKS), scored, (points.to_numpy(), weights, expected))
        np.testing.assert_array_equal(result.to_numpy(), expected)
        assert stats.strategy == "independent"
        assert bool(recorded) == (call == 0)
        recorded.clear()
    points[TASKS // 2, 3] = 10.0
    with pytest.raises(strads.BodyIndexError, match="10"):
        async_for(TASKS, scored, points, table, result, threads=threads)
    np.testing.assert_array_equal(result.to_numpy(), expected)
    points[TASKS // 2, 3] = 9.0
    async_for(TASKS, scored, points, table, result, threads=threads)
    in_plain_python(range(TASKS), scored, (points.to_numpy(), weights, expected))
    np.testing.assert_array_equal(result.to_numpy(), expected)


def swept(k, grid, colour):
    for t in range(1 + (k + colour) % 2, grid.shape[1] - 1, 2):
        grid[k + 1, t] = 0.25 * (grid[k, t] + grid[k + 2, t] + grid[k + 1, t - 1] + grid[k + 1, t + 1])


def test_plans_for_other_scalars_are_kept(recorded):
    array = np.random.default_rng(0).normal(size=(TASKS + 2, 40))
    grid = strads.dvector(array)
    for sweep in range(8):
        stats = async_for(TASKS, swept, grid, sweep % 2, threads=2, fastmath=False, record_order=True)
        in_plain_python(stats.order, swept, (array, sweep % 2))
        np.testing.assert_array_equal(grid.to_numpy(), array)
        assert sweep < 4 or not recorded  # the second number is planned for once it returns
        recorded.clear()
    for turn in range(20):  # scalars that do not return take the place of others
        stats = async_for(TASKS, swept, grid, turn, threads=2, fastmath=False, record_order=True)
        in_plain_python(stats.order, swept, (array, turn))
    np.testing.assert_array_equal(grid.to_numpy(), array)
