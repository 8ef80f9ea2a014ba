"""Compressed rows: what tasks read as A[p], p from P[k] to P[k + 1], is laid out in plan order and stays itself."""

import numpy as np
import pytest
from serial import refuse, run_or_refuse

import strads
from strads import async_for
from strads.bodies.analysis import TableKind, analyse_body

VALUES, ROWS = TableKind(1), TableKind(2)
TASKS = 400
R = np.dtype([("j", "i4"), ("x", "f4")])


def sum_of_neighbours(k, P, J, V, W):
    total = 0.0
    for p in range(P[k], P[k + 1]):
        total += V[p] * W[J[p]]
    for p in range(P[k], P[k + 1]):
        W[J[p]] += 0.5 * total - 0.1 * V[p]


def by_slices(k, P, J, V, W):
    first, last = P[k], P[k + 1]
    total = 0.0
    for x in V[first:last]:
        total += x
    for j in J[first:last]:
        W[j] = 0.5 * W[j] + total / (last - first)


def ends_of(P, k):
    return P[k], P[k + 1]


def positions_count_too(k, P, J, V, W):
    first, last = ends_of(P, k)
    for p in range(first, last):
        W[J[p]] += V[p] * p + len(V) + len(P) + P.size + V.shape[0] + (last - first)


def offsets_elsewhere(k, P, J, V, W):
    for p in range(P[k], P[k + 1]):
        W[J[p]] += V[p] + P[0] + P[k // 2]


def two_values_each(k, P, J, T, W):
    for p in range(P[k], P[k + 1]):
        t = T[p]
        W[J[p]] += t[0] * T[p, 1]


def records(k, P, D, W):
    for p in range(P[k], P[k + 1]):
        d = D[p]
        W[d.j] += d.x


def of_the_row_before(k, P, J, V, W):
    for p in range(P[k - 1], P[k]):
        W[J[p]] += V[p]


BODIES = [sum_of_neighbours, by_slices, positions_count_too, offsets_elsewhere]


def csr(seed=0, tasks=TASKS, rows=300, dtype="i8"):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, tasks)
    lengths[rng.integers(0, tasks, 20)] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)
    columns = rng.integers(0, rows, offsets[-1]).astype("i4")
    return offsets, columns, rng.normal(0, 1, offsets[-1]), rng.normal(0, 1, rows)


def test_segments_are_seen():
    facts = analyse_body(sum_of_neighbours, [VALUES] * 4)
    assert (dict(facts.segments), facts.offsets) == ({1: 0, 2: 0}, {0})
    assert dict(analyse_body(by_slices, [VALUES] * 4).segments) == {1: 0, 2: 0}
    assert dict(analyse_body(positions_count_too, [VALUES] * 4).segments) == {1: 0, 2: 0}
    facts = analyse_body(offsets_elsewhere, [VALUES] * 4)
    assert (dict(facts.segments), facts.offsets) == ({1: 0, 2: 0}, frozenset())
    assert dict(analyse_body(two_values_each, [VALUES, VALUES, ROWS, VALUES]).segments) == {1: 0, 2: 0}
    assert not analyse_body(of_the_row_before, [VALUES] * 4).segments


@pytest.mark.few(1)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("dtype", ["i4", "u4", "i8"])
@pytest.mark.parametrize("strategy", ["components", "auto"])
def test_as_in_the_order_of_the_plan(body, dtype, strategy):
    arrays = csr(dtype=dtype)
    tables = [strads.dvector(a) for a in arrays]
    options = {"threads": 2, "strategy": strategy, "fastmath": False}
    for _ in range(2):
        assert run_or_refuse(TASKS, body, *tables, **options) is None
    assert run_or_refuse(range(TASKS - 1, 3, -2), body, *tables, **options) is None
    assert run_or_refuse(range(3, TASKS, 5), body, arrays[0], *tables[1:], **options) is None
    tables[2][:] = tables[2].to_numpy()[::-1].copy()  # other values
    assert run_or_refuse(TASKS, body, *tables, **options) is None
    offsets = tables[0].to_numpy().copy()
    offsets[50:60] = offsets[50]  # other segments
    tables[0][:] = offsets
    assert run_or_refuse(TASKS, body, *tables, **options) is None
    if body is not positions_count_too:
        assert run_or_refuse(TASKS, body, *arrays[:-1], tables[-1], **options) is None


