"""What the analysis says of a body: written, aligned and deciding tables, where reconnaissance is blind."""

import math

import numpy as np
import pytest

import strads
from strads.bodies.analysis import BodyAnalysis, Field, TableKind, analyse_body

VALUES = TableKind(1)
ROWS = TableKind(2)
RAGGED = TableKind(2, ragged=True)
RECORDS = TableKind(1, (Field("user"), Field("score"), Field("count"), Field("x", (3,), True)))
SCALAR = None


def facts(body, *kinds, same=None) -> BodyAnalysis:
    return analyse_body(body, kinds, same)


# -- helpers of the bodies ---------------------------------------------------------------------------------


def store(target, row, value=1.0):
    target[row] = value


def first_of(row):
    return row[0]


def recursive(v, n):
    return v if n == 0 else recursive(v, n - 1)


def pick(a, b):
    return a, b


# -- bodies ------------------------------------------------------------------------------------------------


def simple(k, A, W):
    W[A[k]] += 1.0


def aliased_row(k, W):
    w = W[k]
    v = w
    v[0] = 1.0


def aliased_in_tuple(k, A, W):
    pair = (A[k], W[k])
    _, w = pair
    w[0] += 1.0


def through_helper_tuple(k, A, W):
    a, w = pick(A[k], W[k])
    w[0] = a[0]


def keyword_helper(k, A, W):
    store(row=k, target=W, value=A[k])


def ufunc_out(k, A, W):
    np.add(A[k], 1.0, W[k])


def method_fill(k, A, W):
    W[k].fill(A[k].sum())


def slice_store(k, A, W):
    W[k, 1:] = A[k, 1:]


def view_store(k, A, W):
    W[k].reshape(1, -1)[0, 0] = A[k][0]


def inplace_row(k, A, W):
    W[k] += A[k]


def inplace_local_row(k, A, W):
    w = W[k]
    w *= 2.0
    w += A[k]


def copied_row(k, A, W):
    row = A[k].copy()
    row[0] = 1.0
    W[k] = row


def fresh_result(k, A, W):
    row = A[k] + 1.0
    row[0] = 3.0
    W[k] = row


def conditional_row(k, A, W):
    w = W[k] if k % 2 else A[k]
    w[0] = 1.0


def record_field(k, R, W):
    r = R[k]
    W[r.user] += r.score


def record_store(k, R, W):
    r = R[k]
    R[k].count = W[r.user]


def whole_array(k, A, W):
    W[k] = A.sum() + A[k]


def iterated(k, A, W):
    for value in A:
        W[k] += value


def not_the_index(k, A, W):
    W[k] = A[k] + A[k + 1]


def reassigned_index(k, A, W):
    k = k + 1
    W[k] = A[k]


def loop_of_scalar(k, A, W, rank):
    w = W[A[k]]
    for f in range(rank):
        w[f] += 1.0


def loop_of_length(k, A, W, rate):
    w = W[A[k]]
    for f in range(len(w)):
        w[f] += rate


def ragged_words(k, docs, W):
    words = docs[k]
    for n in range(len(words)):
        W[words[n]] += 1.0


def nested_function(k, A, W):
    def square(v):
        return v * v

    W[k] = square(A[k])


def recursion(k, A, W):
    W[k] = recursive(A[k], 3)


def own_values(k, A, W):
    W[int(W[k])] += A[k]


def through_local(k, A, W):
    buffer = np.zeros(2, np.int64)
    buffer[0] = int(W[k])
    W[buffer[0]] += A[k]


def conditional_row_of_values(k, A, W):
    if W[k] > 0:
        W[A[k]] += 1.0


def touched_before_branch(k, A, W):
    w = W[A[k]]
    if w[0] > 0:
        w[0] = 1.0
        W[A[k]][0] = 2.0


def write_after_read(k, A, W):
    value = W[A[k]]
    if value > 0:
        W[A[k]] = 0.0


def write_after_write(k, A, W):
    W[A[k]] += 1.0
    if W[A[k]] > 0:
        W[A[k]] = 0.0


