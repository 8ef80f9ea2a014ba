"""Loops over meshes, whose chunks of tasks are coloured: one order, whoever plans it and however it is recorded."""

import numpy as np
import pytest

import strads
from strads.schedule.records.parts import as_sparse
from strads.schedule.records.row_ranges import ranges_of

TASKS, WIDTH = 300_000, 500


def mesh(seed=0):
    """A mesh with uneven distances: neighbours as CSR rows, and a value for each point."""
    rng = np.random.default_rng(seed)
    k = np.arange(TASKS)
    ends = [k + 1, k + WIDTH + rng.integers(-30, 31, TASKS), k + WIDTH // 2 + rng.integers(-5, 6, TASKS)]
    ends = np.concatenate([*ends, *(2 * k - end for end in ends)]) % TASKS
    order = np.argsort(np.tile(k, 6), kind="stable")
    return (np.arange(TASKS + 1) * 6, ends[order].astype("i4"), rng.normal(size=TASKS))


def relax(k, starts, ends, x):
    total = 0.0
    for p in range(starts[k], starts[k + 1]):
        total += x[ends[p]]
    x[k] = 0.5 * x[k] + total / 12


def relax_and_sum(k, starts, ends, x, moved):
    before = x[k]
    total = 0.0
    for p in range(starts[k], starts[k + 1]):
        total += x[ends[p]]
    x[k] = 0.5 * x[k] + total / 12
    moved.add(abs(x[k] - before))


def run(body, *, indices=TASKS, calls=2, **options):
    tables = [strads.dvector(table) for table in mesh()]
    moved = strads.accumulator(0.0)
    arguments = (*tables, moved) if body is relax_and_sum else tables
    for _ in range(calls):
        stats = strads.async_for(indices, body, *arguments, **options)
    return stats, tables[2].to_numpy().copy(), moved.value


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [relax, relax_and_sum])
def test_the_result_is_the_same_on_threads_and_nodes(body):
    with strads.init(threads=1):
        alone, expected, sum_alone = run(body)
    assert alone.strategy == "colouring", alone.plan.explain()
    for nodes, threads in ((1, 2), (2, 1), (3, 2)):
        with strads.init("threads", nodes=nodes, threads=threads):
            stats, found, moved = run(body)
        assert stats.strategy == "colouring"
        assert np.array_equal(found, expected), (nodes, threads)
        assert moved == sum_alone


def test_it_is_the_result_of_the_recorded_order():
    with strads.init(threads=2):
        stats, found, _ = run(relax, calls=1, record_order=True, fastmath=False)
    starts, ends, x = mesh()
    assert np.array_equal(np.sort(stats.order), np.arange(TASKS))
    for k in stats.order.tolist():
        total = 0.0
        for p in range(starts[k], starts[k + 1]):
            total += x[ends[p]]
        x[k] = 0.5 * x[k] + total / 12
    assert np.array_equal(found, x)


def pull(k, ends, weights, x):
    total = 0.0
    for p in range(ends.shape[1]):
        total += x[ends[k, p]]
    x[k] = 0.5 * x[k] + weights[k] * total


@pytest.mark.few(1)
@pytest.mark.parametrize("strategy", ["auto", "colouring"])
@pytest.mark.parametrize(
    "indices", [range(TASKS - 1, -1, -1), range(1, TASKS, 2), range(TASKS - 2, 0, -3), range(9, 90)]
)
def test_ranges_with_any_step_and_rows_of_the_loop_index(indices, strategy):
    found = []
    for nodes, threads, listed in ((1, 1, False), (1, 2, False), (1, 2, True), (2, 1, False)):
        _, ends, x = mesh()
        tables = [ends.reshape(-1, 6), np.random.default_rng(1).random(TASKS) / 12, x]
        tables = [strads.dvector(table) for table in tables]
        with strads.init("threads", nodes=nodes, threads=threads):
            chosen = np.array(indices) if listed else indices
            for _ in range(2):
                stats = strads.async_for(chosen, pull, *tables, strategy=strategy, record_order=True)
        found.append((tables[2].to_numpy().copy(), stats.order))
    for x, order in found[1:]:
        assert np.array_equal(x, found[0][0])
        assert np.array_equal(order, found[0][1])


def count_and_relax(k, starts, ends, labels, x, counts):
    total = 0.0
    for p in range(starts[k], starts[k + 1]):
        total += x[ends[p]]
    x[k] = 0.5 * x[k] + total / 12
    counts[labels[k]] += 1


@pytest.mark.slow
def test_counters_beside_a_mesh_are_copied_on_nodes_too():
    found = []
    for nodes, threads in ((1, 1), (1, 2), (2, 1), (3, 1)):
        labels, counts = np.random.default_rng(1).integers(0, 10, TASKS), np.zeros(10, np.int64)
        starts, ends, x = (strads.dvector(table) for table in mesh())
        labels, counts = strads.dvector(labels), strads.dvector(counts)
        with strads.init("threads", nodes=nodes, threads=threads):
            for _ in range(2):  # for the first call alone, planning would take too long
                stats = strads.async_for(TASKS, count_and_relax, starts, ends, labels, x, counts)
        found.append((x.to_numpy().copy(), counts.to_numpy().copy()))
        assert stats.strategy == "colouring", (nodes, threads, stats.plan.explain())
    for x, counts in found[1:]:
        assert np.array_equal(x, found[0][0])
        assert np.array_equal(counts, found[0][1])


def test_any_indices_and_requested_strategies():
    with strads.init(threads=2):
        _, whole, _ = run(relax, strategy="colouring")
        _, listed, _ = run(relax, indices=np.arange(TASKS), strategy="colouring")
    assert np.array_equal(whole, listed)
    tables = [strads.dvector(table) for table in mesh()]
    points = np.random.default_rng(0).permutation(TASKS)
    with pytest.raises(strads.PlanError, match="far apart"):
        strads.async_for(points, relax, *tables, strategy="colouring")


def test_ranges_that_reconnaissance_finds_are_those_of_its_records(monkeypatch):
    from strads.loops import reconnaissance

    seen = []
    original = reconnaissance.Reconnaissance.ranges

    def ranges(self, bounds):
        found = original(self, bounds)
        seen.append((found, ranges_of(as_sparse(self.run()), bounds)))
        return found

    monkeypatch.setattr(reconnaissance.Reconnaissance, "ranges", ranges)
    with strads.init(threads=2):
        run(relax, calls=2)
    ((found, expected),) = seen
    assert all(
        np.array_equal(one, other) for one, other in zip(vars(found).values(), vars(expected).values(), strict=True)
    )
