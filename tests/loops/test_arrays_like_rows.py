"""Bodies that make arrays like rows, or use rows as arrays: how they are recorded, and what they compute."""

import numpy as np
import pytest
from numpy import zeros_like
from serial import run_or_refuse

import strads
from strads.loops.argument_kinds import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram


def of_row(k, J, W):
    w = W[J[k]]
    new = np.zeros_like(w)
    for f in range(len(w)):
        new[f] += 0.5 * w[f]
    for f in range(len(new)):
        w[f] += new[f]


def of_row_by_another_name(k, J, W):
    w = W[J[k]]
    new = zeros_like(w, dtype=np.int64)
    for f in range(len(w)):
        new[f] += f
        w[f] += new[f]


def of_row_of_two_axes(k, J, B):
    b = B[J[k]]
    ones, same = np.ones_like(b), np.empty_like(B[J[k]])
    for f in range(len(b)):
        for g in range(b.shape[1]):
            same[f, g] = b[f, g]
            b[f, g] += same[f, g] * ones[f, g]


def of_own_array(k, J, W):
    own = np.array([1, 2, 3])
    new = np.zeros_like(own)
    W[J[k], 0] += new[0] + own[1]


def of_scalar(k, J, W):
    W[J[k], 0] += np.ones_like(W[J[k], 1]).item()


def with_product(k, J, W):
    w = W[J[k]]
    w *= 1.0 + np.dot(w, w) + np.zeros_like(w)[0]


def tables(body):
    J = strads.dvector(np.random.default_rng(0).integers(0, 40, 300))
    shape = (40, 3, 2) if body is of_row_of_two_axes else (40, 4)
    return J, strads.dvector(np.random.default_rng(1).random(shape))


def recorder_of(body):
    bound = bind_arguments(body, tables(body))
    return LoopProgram(body, bound, fastmath=True).compile_recorder(bound, LoopIndices.of(300))


@pytest.mark.few(2)
@pytest.mark.parametrize("body", [of_row, of_row_by_another_name, of_row_of_two_axes, of_own_array])
def test_a_row_needs_no_numbers_for_an_array_like_it(body):
    assert not recorder_of(body).scratch
    assert run_or_refuse(300, body, *tables(body)) is None


def test_rows_that_are_used_as_arrays_need_numbers():
    bound = bind_arguments(with_product, tables(with_product))
    program = LoopProgram(with_product, bound, fastmath=True)
    assert program.facts.arrays == {1}
    assert program.compile_recorder(bound, LoopIndices.of(300)).scratch
    assert list(program._recorders) == [True], "nothing else was compiled"


def test_arrays_like_numbers_are_refused_or_right():
    run_or_refuse(300, of_scalar, *tables(of_scalar))