def touched_in_the_other_branch(k, A, W):
    if k % 2:
        W[A[k]] = 1.0
    elif W[k] > 0:
        W[A[k]] = 0.0


def read_by_values(k, A, W):
    W[k] = A[int(W[k])]


def read_in_branch(k, A, W):
    if W[k] > 0:
        W[k] = A[k + 1]


def part_by_values(k, A, W):
    w = W[k]
    w[int(w[0])] = A[k][0]


def part_in_branch(k, A, W):
    w = W[k]
    if w[0] > A[k][0]:
        w[5] = 1.0


def part_in_branch_and_before(k, A, W):
    w = W[k]
    w[5] = A[k][0]
    if w[0] > 0:
        w[5] = 1.0


def part_of_another_row_in_branch(k, docs, W):
    words, others = docs[k], docs[k + 1]
    W[k] = words[3]
    if W[k] > 0:
        W[k] = others[3]


def local_by_scalar(k, A, W, count):
    buffer = np.zeros(4)
    for j in range(count):
        buffer[j] = A[k]
    W[k] = buffer.sum()


def local_of_size(k, A, W, size):
    buffer = np.zeros(size)
    buffer[3] = A[k]
    W[k] = buffer[3]


def while_of_values(k, A, W):
    w = W[k]
    while w > 1.0:
        w = w / 2.0
    W[A[k]] = w


def while_of_index(k, A, W):
    n = k
    while n > 1:
        n //= 2
    W[n] = A[k]


def range_of_values(k, A, W):
    for j in range(int(W[k])):
        W[j] += A[k]


def mathematics(k, A, W):
    W[k] = math.sqrt(np.exp(A[k])) + max(A[k], 2) + len(A) + A.shape[0] + np.float32(1)


def shape_in_branch(k, A, W):
    W[k] += A[k, 0]
    if W[k] > 0:
        W[k] += A.shape[1]


def loop_in_branch(k, A, W):
    W[k] += A[k]
    if W[k] > 0:
        for f in range(3):
            W[k] += f


def unknown_method(k, A, W):
    A[k].byteswap(True)
    W[k] = 1.0


BASE = {
    "written": {1},
    "aligned": {0},
    "deciding": set(),
    "deciding_columns": set(),
    "volatile": set(),
    "unproved_tables": set(),
    "volatile_parts": False,
    "is_certain": True,
    "reads_count_as_writes": set(),
}
VOLATILE = {"volatile": {1}, "is_certain": False}
UNSEEN_READS = {"aligned": set(), "unproved_tables": {0}, "is_certain": False}
UNSEEN_PARTS = {"volatile_parts": True, "is_certain": False}


