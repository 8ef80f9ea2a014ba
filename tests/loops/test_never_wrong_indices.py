"""Indices of all kinds are checked: no access reaches another row, another table, or memory that is nobody's."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from launching import in_its_own_process
from serial import refuse, run_or_refuse

import strads
from strads import async_for
from strads.engine.views.roles import Checking, Role
from strads.loops.argument_kinds import bind_arguments
from strads.loops.program import LoopProgram

full, zeros = strads.dvector.full, strads.dvector.zeros


def one_of(bodies):
    """The first body in one process; the others in another one, which is slow."""
    return pytest.mark.parametrize(
        "bodies", [bodies[:1], pytest.param(bodies[1:], marks=pytest.mark.slow)], ids=["one", "others"]
    )


def matrix(rows, columns):
    return strads.dvector(np.arange(rows * columns).reshape(rows, columns))


# -- the second index ----------------------------------------------------------------------------------------


def add_by_column(k, J, T):
    T[k, J[k]] += 1


def add_by_row_and_column(k, J, T):
    row = T[k]
    row[J[k]] += 1


def add_by_two_brackets(k, J, T):
    T[k][J[k]] += 1


def read_by_column(k, J, T):
    T[k, 0] = T[k - 1, J[k]]


def add_by_negative_column(k, J, T):
    T[k, -J[k] - 1] += 1


COLUMNS = [add_by_row_and_column, add_by_column, add_by_two_brackets, read_by_column, add_by_negative_column]


@one_of(COLUMNS)
@in_its_own_process(60)
def test_a_second_index_from_data(bodies):
    for body in bodies:
        columns = np.arange(100) % 4
        J, T = strads.dvector(columns), matrix(100, 4)
        assert run_or_refuse(100, body, J, T) is None
        for wrong in (4, 5, -6, 1 << 40):
            columns[50] = wrong
            refuse(strads.StradsError, 100, body, strads.dvector(columns), T)
            J[99] = wrong  # in the same table, in the last row: past the memory of T
            refuse(strads.StradsError, 100, body, J, T)


def test_negative_columns_count_from_the_end():
    J, T = strads.dvector(np.arange(100) % 4 - 4), matrix(100, 4)
    assert run_or_refuse(100, add_by_column, J, T) is None


def read_changing_column(k, X, D, out):
    X[k] += 5
    out[k] = D[k, X[k]]


def write_changing_column(k, X, D, out):
    X[k] += 5
    D[k, X[k]] = 7
    out[k] += 1


def write_changing_column_of_named_row(k, X, D, out):
    X[k] += 5
    row = D[k]
    row[X[k]] += 7
    out[k] += 1


CHANGING = [read_changing_column, write_changing_column_of_named_row, write_changing_column]


@one_of(CHANGING)
@in_its_own_process(60)
def test_a_second_index_that_the_loop_changes(bodies):
    for body in bodies:
        X, D, out = zeros(100, "i8"), matrix(100, 8), zeros(100, "i8")
        for start in (0, 1, -1, -13):
            X[:] = start
            assert run_or_refuse(100, body, X, D, out) is None
        for start in (3, -14, 1 << 40):
            X[:] = start
            refuse(strads.StradsError, 100, body, X, D, out)
            X[:] = 0
            X[99] = start
            refuse(strads.StradsError, 100, body, X, D, out)


def changing_third_index(k, X, C):
    X[k] += 1
    C[k, 1, X[k]] += 1


@pytest.mark.slow
@in_its_own_process(60)
def test_a_third_index():
    C = strads.dvector(np.arange(40 * 2 * 3).reshape(40, 2, 3))
    assert run_or_refuse(40, changing_third_index, full(40, 1, "i8"), C) is None
    refuse(strads.StradsError, 40, changing_third_index, full(40, 2, "i8"), C)


# -- slices --------------------------------------------------------------------------------------------------


def index_of_a_slice(k, J, T):
    part = T[k, :2]
    part[J[k]] += 1


def slice_with_changing_bounds(k, J, T):
    J[k] += 1
    T[k, J[k] :] += 1


def index_of_a_changing_slice(k, J, T):
    J[k] += 1
    part = T[k, : J[k]]
    part[2] += 1


def whole_slice(k, J, T):
    T[k, :] = T[J[k]] + 1


def slices_of_different_lengths(k, J, T):
    T[k, :2] = T[k, J[k] :]


SLICES = [
    slice_with_changing_bounds,
    index_of_a_slice,
    index_of_a_changing_slice,
    whole_slice,
    slices_of_different_lengths,
]


@pytest.mark.slow
@one_of(SLICES)
@in_its_own_process(120)
def test_slices_end_where_they_end(bodies):
    for body in bodies:
        for columns in (np.full(100, 1), np.arange(100) % 3, np.arange(100) % 7):
            J, T = strads.dvector(columns), matrix(100, 4)
            plain = [J.to_numpy().copy(), T.to_numpy().copy()]
            try:
                for k in range(100):  # whether a task fails does not depend on the others
                    body(k, *plain)
            except (IndexError, ValueError):
                refuse(strads.StradsError, 100, body, J, T)
            else:
                run_or_refuse(100, body, J, T)


# -- local arrays, records, constants ------------------------------------------------------------------------


def element_of_a_local_array(k, n, W):
    t = np.repeat(np.ones(1), n)
    W[k] += t[5]


def write_to_a_local_array(k, n, W):
    t = np.zeros(n)
    t[5] = 1
    W[k] += t.sum()


def element_of_a_list(k, n, W):
    t = [1.0]
    for _ in range(n - 1):
        t.append(2.0)
    W[k] += t[5]


def changing_element_of_a_local_array(k, n, W):
    t = np.zeros(n)
    W[k] += 2.0
    t[int(W[k])] = 1
    W[k] += t.sum() + 3


LOCAL_ARRAYS = [
    element_of_a_list,
    changing_element_of_a_local_array,
    element_of_a_local_array,
    write_to_a_local_array,
]


@one_of(LOCAL_ARRAYS)
@in_its_own_process(120)
def test_indices_of_local_arrays(bodies):
    for body in bodies:
        W = zeros(1000, "f8")
        assert run_or_refuse(1000, body, 10, W) is None
        refuse(strads.StradsError, 1000, body, 2, W)


def index_of_a_field(k, J, R):
    R[k].v[J[k]] += 1.0


def read_of_a_field(k, J, R):
    R[k].a = R[k - 1].v[J[k]]


@one_of([read_of_a_field, index_of_a_field])
@in_its_own_process(60)
def test_indices_of_arrays_in_records(bodies):
    for body in bodies:
        J, R = strads.dvector(np.arange(50) % 3), strads.dvector(np.zeros(50, [("a", "f8"), ("v", "f8", (3,))]))
        run_or_refuse(50, body, J, R)
        J[49] = 3
        refuse(strads.StradsError, 50, body, J, R)


TABLE = np.arange(3)


def index_of_a_constant(k, X, A, W):
    X[k] += 1
    W[k] += A[X[k]]


def index_of_a_global(k, X, A, W):
    X[k] += 1
    W[k] += TABLE[X[k]]


@in_its_own_process(60)
def test_changing_indices_of_arrays_that_are_only_read():
    for body in (index_of_a_constant, index_of_a_global):
        X, W = zeros(100, "i8"), zeros(100, "i8")
        assert run_or_refuse(100, body, X, TABLE, W) is None
        assert run_or_refuse(100, body, X, TABLE, W) is None
        refuse(strads.StradsError, 100, body, X, TABLE, W)


def in_a_ragged_row(k, J, docs, W):
    doc = docs[k]
    doc[J[k]] += 1
    W[k] += doc[0]


@in_its_own_process(60)
def test_indices_of_ragged_rows():
    docs = strads.dvector([[1, 2, 3], [4], [5, 6]], "i8")
    J, W = strads.dvector([2, 0, 1]), zeros(3, "i8")
    async_for(3, in_a_ragged_row, J, docs, W)
    assert [row.tolist() for row in docs.to_numpy()] == [[1, 2, 4], [5], [5, 7]]
    before = W.to_list()
    for wrong in ([2, 1, 1], [2, 0, 2], [3, 0, 1], [2, 0, 1 << 40]):
        with pytest.raises(strads.StradsError):
            async_for(3, in_a_ragged_row, strads.dvector(wrong), docs, W)
        assert [row.tolist() for row in docs.to_numpy()] == [[1, 2, 4], [5], [5, 7]]
        assert W.to_list() == before


# -- the loop index is an int64 everywhere -------------------------------------------------------------------


def by_square(k, W):
    W[np.square(k) % len(W)] += 1


def by_product(k, W):
    W[(k * k) % len(W)] += 1


def by_power(k, W):
    W[(k**2) % len(W)] += 1


def by_shift(k, W):
    W[(k << 16) % len(W)] += 1


@pytest.mark.few(2)
@pytest.mark.parametrize("body", [by_square, by_product, by_power, by_shift])
def test_arithmetic_on_the_loop_index_does_not_overflow(body):
    W = zeros(1009, "i8")
    async_for(70_000, body, W)
    expected = np.zeros(1009, np.int64)
    k = np.arange(70_000)
    rows = {by_shift: k << 16}.get(body, k * k) % 1009
    np.add.at(expected, rows, 1)
    assert np.array_equal(W.to_numpy(), expected)


def unused_row(k, W):
    several = [k for _ in range(3)]
    W[1] += len(several)
    other = W[k]  # noqa: F841 - the compiler drops what nobody uses, where there is a list comprehension


def unused_copy(k, W):
    several = [k for _ in range(3)]
    W[1] += len(several)
    first = W[k]
    second = first  # noqa: F841


def unused_sum(k, W):
    several = [k for _ in range(3)]
    W[1] += len(several)
    total = 1 + W[k]  # noqa: F841


@pytest.mark.few(2)
@pytest.mark.parametrize("mode", ["compiled", "python"])
@pytest.mark.parametrize("body", [unused_row, unused_copy, unused_sum])
def test_rows_that_nobody_uses(body, mode):
    W = zeros(5)
    async_for([2, 4], body, W, mode=mode)
    refuse(strads.BodyIndexError, [2, 7], body, W, mode=mode)


# -- sizes that prove an index -----------------------------------------------------------------------------------


FIELDS = np.dtype([("x", "f8", (4,)), ("m", "f8", (2, 3)), ("n", "i8")])


def row_of_field(k, data, sums):
    a = data[k]
    if sums[k] >= 0:  # under a condition that the loop changes, so that nothing is checked beforehand
        for i in range(len(a.x)):
            sums[k] += a.x[i]


def beyond_the_field(k, data, sums):
    a = data[k]
    if sums[k] >= 0:
        for i in range(5):
            sums[k] += a.x[i]


def axes_of_a_field(k, data, sums):
    a = data[k]
    if sums[k] >= 0:
        for i in range(a.m.shape[0]):
            for j in range(a.m.shape[-1]):
                a.m[i, j] += 1
                sums[k] += a.m[i, j]
        a.n = 7


def axes_in_the_wrong_order(k, data, sums):
    a = data[k]
    if sums[k] >= 0:
        for i in range(a.m.shape[1]):
            for j in range(a.m.shape[0]):
                sums[k] += a.m[i, j]


def local_grid(k, data, sums):
    a = data[k]
    if sums[k] >= 0:
        grid = np.zeros((len(a.x), a.m.shape[1]))
        for i in range(len(grid)):
            for j in range(3):
                grid[i, j] += a.x[i] + j
                sums[k] += grid[i, j]
        other = np.ones(grid.shape)
        other[3, 2] = sums[k]
        sums[k] += other[-4, -3]


def beyond_the_local_grid(k, data, sums):
    a = data[k]
    if sums[k] >= 0:
        grid = np.zeros((len(a.x), a.m.shape[1]))
        for i in range(len(grid)):
            for j in range(len(a.x)):
                grid[i, j] += 1
                sums[k] += grid[i, j]


def beyond_a_local_grid_of_another_shape(k, data, sums):
    if sums[k] >= 0:
        grid = np.zeros((2, 3))
        if sums[k] > 0:
            grid = np.zeros((3, 2))
        grid[2, 1] += 1
        sums[k] += grid[1, 2]


def row_of_two_axes(k, data, sums):
    a = data[k]
    if sums[k] >= 0:
        grid = np.zeros((3, 2))
        a.x[:] = grid[:, 0]
        sums[k] += 1


@one_of([row_of_field, axes_of_a_field, local_grid])
@in_its_own_process(120)
def test_indices_that_sizes_prove(bodies):
    for body in bodies:
        data, sums = np.zeros(50, FIELDS), zeros(50, "f8")
        data["x"] = np.arange(200).reshape(50, 4)
        assert run_or_refuse(50, body, strads.dvector(data), sums) is None


@one_of(
    [
        beyond_the_field,
        axes_in_the_wrong_order,
        beyond_the_local_grid,
        beyond_a_local_grid_of_another_shape,
        row_of_two_axes,
    ]
)
@in_its_own_process(120)
def test_indices_that_sizes_disprove(bodies):
    for body in bodies:
        sums = zeros(50, "f8")
        sums[49] = 1
        refuse(strads.StradsError, 50, body, strads.dvector(np.zeros(50, FIELDS)), sums)


# -- contents that prove an index --------------------------------------------------------------------------------


def columns_from_a_list(k, X, P, J, T):
    if X[k] >= 0:
        for p in range(P[k], P[k + 1]):
            T[k, J[p]] += 1
            X[k] += 1


def columns_from_a_field(k, X, P, R, T):
    if X[k] >= 0:
        for p in range(P[k], P[k + 1]):
            T[k, R[p].j] += R[p].n
            X[k] += 1


def lengths_from_a_list(k, X, P, J, T):
    if X[k] >= 0:
        for j in range(J[k]):
            T[k, j] += 1
        X[k] += 1


def row_of_a_ragged_list(k, X, docs, T):
    if X[k] >= 0:
        row = docs[k]
        for i in range(len(row)):
            T[k, row[i]] += 1
        X[k] += 1


def narrowed_column(k, X, P, J, T):
    if X[k] >= 0:
        T[k, np.int8(J[k])] += 1
        X[k] += 1


def negated_column(k, X, P, J, T):
    if X[k] >= 0:
        T[k, -J[k]] += 1
        X[k] += 1


def list_that_changes(k, X, P, J, T):
    if X[k] >= 0:
        T[k, J[k]] += 1
        J[k] -= 1
        X[k] += 1


def list_that_changes_by_another_name(k, X, J, K, T):
    if X[k] >= 0:
        T[k, J[k]] += 1
        K[k] -= 1
        X[k] += 1


LISTS = np.array([3, 0, 7, 7, 1, 2, 0, 5])
ENDS = np.array([0, 2, 5, 6, 8])


def tables_of(body, listed=LISTS):
    X, T = zeros(4, "i8"), zeros((4, 8), "i8")
    if body is row_of_a_ragged_list:
        return X, strads.dvector([listed[a:b].tolist() for a, b in pairwise(ENDS)]), T
    if body is columns_from_a_field:
        records = np.zeros(8, [("n", "i8"), ("j", "i4")])
        records["j"], records["n"] = listed, -5
        return X, strads.dvector(ENDS), strads.dvector(records), T
    return X, strads.dvector(ENDS), strads.dvector(listed), T


@one_of(
    [
        columns_from_a_list,
        columns_from_a_field,
        lengths_from_a_list,
        row_of_a_ragged_list,
        narrowed_column,
        negated_column,
    ]
)
@in_its_own_process(180)
def test_indices_that_contents_prove(bodies):
    for body in bodies:
        assert run_or_refuse(4, body, *tables_of(body)) is None
        assert run_or_refuse(4, body, *tables_of(body, -LISTS)) is None
        refuse(strads.BodyIndexError, 4, body, *tables_of(body, LISTS * [1, 1, 100, 1, 1, 1, 1, 1]))


@one_of([columns_from_a_list, list_that_changes])
@in_its_own_process(120)
def test_contents_that_change_prove_nothing(bodies):
    for body in bodies:
        tables = tables_of(body)
        assert run_or_refuse(4, body, *tables) is None
        J = tables[2]
        J[1] = 200
        refuse(strads.BodyIndexError, 4, body, *tables)
        J[1] = -3
        assert run_or_refuse(4, body, *tables) is None


@in_its_own_process(60)
def test_a_list_that_changes_by_another_name_proves_nothing():
    X, _, J, T = tables_of(columns_from_a_list)
    async_for(4, list_that_changes_by_another_name, X, J, J, T)
    assert J.to_list()[:4] == [2, -1, 6, 6]
    assert np.argmax(T.to_numpy(), 1).tolist() == [3, 0, 7, 7]
    J[1] = 200
    before = J.to_list()
    with pytest.raises(strads.BodyIndexError):
        async_for(4, list_that_changes_by_another_name, X, J, J, T)
    assert J.to_list() == before


def test_contents_spare_checks_as_long_as_they_prove_the_indices():
    tables = tables_of(columns_from_a_list)
    bound = replace(bind_arguments(columns_from_a_list, tables), has_values=True)
    program = LoopProgram(columns_from_a_list, bound, fastmath=True)
    assert not program.part_checks(bound, Checking.ALL)
    assert program.live_roles(bound, Checking.ALL)[2] is Role.READ
    assert program.part_checks(replace(bound, has_values=False), Checking.ALL), "on nodes, where only some rows are"
    for position, listed, least in ((2, LISTS, 8), (2, LISTS, -1), (1, ENDS, 9)):
        tables[position][4] = least
        assert bool(program.part_checks(bound, Checking.ALL)) == (position == 2)
        checked = {name for _, name in program.index_checks(bound, Checking.ALL).variables}
        assert ("p" in checked) == (position == 1)
        tables[position][4] = listed[4]
        assert not program.part_checks(bound, Checking.ALL)
