"""Integers in bodies that do not fit 64 bits wrap around, and no index of which they are part escapes its check."""

import numpy as np
import pytest
from tests.loops.serial import run_or_refuse

import strads

ROWS = 8
LIMITS = np.iinfo(np.int64)
EXTREME = [LIMITS.max, LIMITS.max - 1, LIMITS.min, LIMITS.min + 1, LIMITS.min + 3, 1 << 62, -(1 << 62)]


def before_the_end(k, A, x):
    if A[k] + 1 < len(x):
        x[A[k]] += 1


def before_the_end_of_all(k, A, x):
    if min(A[k] + 1, A[k] + 2) < len(x):
        x[A[k]] += 1


def after_the_first(k, A, x):
    if A[k] - 1 >= 0:
        x[A[k]] += 1


def differences(k, A, x):
    d = A[k] - A[k - 1]
    if d > 0 and A[k] > 0:
        x[d] += A[k - 1]


def sums_of_positive_numbers(k, A, x):
    if A[k] > 0 and A[k - 1] > 0:
        x[A[k] + A[k - 1]] += 1


def twice(k, A, x):
    x[2 * A[k]] += 1
    x[A[k]] += 2


def halves(k, A, x):
    if A[k] * 2 == 6:
        x[A[k]] += 1


def left_over(k, A, x):
    if k >= A[k]:
        x[k - A[k]] += 1


def following(i):
    return i + 1


def is_before(i, n):
    return i < n


def through_helpers(k, A, x):
    if is_before(following(A[k]), len(x)):
        x[A[k]] += 1


def through_an_array(k, A, x):
    ends = np.zeros(2, np.int64)
    ends[0] = A[k] + 1
    if ends[0] < len(x):
        x[A[k]] += 1


def moved(k, A, x):
    i = A[k]
    while i + 3 < len(x) and i != k:
        i += 3
        x[i] += 1


BODIES = [
    before_the_end,
    before_the_end_of_all,
    after_the_first,
    differences,
    twice,
    halves,
    left_over,
    sums_of_positive_numbers,
]
BODIES += [through_helpers, through_an_array]


@pytest.mark.few(3)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("order", ["any", "sequential"])
@pytest.mark.parametrize("body", BODIES)
def test_overflow(body, order):
    rng = np.random.default_rng(0)
    A, x = strads.dvector.zeros(ROWS, "i8"), strads.dvector.zeros(ROWS, "i8")
    for extreme in (None, 0, *EXTREME):
        A[:] = rng.integers(0, ROWS // 2, ROWS)
        if extreme is not None:
            A[4] = extreme
        error = run_or_refuse(ROWS, body, A, x, order=order)
        assert error is None or isinstance(error, strads.BodyIndexError)


def test_overflow_of_a_local():
    A, x = strads.dvector.zeros(ROWS, "i8"), strads.dvector.zeros(ROWS, "i8")
    for extreme in (0, LIMITS.max, LIMITS.max - 1):
        A[4] = extreme
        error = run_or_refuse(ROWS, moved, A, x)
        assert error is None or isinstance(error, strads.BodyIndexError)
