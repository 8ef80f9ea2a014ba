"""Indices that are the last bits of a number, as of a hash: they exist if the table has a row for each mask."""

from dataclasses import replace

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads.loops.argument_kinds import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram

ROWS, WIDTH = 60, 16
MASK, FACTOR = 15, np.uint64(0x9E3779B97F4A7C15)


def last_bits(k, V, U, n, x, G):
    x[V[k] & 15] += 1


def mask_first(k, V, U, n, x, G):
    i = MASK & V[k] * 31
    x[i] += G[k, i]


def hashed(k, V, U, n, x, G):
    h = U[k] * FACTOR
    x[np.int64(h >> np.uint64(60) & np.uint64(0xF))] += 1


def mixed(k, V, U, n, x, G):
    code = 0
    for turn in range(3):
        code = (code * 4 + V[k] + turn) & 0xF
        G[k, code] += 1
        x[int(code)] += 1


def in_a_slice(k, V, U, n, x, G):
    row = G[k]
    row[:] = 1
    row[2:9:2] = V[k]
    row[V[k] & 15] = 3


def scalar_mask(k, V, U, n, x, G):
    x[V[k] & n] += 1


def by_length(k, V, U, n, x, G):
    i = V[k] * 7 >> 1 ^ 5
    i &= len(x) - 1
    for turn in range(3):
        x[i] += turn
        i = (i + 1) & (len(x) - 1)


def too_many_bits(k, V, U, n, x, G):
    if V[k] >= 0:
        x[V[k] & 31] += 1


def negative_mask(k, V, U, n, x, G):
    i = V[k] & -2
    if i < 3:
        x[i] += 1


def with_more_bits(k, V, U, n, x, G):
    i = V[k] & 15 | V[k] & 16
    if i < len(x):
        x[i ^ 1] += 1


def narrow(k, V, U, n, x, G):
    x[np.int8(V[k] & 15) - np.int8(V[k] & 14)] += 1


def wrapping(k, V, U, n, x, G):
    u = U[k] & np.uint64(3)
    i = np.int64(u - np.uint64(20))
    if i < 5:
        x[i] += 1


def by_a_step_of_zero(k, V, U, n, x, G):
    row = G[k]
    row[0 : 5 : V[k] & 1] = 1


PROVED = [last_bits, mask_first, hashed, mixed, in_a_slice, scalar_mask, by_length]
OTHERS = [too_many_bits, negative_mask, with_more_bits, narrow, wrapping, by_a_step_of_zero]


def problem(low):
    rng = np.random.default_rng(0)
    V, U = rng.integers(low, 1000, ROWS), rng.integers(0, 2**63, ROWS, np.uint64) * np.uint64(2)
    tables = V, U, np.zeros(WIDTH, "i8"), rng.integers(0, 9, (ROWS, WIDTH))
    V, U, x, G = map(strads.dvector, tables)
    return V, U, 15, x, G


def is_proved(body, arguments):
    bound = replace(bind_arguments(body, arguments), has_values=True, indices=LoopIndices.of(ROWS))
    return LoopProgram(body, bound, fastmath=True).is_proved(bound)


@pytest.mark.parametrize("body", PROVED)
@pytest.mark.parametrize("low", [0, -1000])
def test_masks_prove_indices(body, low):
    arguments = problem(low)
    assert is_proved(body, arguments)
    with np.errstate(over="ignore"):
        assert run_or_refuse(ROWS, body, *arguments, order="sequential") is None


@pytest.mark.parametrize("body", OTHERS)
def test_other_bits_prove_nothing(body):
    arguments = problem(-1000)
    assert not is_proved(body, arguments)
    with np.errstate(over="ignore"):
        error = run_or_refuse(ROWS, body, *arguments, order="sequential")
    assert error is None or isinstance(error, strads.BodyIndexError | strads.BodyError)


@pytest.mark.parametrize(("mask", "fits"), [(0, True), (9, True), (16, False), (-1, False), (-16, False)])
def test_scalar_masks_are_looked_up(mask, fits):
    V, U, _, x, G = problem(-1000)
    assert is_proved(scalar_mask, (V, U, mask, x, G)) == fits
    error = run_or_refuse(ROWS, scalar_mask, V, U, mask, x, G, order="sequential")
    assert error is None or (not fits and isinstance(error, strads.BodyIndexError))


def test_masks_do_not_fit_shorter_tables():
    V, U, n, _, G = problem(0)
    shorter = strads.dvector.zeros(WIDTH - 1, "i8")
    assert not is_proved(last_bits, (V, U, n, shorter, G))
    assert isinstance(run_or_refuse(ROWS, last_bits, V, U, n, shorter, G), strads.BodyIndexError)