@pytest.mark.parametrize(
    ("body", "kinds", "different"),
    [
        (simple, (VALUES, VALUES), {"deciding": {0}}),
        (aliased_row, (ROWS,), {"written": {0}, "aligned": set()}),
        (aliased_in_tuple, (ROWS, ROWS), {}),
        (through_helper_tuple, (ROWS, ROWS), {}),
        (keyword_helper, (VALUES, VALUES), {}),
        (ufunc_out, (ROWS, ROWS), {}),
        (method_fill, (ROWS, ROWS), {}),
        (slice_store, (ROWS, ROWS), {}),
        (view_store, (ROWS, ROWS), {}),
        (inplace_row, (ROWS, ROWS), {}),
        (inplace_local_row, (ROWS, ROWS), {}),
        (copied_row, (ROWS, ROWS), {}),
        (fresh_result, (ROWS, ROWS), {}),
        (conditional_row, (ROWS, ROWS), {"written": {0, 1}, "aligned": set()}),
        (record_field, (RECORDS, VALUES), {"deciding": {0}}),
        (
            record_store,
            (RECORDS, VALUES),
            {"written": {0}, "aligned": set(), "deciding_columns": {0}},
        ),
        (whole_array, (VALUES, VALUES), {"aligned": set()}),
        (iterated, (VALUES, VALUES), {"aligned": set()}),
        (not_the_index, (VALUES, VALUES), {"aligned": set()}),
        (reassigned_index, (VALUES, VALUES), {"aligned": set()}),
        (loop_of_scalar, (VALUES, ROWS, SCALAR), {"deciding": {0, 2}}),
        (loop_of_length, (VALUES, ROWS, SCALAR), {"deciding": {0}}),
        (ragged_words, (RAGGED, VALUES), {"deciding": {0}}),
        (nested_function, (VALUES, VALUES), {}),
        (recursion, (VALUES, VALUES), {}),
        (own_values, (VALUES, VALUES), VOLATILE),
        (through_local, (VALUES, VALUES), VOLATILE),
        (conditional_row_of_values, (VALUES, VALUES), VOLATILE | UNSEEN_READS | {"deciding": {0}}),
        (touched_before_branch, (VALUES, ROWS), {"deciding": {0}}),
        (write_after_read, (VALUES, VALUES), {"deciding": {0}, "reads_count_as_writes": {1}}),
        (write_after_write, (VALUES, VALUES), {"deciding": {0}}),
        (touched_in_the_other_branch, (VALUES, VALUES), VOLATILE | UNSEEN_READS | {"deciding": {0}}),
        (read_by_values, (VALUES, VALUES), UNSEEN_READS),
        (read_in_branch, (VALUES, VALUES), UNSEEN_READS | {"reads_count_as_writes": {1}}),
        (part_by_values, (ROWS, ROWS), UNSEEN_PARTS),
        (part_in_branch, (ROWS, ROWS), {"deciding": {0}, "deciding_columns": {1}}),
        (part_in_branch_and_before, (ROWS, ROWS), {"deciding_columns": {1}}),
        (
            part_of_another_row_in_branch,
            (RAGGED, VALUES),
            UNSEEN_PARTS | {"aligned": set()},
        ),
        (local_by_scalar, (VALUES, VALUES, SCALAR), {"deciding": {2}}),
        (local_of_size, (VALUES, VALUES, SCALAR), {"deciding": {2}}),
        (while_of_values, (VALUES, VALUES), {"deciding": {0}, "is_certain": False}),
        (while_of_index, (VALUES, VALUES), {}),
        (range_of_values, (VALUES, VALUES), VOLATILE | UNSEEN_READS),
        (mathematics, (VALUES, VALUES), {}),
        (shape_in_branch, (ROWS, VALUES), {}),
        (loop_in_branch, (VALUES, VALUES), {}),
        (unknown_method, (ROWS, VALUES), {"written": {0, 1}, "aligned": set()}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_facts(body, kinds, different):
    found = facts(body, *kinds)
    assert {name: getattr(found, name) for name in BASE} == BASE | different


def test_the_same_table_in_two_places_has_the_facts_of_both():
    separate = facts(simple, VALUES, VALUES)
    together = facts(simple, VALUES, VALUES, same=(0, 0))
    assert separate.written == {1}
    assert together.written == {0, 1}
    assert together.aligned == set()
    assert together.volatile  # what chooses the row is written


def test_relaxed_tables_do_not_make_a_body_volatile():
    relaxed = facts(own_values, VALUES, TableKind(1, relaxed=True))
    assert relaxed.written == {1}
    assert not relaxed.volatile
    assert relaxed.unproved_tables == {1}


def test_readonly_overrules_a_doubt_but_not_a_write():
    trusted = facts(unknown_method, TableKind(2, readonly=True), VALUES)
    assert trusted.written == {1}
    with pytest.raises(strads.ArgumentError, match=r"test_analysis\.py:\d+: the body writes 'W'"):
        facts(simple, VALUES, TableKind(1, readonly=True))


def test_volatile_line_is_that_of_the_access():
    line = facts(conditional_row_of_values, VALUES, VALUES).first_volatile_line
    assert line == (__file__, conditional_row_of_values.__code__.co_firstlineno + 2)


namespace: dict[str, object] = {}
exec(compile("\ndef bump(target, row):\n    target[row] += 1.0\n", "helpers_of_bodies.py", "exec"), namespace)
bump = namespace["bump"]


def bumps_a_row_of_values(k, W):
    bump(W, int(W[k]))


def bumps_two_rows_of_values(k, W):
    bump(W, int(W[k]))
    W[int(W[k])] = 0.0


def test_volatile_line_is_that_of_a_function_that_the_body_calls():
    assert facts(bumps_a_row_of_values, VALUES).first_volatile_line == ("helpers_of_bodies.py", 3)
    line = facts(bumps_two_rows_of_values, VALUES).first_volatile_line
    assert line == (__file__, bumps_two_rows_of_values.__code__.co_firstlineno + 2)


def adds_forever(k, W):
    while True:
        W[k] += 1.0


def adds_three_times(k, W):
    for _ in range(3):
        W[k] += 1.0


def test_what_never_ends_is_not_proved_to_end():
    assert facts(adds_forever, VALUES).proof is None
    assert facts(adds_three_times, VALUES).proof is not None


def row_sum(k, A, W):
    W[k] = A[k].sum()


def element_by_element(k, A, W):
    W[k, 0] = A[k, 1] if k > 0 else 0.0


def in_a_loop(k, A, W):
    for f in range(3):
        W[k, 0] += A[k, f]


def own_array(k, A, W):
    t = np.zeros(3)
    W[k, 0] = t[0] + A[k, 0]


@pytest.mark.parametrize(
    ("body", "kinds", "short"),
    [
        (simple, (VALUES, VALUES), True),
        (element_by_element, (ROWS, ROWS), True),
        (row_sum, (ROWS, VALUES), False),
        (in_a_loop, (ROWS, ROWS), False),
        (own_array, (ROWS, ROWS), False),
    ],
)
def test_short_tasks_have_no_loops_and_no_arrays(body, kinds, short):
    assert facts(body, *kinds).is_short == short


def lookup(k, A, B, W):
    low, high = 0, len(A)
    while low < high:
        middle = (low + high) // 2
        if A[middle] < B[k]:
            low = middle + 1
        else:
            high = middle
    W[low] += 1.0


def largest_of_row(k, A, W):
    best = 0
    for f in range(A.shape[1]):
        if A[k, f] > A[k, best]:
            best = f
    W[best] += 1.0


def row_by_row(k, A, B, W):
    W[B[k]] += 1.0
    for f in range(A.shape[1]):
        W[A[k, f]] += 1.0


@pytest.mark.parametrize(
    ("body", "kinds", "searches"),
    [
        (lookup, (VALUES, VALUES, VALUES), True),
        (largest_of_row, (ROWS, VALUES), True),
        (row_by_row, (ROWS, VALUES, VALUES), False),
        (simple, (VALUES, VALUES), False),
    ],
)
def test_loops_that_lead_to_a_row(body, kinds, searches):
    assert facts(body, *kinds).searches == searches


def converges(k, A, B, P):
    w = A[k]
    for _ in range(3):
        s = 0.0
        for f in range(len(w)):
            s += w[f] * w[f]
        if s < 0.5:
            break
        for p in range(P[k], P[k + 1]):
            w[0] -= 0.1 * B[p]


def nearest(k, X, C):
    best, least = 0, math.inf
    for j in range(len(C)):
        s = 0.0
        for f in range(len(X[k])):
            s += (X[k, f] - C[j, f]) ** 2
        if s < least:
            best, least = j, s
    C[best, 0] += 0.1


def assigned(k, X, C, T):
    best, least = 0, math.inf
    for j in range(len(C)):
        if (X[k, 0] - C[j, 0]) ** 2 < least:
            best, least = j, (X[k, 0] - C[j, 0]) ** 2
    T[best] += 1.0


@pytest.mark.parametrize(("body", "decides"), [(converges, False), (nearest, False), (assigned, True)])
def test_rounding_decides_where_the_run_relies_on_what_was_recorded(body, decides):
    """Rows that the loop's own values choose are checked in the run, however these are rounded."""
    kinds = {
        converges: [TableKind(2, floating=True), TableKind(1, floating=True), TableKind(1, integer=True)],
        nearest: [TableKind(2, floating=True), TableKind(2, floating=True)],
        assigned: [TableKind(2, floating=True), TableKind(2, floating=True), TableKind(1, floating=True)],
    }
    assert analyse_body(body, kinds[body]).rounding_decides == decides
