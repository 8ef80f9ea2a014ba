"""Tables of rows of which single elements are used: where the order counts, elements are recorded, not rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import strads
from strads.errors import BodyIndexError
from strads.schedule import choice


def sweep(k, u, f):
    width = u.shape[1] - 2
    i, j = k // width + 1, k % width + 1
    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


def distance(k, d, a, b):
    i, j = k // len(b) + 1, k % len(b) + 1
    d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))


def from_the_end(k, u, f):
    i, j = np.int32(k // u.shape[1]), np.uint8(k % u.shape[1])
    u[-1 - i, j] += u[i, -1 - np.int64(j)] + f[i, j]


def both_ways(k, u, f):
    """Writes come only in some tasks, and read what they write."""
    i, j = k // u.shape[1], k % u.shape[1]
    if f[i, j] > 0:
        u[i, j] += 1.0
    u[j % len(u), i % u.shape[1]] -= u[i, j]


def two_names(k, u, f, v):
    i, j = k // u.shape[1], k % u.shape[1]
    u[i, j] = v[(i + 3) % len(v), j] + f[i, j]


def of_rows(k, u, f):
    """Takes a row: its elements are not distinguished."""
    i, j = k // u.shape[1], k % u.shape[1]
    row = u[i]
    row[j] += f[i, j] + u[(i + 1) % len(u), j]


def in_a_loop(k, u, f):
    for j in range(u.shape[1]):
        u[k % len(u), j] += f[k % len(u), j]


def by_values(k, u, f):
    """A column that the loop decides."""
    i = k // u.shape[1]
    u[i, int(abs(u[i, 0])) % u.shape[1]] += f[i, 0]


def tables(rows: int, columns: int) -> tuple[strads.dvector, strads.dvector]:
    rng = np.random.default_rng(rows)
    return strads.dvector(rng.normal(size=(rows, columns))), strads.dvector(rng.normal(size=(rows, columns)))


def in_python(body: Callable[..., None], tasks: int, *arrays: Any) -> None:
    for k in range(tasks):
        body(k, *arrays)


@pytest.mark.few(2)
@pytest.mark.parametrize("strategy", ["auto", "wavefront", "sequential"])
@pytest.mark.parametrize("body", [sweep, from_the_end, both_ways, two_names, of_rows, in_a_loop, by_values])
def test_the_result_is_that_of_the_sequential_loop(body: Callable[..., None], strategy: str) -> None:
    u, f = tables(13, 17)
    expected, fixed = u.to_numpy().copy(), f.to_numpy().copy()
    tasks = 11 * 15 if body is sweep else 13 * 17
    arguments = (u, f, u) if body is two_names else (u, f)
    for _ in range(2):
        strads.async_for(range(tasks), body, *arguments, order="sequential", strategy=strategy, fastmath=False)
        in_python(body, tasks, expected, fixed, *[expected] * (body is two_names))
    np.testing.assert_array_equal(u.to_numpy(), expected)


def test_grids_are_no_chains() -> None:
    u, f = tables(40, 60)
    stats = strads.async_for(range(38 * 58), sweep, u, f, order="sequential", strategy="wavefront")
    assert stats.parallelism > 4
    by_row = strads.async_for(range(40 * 60), of_rows, u, f, order="sequential", strategy="wavefront")
    assert by_row.parallelism < 2


@pytest.mark.few(2)
@pytest.mark.parametrize("body", [sweep, from_the_end, both_ways, two_names, of_rows, in_a_loop, by_values])
def test_long_loops_are_planned_by_ranges_of_rows(body: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SMALLEST_PART", 128)
    u, f = tables(40, 60)
    expected, fixed = u.to_numpy().copy(), f.to_numpy().copy()
    tasks = 38 * 58 if body is sweep else 40 * 60
    arguments = (u, f, u) if body is two_names else (u, f)
    for _ in range(3):
        stats = strads.async_for(range(tasks), body, *arguments, order="sequential", threads=2, fastmath=False)
        in_python(body, tasks, expected, fixed, *[expected] * (body is two_names))
    np.testing.assert_array_equal(u.to_numpy(), expected)
    if body is sweep:
        assert stats.strategy == "wavefront"
        assert stats.plan.permutation is None


def test_a_loop_that_is_regular_in_its_middle_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(k, sources, x):
        x[k] = (x[sources[k]] + x[max(k - 60, 0)] + 1) % 1000

    monkeypatch.setattr(choice, "SMALLEST_PART", 512)
    n = 4800
    sources = np.maximum(np.arange(n) - 61, 0)
    sources[:1000] = np.random.default_rng(0).integers(0, 1 + np.arange(1000))
    expected = np.zeros(n, np.int64)
    in_python(body, n, sources, expected)
    x = strads.dvector.zeros(n, "i8")
    for _ in range(2):
        x[:] = 0.0
        strads.async_for(n, body, strads.dvector(sources), x, order="sequential", threads=2, fastmath=False)
        np.testing.assert_array_equal(x.to_numpy(), expected)


def test_a_long_alignment_runs_in_parallel_by_itself() -> None:
    rng = np.random.default_rng(0)
    n = 1500
    a, b = (strads.dvector(rng.integers(0, 4, n)) for _ in range(2))
    d = np.zeros((n + 1, n + 1), np.int32)
    d[0], d[:, 0] = np.arange(n + 1), np.arange(n + 1)
    table = strads.dvector(d.copy())
    for _ in range(2):  # for the first call alone, planning would take too long
        table[:] = d
        stats = strads.async_for(range(n * n), distance, table, a, b, order="sequential")
    assert stats.strategy == "wavefront"
    alone = strads.dvector(d.copy())
    strads.async_for(range(n * n), distance, alone, a, b, order="sequential", strategy="sequential")
    np.testing.assert_array_equal(table.to_numpy(), alone.to_numpy())
    assert 0 < table.to_numpy()[n, n] < n


@pytest.mark.parametrize("strategy", ["auto", "wavefront"])
def test_a_column_that_does_not_exist_leaves_the_table_as_it_was(strategy: str) -> None:
    def body(k, u):
        u[0, k] += 1.0

    u, _ = tables(5, 9)
    before = u.to_numpy().copy()
    with pytest.raises(BodyIndexError, match="index 9"):
        strads.async_for(range(10), body, u, order="sequential", strategy=strategy)
    np.testing.assert_array_equal(u.to_numpy(), before)


def test_sums_of_floats_have_the_bits_of_any_number_of_nodes() -> None:
    def body(k, u, f, total):
        i, j = k // u.shape[1], k % u.shape[1]
        u[i, j] += f[i, j]
        total.add(u[i, j])

    found = []
    for nodes in (1, 2):
        u, f = tables(60, 70)
        total = strads.accumulator(0.0)
        with strads.init("threads", nodes=nodes, threads=2):
            strads.async_for(range(60 * 70), body, u, f, total, order="sequential")
        found.append(total.value)
    assert found[0] == found[1]


def test_reading_an_element_does_not_write_its_row() -> None:
    def body(k, w, rows, total):
        w[k, 0] += w[rows[k], 1]

    n = 3000
    w = strads.dvector.full((n, 2), 1.0)
    rows = strads.dvector(np.zeros(n, np.int64))
    stats = strads.async_for(range(1, n), body, w, rows, 0, strategy="independent")
    assert stats.strategy == "independent"
    np.testing.assert_array_equal(w.to_numpy()[1:, 0], 2.0)


def heat(k, u, v, n):
    z, y, x = k % n, (k // n) % n, k // (n * n)
    if 0 < x < n - 1 and 0 < y < n - 1 and 0 < z < n - 1:
        v[x, y, z] = u[x, y, z] + u[x - 1, y, z] - u[x, -1, z - 1]


def in_place(k, u, v, n):
    z, y, x = k % n, (k // n) % n, k // (n * n)
    if x > 0 and y > 0 and z > 0:
        u[x, y, z] += u[x - 1, y, z] - u[x, y - 1, z]
        v[x, y, z] += u[x, y, z]


@pytest.mark.few(1)
@pytest.mark.parametrize("order", ["any", "sequential"])
def test_elements_of_tables_of_three_and_four_dimensions(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SMALLEST_PART", 128)
    n, rng = 12, np.random.default_rng(0)
    for body in (heat, in_place):
        u, v = (strads.dvector(rng.integers(0, 9, (n, n, n))) for _ in range(2))
        expected = u.to_numpy().copy(), v.to_numpy().copy()
        stats = strads.async_for(n**3, body, u, v, n, threads=2, record_order=True, order=order)
        for k in range(n**3) if order == "sequential" else stats.order.tolist():
            body(k, *expected, n)
        np.testing.assert_array_equal(u.to_numpy(), expected[0])
        np.testing.assert_array_equal(v.to_numpy(), expected[1])

    def four(k, t):
        t[k % 3, k % 4, k % 5, k % 2] += k

    t, plain = strads.dvector(np.zeros((3, 4, 5, 2), np.int64)), np.zeros((3, 4, 5, 2), np.int64)
    strads.async_for(600, four, t, order=order)
    in_python(four, 600, plain)
    np.testing.assert_array_equal(t.to_numpy(), plain)


@pytest.mark.parametrize("order", ["any", "sequential"])
def test_an_index_of_an_element_that_does_not_exist(order: str) -> None:
    def body(k, t):
        t[0, 1, k] += 1

    t = strads.dvector(np.zeros((2, 3, 4), np.int64))
    with pytest.raises(BodyIndexError, match="index 4"):
        strads.async_for(5, body, t, order=order)
    assert not t.to_numpy().any()


def test_long_rows_are_not_copied_for_an_element() -> None:
    def body(k, t, last):
        block = t[k % 2]
        block[0, last[0] % 3] += 1
        last[0] += 1

    t, last = strads.dvector(np.zeros((2, 300, 300), np.int64)), strads.dvector.zeros(1, "i8")
    stats = strads.async_for(20_000, body, t, last)
    assert stats.strategy == "sequential"
    assert t.to_numpy().sum() == 20_000
