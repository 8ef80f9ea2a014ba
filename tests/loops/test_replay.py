"""The invariant of every plan: the parallel result has the bits of a sequential run in the recorded order.

Bodies mix values in integer arithmetic that no exchange of two tasks on a common row survives.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import strads
from strads.loops.on_nodes import planning

PRIME = 1_000_003


def mix_one(k, first, X):
    i = first[k]
    X[i] = (X[i] * 31 + k) % PRIME


def mix_two(k, pairs, X, Y):
    i, j = pairs[k, 0], pairs[k, 1]
    x, y = X[i], Y[j]
    x[0], y[0] = (x[0] * 31 + y[0] + k) % PRIME, (y[0] * 17 + x[0] + k) % PRIME


def mix_three(k, triples, X, Y, Z):
    i, j, h = triples[k, 0], triples[k, 1], triples[k, 2]
    total = X[i] + Y[j] * 3 + Z[h] * 5 + k
    X[i] = (X[i] * 31 + total) % PRIME
    Y[j] = (Y[j] * 37 + total) % PRIME
    Z[h] = (Z[h] * 41 + total) % PRIME


def mix_edge(k, edges, X):
    i, j = edges[k, 0], edges[k, 1]
    total = X[i] * 7 + X[j] * 11 + k
    X[i] = (X[i] * 31 + total) % PRIME
    X[j] = (X[j] * 37 + total) % PRIME


def mix_many(k, lists, X, source):
    rows = lists[k]
    total = k + source[k % len(source)]
    for n in range(len(rows)):
        total = (total * 13 + X[rows[n]]) % PRIME
    for n in range(len(rows)):
        X[rows[n]] = (X[rows[n]] * 31 + total + n) % PRIME


def replay(order, body, index, shapes):
    """The same loop in plain Python, in the given order."""
    tables = [[[0] * width for _ in range(rows)] if width else [0] * rows for rows, width in shapes]
    source = index.tolist() if isinstance(index, np.ndarray) else index

    class Pairs:
        def __getitem__(self, position):
            return source[position[0]][position[1]] if isinstance(position, tuple) else source[position]

    extra = {mix_many: [list(range(5))], slow_mix: [0, -1]}.get(body, [])
    for k in order.tolist():
        body(k, Pairs(), *tables, *extra)
    return [np.array(table) for table in tables]


def run(body, index, shapes, **options):
    """The loop in parallel; returns its statistics and tables."""
    tables = [strads.dvector.zeros((rows, width) if width else rows, "i8") for rows, width in shapes]
    data = strads.dvector(index) if isinstance(index, np.ndarray) else strads.dvector(ragged(index))
    extra = {mix_many: [strads.dvector(np.arange(5))], slow_mix: [5000, -1]}.get(body, [])
    count = len(index)
    stats = strads.async_for(range(count), body, data, *tables, *extra, threads=2, record_order=True, **options)
    return stats, [table.to_numpy() for table in tables]


def ragged(lists):
    from strads.dds import RaggedArray

    return RaggedArray.from_rows(lists, "i8")


def check(body, index, shapes, **options):
    stats, tables = run(body, index, shapes, **options)
    assert sorted(stats.order.tolist()) == list(range(len(index)))
    for parallel, sequential in zip(tables, replay(stats.order, body, index, shapes), strict=True):
        assert np.array_equal(parallel, sequential)
    return stats


seeds = st.integers(0, 2**32 - 1)
many = settings(max_examples=150)


@many
@given(seeds, st.integers(0, 200), st.integers(1, 40))
def test_rotation_over_one_table(seed, tasks, rows):
    first = np.random.default_rng(seed).integers(0, rows, tasks)
    check(mix_one, first, [(rows, 0)], strategy="rotation")


@many
@given(seeds, st.integers(0, 300), st.integers(1, 40), st.integers(1, 40))
def test_rotation_over_two_tables(seed, tasks, rows, columns):
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, rows, tasks), rng.integers(0, columns, tasks)], 1)
    check(mix_two, pairs, [(rows, 2), (columns, 2)], strategy="rotation")


@many
@given(seeds, st.integers(0, 300), st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
def test_rotation_over_three_tables(seed, tasks, a, b, c):
    rng = np.random.default_rng(seed)
    triples = np.stack([rng.integers(0, rows, tasks) for rows in (a, b, c)], 1)
    check(mix_three, triples, [(a, 0), (b, 0), (c, 0)], strategy="rotation")


@many
@given(seeds, st.integers(0, 300), st.integers(1, 60))
def test_buckets(seed, tasks, rows):
    rng = np.random.default_rng(seed)
    edges = np.minimum(rng.geometric(0.08, (tasks, 2)) - 1, rows - 1)  # some rows are hubs
    check(mix_edge, edges, [(rows, 0)], strategy="buckets")


@many
@given(seeds, st.integers(0, 120), st.integers(1, 300), st.integers(0, 5))
@example(seed=0, tasks=50, rows=1, longest=3)
def test_components(seed, tasks, rows, longest):
    check(mix_many, random_lists(seed, tasks, rows, longest), [(rows, 0)], strategy="components")


@many
@given(seeds, st.integers(0, 120), st.integers(1, 30), st.integers(0, 5))
def test_locked(seed, tasks, rows, longest):
    check(mix_many, random_lists(seed, tasks, rows, longest), [(rows, 0)], strategy="locked")


@many
@given(seeds, st.integers(0, 120), st.integers(1, 300), st.integers(0, 5))
def test_automatic_choice(seed, tasks, rows, longest):
    check(mix_many, random_lists(seed, tasks, rows, longest), [(rows, 0)])


@settings(max_examples=100)
@given(seeds, st.integers(0, 500))
def test_independent(seed, tasks):
    rows = np.random.default_rng(seed).permutation(max(tasks, 1))[:tasks]
    check(mix_one, rows, [(max(tasks, 1), 0)], strategy="independent")


def random_lists(seed, tasks, rows, longest):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, rows, rng.integers(0, longest + 1)).tolist() for _ in range(tasks)]


@settings(max_examples=50)
@given(seeds, st.integers(1, 300), st.integers(1, 40), st.integers(1, 40))
def test_plan_alone_decides(seed, tasks, rows, columns):
    """Any number of threads, any timing: the same bits."""
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, rows, tasks), rng.integers(0, columns, tasks)], 1)
    results = []
    for threads in (1, 2, 3):
        X, Y = strads.dvector.zeros((rows, 2), "i8"), strads.dvector.zeros((columns, 2), "i8")
        strads.async_for(tasks, mix_two, strads.dvector(pairs), X, Y, threads=threads, strategy="rotation")
        results.append((X.to_numpy().tobytes(), Y.to_numpy().tobytes()))
    assert len(set(results)) == 1


def slow_mix(k, pairs, X, Y, spins, never):
    """Much time between read and write, so that a conflict does damage; the spins change no result."""
    i, j = pairs[k, 0], pairs[k, 1]
    x, y = X[i][0], Y[j][0]
    spin = k
    for _ in range(spins):
        spin = (spin * 1103515245 + 12345) % 2147483648
    if spin == never:  # the compiler cannot know that it is not
        x += 1
    X[i][0] = (x * 31 + y + k) % PRIME
    Y[j][0] = (y * 17 + x + k) % PRIME


@pytest.fixture
def hot_pairs():
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(0, 64, 5000), rng.integers(0, 64, 5000)], 1)


def test_large_loop_is_serializable(hot_pairs):
    check(slow_mix, hot_pairs, [(64, 1), (64, 1)])


def test_a_planted_conflict_is_noticed(hot_pairs, monkeypatch):
    """Without its precedence the same plan runs conflicting jobs together, and the replay differs."""
    build = planning.build_plan

    def without_precedence(*arguments, **options):
        plan = build(*arguments, **options)
        return dataclasses.replace(
            plan,
            predecessors=np.zeros_like(plan.predecessors),
            successor_offsets=np.zeros_like(plan.successor_offsets),
            successors=plan.successors[:0],
            stage=np.zeros_like(plan.stage),
            **by_row_block(plan),
        )

    monkeypatch.setattr(planning, "build_plan", without_precedence)
    with pytest.raises(AssertionError):
        check_often(slow_mix, hot_pairs, [(64, 1), (64, 1)])


def check_often(*arguments):
    """Repeat a check: a race may spare one run, hardly twenty."""
    for _ in range(20):
        check(*arguments)


def by_row_block(plan):
    """The plan's jobs in the order of their row block: those that run together share it."""
    jobs = np.argsort(np.asarray(plan.details.cells)[:, 0], kind="stable")
    pieces = [plan.order[plan.offsets[job] : plan.offsets[job + 1]] for job in jobs]
    lengths = [len(piece) for piece in pieces]
    return {"permutation": np.concatenate(pieces), "offsets": np.cumsum([0, *lengths], dtype=np.int64)}