@pytest.mark.parametrize("body", [two_values_each, records], ids=lambda body: body.__name__)
def test_segments_of_rows_and_records(body):
    offsets, columns, values, x = csr()
    if body is records:
        data = np.zeros(len(columns), R)
        data["j"], data["x"] = columns, values
        tables = [offsets, data, x]
    else:
        tables = [offsets, columns, np.stack([values, values + 1], 1), x]
    tables = [strads.dvector(t) for t in tables]
    for _ in range(2):
        assert run_or_refuse(TASKS, body, *tables, threads=2, strategy="components", fastmath=False) is None


@pytest.mark.few(2)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_on_nodes(body):
    tables = [strads.dvector(a) for a in csr()]
    with strads.init("threads", nodes=2, threads=2):
        for _ in range(2):
            assert run_or_refuse(TASKS, body, *tables, fastmath=False) is None
            tables[2][:] = tables[2].to_numpy() + 1
        assert run_or_refuse(range(7, TASKS, 3), body, *tables, strategy="components", fastmath=False) is None


def test_segments_that_overlap_go_back_or_begin_before_the_table():
    rng = np.random.default_rng(3)
    columns, values = rng.integers(0, 300, 1000), rng.normal(0, 1e-4, 1000)
    for offsets in (rng.integers(0, 1000, TASKS + 1), rng.integers(-1000, 1000, TASKS + 1), np.arange(TASKS + 1)[::-1]):
        tables = [strads.dvector(a) for a in (np.ascontiguousarray(offsets), columns, values, np.zeros(300))]
        options = {"threads": 2, "strategy": "components", "fastmath": False}
        assert run_or_refuse(TASKS, sum_of_neighbours, *tables, **options) is None
        assert run_or_refuse(range(-TASKS, 0), sum_of_neighbours, *tables, **options) is None


def test_what_lies_outside_is_refused_beforehand():
    offsets, columns, values, x = csr()
    offsets[-1] += 3
    tables = [strads.dvector(a) for a in (offsets, columns, values, x)]
    refuse(strads.BodyIndexError, TASKS, sum_of_neighbours, *tables, threads=2)
    refuse(strads.BodyIndexError, TASKS + 1, sum_of_neighbours, *tables, threads=2)


def test_only_under_a_condition():
    def body(k, P, J, V, W):
        if W[k % 300] > 0:
            for p in range(P[k], P[k + 1]):
                W[J[p]] -= 0.1 * V[p]
        else:
            W[k % 300] += 0.5

    tables = [strads.dvector(a) for a in csr()]
    for _ in range(3):
        assert run_or_refuse(TASKS, body, *tables, threads=2, fastmath=False) is None
    assert async_for(TASKS, body, *tables, threads=2, fastmath=False).reconnaissance_seconds == 0


def slices(k, P, J, V, W):
    total = 0.0
    for x in V[P[k] : P[k + 1]]:
        total += x
    W[J[k]] += total + 1


def columns_of_slices(k, P, J, T, W):
    total = 0.0
    for x in T[P[k] : P[k + 1], 1]:
        total += x
    W[J[k]] += total + 1


@pytest.mark.parametrize("change", ["none", "negative", "more", "past", "falling"])
def test_slices_as_python_takes_them(change):
    rng = np.random.default_rng(5)
    offsets = np.sort(rng.integers(0, 1000, TASKS + 1))
    if change == "negative":
        offsets[7], offsets[50] = -3, -1
    elif change == "more":
        offsets[rng.integers(0, TASKS, 30)] *= -1
    elif change == "past":
        offsets[9], offsets[60] = 1200, 5000
    elif change == "falling":
        offsets[::3] = offsets[1:-1:3] + 3 if len(offsets[::3]) == len(offsets[1:-1:3]) else offsets[::3][::-1]
    columns, values, T = (
        rng.integers(0, 300, TASKS),
        rng.integers(0, 9, 1000) * 1.0,
        rng.integers(0, 9, (1000, 3)) * 1.0,
    )
    options = {"threads": 2, "strategy": "components", "fastmath": False}
    tables = [strads.dvector(a) for a in (offsets, columns, values, np.zeros(300))]
    assert run_or_refuse(TASKS, slices, *tables, **options) is None
    tables = [strads.dvector(a) for a in (offsets, columns, T, np.zeros(300))]
    assert run_or_refuse(TASKS, columns_of_slices, *tables, **options) is None


def test_a_column_of_rows_that_values_choose():
    def body(k, J, T, W):
        total, first = 0, W[J[k]] % 5
        for x in T[first : first + 3, 1]:
            total += x
        W[J[k]] = (total + W[J[k]]) % 1000

    rng = np.random.default_rng(5)
    tables = [strads.dvector(a) for a in (rng.integers(0, 300, TASKS), rng.integers(0, 99, (20, 3)), np.arange(300))]
    assert run_or_refuse(TASKS, body, *tables, threads=2, strategy="components") is None
