"""Of the indices within rows and local arrays, a run checks those that may not exist, each alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import in_its_own_process
from serial import run_or_refuse

import strads
from strads.engine.views.roles import Checking
from strads.loops.argument_kinds import bind_arguments
from strads.loops.program import LoopProgram

ROWS, WIDTH = 6, 4


def from_a_row(k, J, W, x):
    """Which element of a row it is depends on what the loop writes."""
    row = W[k]
    x[k] += row[int(x[k])] + row[0]


def of_two_axes(k, J, W, x):
    x[k] += W[k, int(x[k])]


def into_a_local(k, J, W, x):
    found = np.zeros(WIDTH)
    for i in range(WIDTH):
        found[i] = W[k, i]
    found[int(x[k])] += 1.0
    x[k] += found.sum()


def of_a_local_table(k, J, W, x):
    table = np.zeros((2, WIDTH))
    place = int(x[k]) - 2, J[k]
    table[1] += 1.0
    table[place] += 2.0
    x[k] += table[-1, J[k]] + table[:, int(x[k])].sum()


def item(array, place):
    return array[place]


def by_a_helper(k, J, W, x):
    x[k] += item(W[k], int(x[k])) + item(J, k)


def set_item(array, place, value):
    array[place] = value


def by_a_helper_that_writes(k, J, W, x):
    row = np.ones(WIDTH)
    set_item(row, int(x[k]), 3.0)
    x[k] += row[0] + row[3]


def with_a_comprehension(k, J, W, x):
    row = W[k]
    x[k] += sum([row[int(x[k])] * i for i in range(3)])


def by_an_array(k, J, W, x):
    row = W[k]
    places = np.zeros(2, np.int64)
    places[1] = int(x[k])
    x[k] += row[places].sum()


def of_tuples(k, J, W, x):
    second = 1
    pair = (W[k], J[k], 2.5)
    part = W[k][: int(x[k])]
    x[k] += pair[0][int(x[k])] * pair[2] + pair[second] + part[second]


def of_shapes(k, J, W, x):
    found = np.zeros((2, 3))
    x[k] += found.shape[int(x[k]) % 2] + W[k, int(x[k])]


def by_unsigned(k, J, W, x):
    x[k] += W[k][np.uint64(int(x[k]))]


def of_a_slice(k, J, W, x):
    part = W[k][1:]
    x[k] += part[int(x[k])] + part[-1]


def augmented(k, J, W, x):
    count = np.zeros(WIDTH)
    count[int(x[k])] += 2.0
    count[int(x[k]) - 1] *= 2.0
    x[k] += count[0] + count[WIDTH - 1]


def into_a_dict(k, J, W, x):
    """The types of a dict are those of what is stored."""
    votes = {}
    for i in range(WIDTH):
        number = int(W[k, i])
        if number in votes:
            votes[number] += W[k, J[k]]
        else:
            votes[number] = 1.0
    best = 0.0
    for number, count in votes.items():
        best = max(best, number * count)
    x[k] += best + W[k, int(x[k])]


def votes_of(row):
    votes = {}
    again = votes
    for i in range(len(row)):
        again[int(row[i])] = i
    return votes


def by_a_helper_with_a_dict(k, J, W, x):
    votes = votes_of(W[k])
    x[k] += votes[int(W[k, J[k]])] + W[k, int(x[k])]


BODIES = [
    *(from_a_row, of_two_axes, into_a_local, of_a_local_table, by_a_helper, by_a_helper_that_writes),
    *(with_a_comprehension, by_an_array, of_tuples, of_shapes, by_unsigned, of_a_slice, augmented),
    *(into_a_dict, by_a_helper_with_a_dict),
]
_numbers = st.lists(
    st.integers(-WIDTH, WIDTH - 1) | st.sampled_from([WIDTH, -WIDTH - 1, 1 << 40]), min_size=ROWS, max_size=ROWS
)


@pytest.mark.few(3)
@pytest.mark.parametrize("order", ["any", pytest.param("sequential", marks=pytest.mark.slow)])
@pytest.mark.parametrize("body", BODIES)
@in_its_own_process(120)
def test_indices_that_may_not_exist(body, order):
    rng = np.random.default_rng(0)

    @settings(max_examples=25)
    @given(st.lists(_numbers.filter(lambda numbers: numbers != [2] * ROWS), min_size=1, max_size=3))
    def check(calls):
        J = strads.dvector(rng.integers(0, WIDTH, ROWS))
        W = strads.dvector(rng.integers(0, 3, (ROWS, WIDTH)).astype(float))
        x = strads.dvector.zeros(ROWS)
        for numbers in ([2] * ROWS, *calls):
            x[:] = np.array(numbers, float)
            error = run_or_refuse(ROWS, body, J, W, x, order=order)
            assert error is None or isinstance(error, strads.BodyIndexError)
            assert error is None or numbers in calls

    check()


def checks_of(body, *tables, checking=Checking.OWNERS):
    bound = bind_arguments(body, tables)
    return LoopProgram(body, bound, fastmath=True).part_checks(bound, checking)


def checked_names(body, *tables, **options):
    checks = checks_of(body, *tables, **options)
    return None if checks.variables is None else {name.split(".")[0] for _, name in checks.variables}


def one_of_many(k, J, W, x):
    row, found, bad = W[k], 0.0, int(x[k])
    for i in range(len(row)):
        found += row[i] * W[k, i]
    x[k] += found + row[bad]


def remainder(k, J, W, x):
    x[k] += W[k, int(x[k]) % 4] + W[k][int(x[k] + 1) % W.shape[1]]


def remainder_of_a_scalar(k, n, W, x):
    x[k] += W[k][int(x[k]) % n]


def tables():
    J, W = strads.dvector(np.arange(ROWS) % WIDTH), strads.dvector(np.ones((ROWS, WIDTH)))
    return J, W, strads.dvector.zeros(ROWS)


def test_only_those_are_checked():
    assert checked_names(one_of_many, *tables()) == {"bad"}
    assert checked_names(one_of_many, *tables(), checking=Checking.ALL) == {"bad"}
    assert checks_of(of_two_axes, *tables()).tables == {1}
    assert not checks_of(one_of_many, *tables()).tables


def test_what_cannot_be_checked_alone_is_checked_with_all():
    for body in (with_a_comprehension, by_an_array, of_tuples):
        assert checked_names(body, *tables()) is None


def test_remainders_are_below_their_divisor():
    assert not checks_of(remainder, *tables())
    _, W, x = tables()
    for n, is_checked in ((WIDTH, False), (2, False), (WIDTH + 1, True), (0, True), (-WIDTH, True)):
        assert bool(checks_of(remainder_of_a_scalar, n, W, x)) == is_checked
        run_or_refuse(ROWS, remainder_of_a_scalar, n or 1, W, x)


def walk(k, u, Q, agent, n):
    j = agent[0] % n
    if u[k] < 0.5:
        j -= 1
    else:
        j += 1
    j = min(max(j, 0), n - 1)
    Q[j] += 1
    agent[0] = j


def walk_in_a_row(k, u, Q, agent, n):
    j = agent[0] + u[k] % 3
    j = min(max(j - 1, 0), n - 1)
    Q[0] += u[j]
    i, j = j, agent[1]
    j = max(j + i, 0) - 1
    Q[j] += 1
    agent[0] = i


def walk_round(k, u, Q, agent, n):
    j = agent[0] % n
    j = j + u[k]
    if j >= n:
        j = 0
    Q[j] += 1
    agent[0] = j


def back_from_its_own(k, u, Q, agent, n):
    j = k % 3
    Q[j] += 1
    j = k % 3 - 1
    if u[k] > 0:
        j -= 1
    Q[j] += 2
    agent[1] = j


def around(Q, j):
    total = Q[j]
    j = j - 1
    return total + Q[j]


def back_in_a_helper(k, u, Q, agent, n):
    agent[0] += around(Q, u[k]) + around(u, k % 2)
    Q[k % 3] += agent[0] % 5


def back_in_a_loop(k, u, Q, agent, n):
    j = k % 3
    total = Q[j]
    j = 0
    for _ in range(3):
        total += Q[j]
        j -= 1
    j = j + 1
    Q[j] += total % 7


ASSIGNED_AGAIN = [walk, walk_in_a_row, walk_round, back_from_its_own, back_in_a_helper, back_in_a_loop]


@pytest.mark.parametrize("order", ["any", "sequential"])
@pytest.mark.parametrize("body", ASSIGNED_AGAIN)
def test_an_index_that_is_assigned_again(body, order):
    """Numba then gives it another name, as `j.1`."""
    u = strads.dvector(np.random.default_rng(0).integers(0, 2, ROWS))
    for n in (WIDTH, WIDTH, ROWS):
        assert run_or_refuse(ROWS, body, u, strads.dvector.zeros(WIDTH, "i8"), strads.dvector.zeros(2, "i8"), 3) is None
        error = run_or_refuse(ROWS, body, u, strads.dvector.zeros(1, "i8"), strads.dvector.zeros(2, "i8"), n)
        assert error is None or isinstance(error, strads.BodyIndexError)
