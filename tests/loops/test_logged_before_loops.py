"""Rows whose elements a loop uses are logged once, before the loop: with the same records as access by access."""

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads.errors import BodyIndexError
from strads.loops import program
from strads.loops.arguments import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram
from strads.loops.reconnaissance import Reconnaissance
from strads.schedule.records.parts import as_sparse

TASKS, ROWS, WIDTH = 40, 12, 3
OUTSIDE = ROWS + 7


def by_element(k, pairs, W, H):
    i, j = pairs[k].first, pairs[k].second
    total = 0.0
    for f in range(W.shape[1]):
        total += W[i, f] * H[j, f]
    for f in range(W.shape[1]):
        W[i, f] += total * H[j, f]


def by_field(k, pairs, W, H):
    r = pairs[k]
    for f in range(W.shape[1]):
        W[r.first, f] += H[r.second, f]


def nested(k, pairs, W, H):
    i, j = pairs[k].first, pairs[k].second
    for f in range(W.shape[1]):
        for g in range(H.shape[1]):
            W[i, f] += H[j, g] * H[0, g]
    H[j, 0] += 1


def under_a_condition(k, pairs, W, H):
    i, j = pairs[k].first, pairs[k].second
    for f in range(W.shape[1]):
        if k % 3 == 1:
            W[i, f] += 1
        else:
            H[j, f] += 1


def left_early(k, pairs, W, H):
    i, j = pairs[k].first, pairs[k].second
    for f in range(W.shape[1]):
        W[i, f] += 1
        if k % 2:
            break
        H[j, f] += 1


def another_row_each_time(k, pairs, W, H):
    i = pairs[k].first
    for f in range(W.shape[1]):
        W[i, f] += 1
        i = (i + 1) % W.shape[0]


def chosen_in_an_outer_loop(k, pairs, W, H):
    for i in range(k % 3):
        for f in range(W.shape[1]):
            W[i, f] += H[pairs[k].second, f]
    H[0, 0] += 1


def while_loop(k, pairs, W, H):
    i, j, f = pairs[k].first, pairs[k].second, 0
    while f < W.shape[1]:
        W[i, f] += H[j, f]
        f += 1
    H[j, 0] += 1


def negative(k, pairs, W, H):
    i = pairs[k].first - W.shape[0]
    for f in range(W.shape[1]):
        W[i, f] += H[-1, f]
    H[0, 0] += 1


def read_and_written_elsewhere(k, pairs, W, H):
    i, total = pairs[k].first, 0.0
    for f in range(W.shape[1]):
        total += W[i, f]
    H[i, 0] = total
    W[pairs[k].second, 0] = total


def of_three_axes(k, pairs, W, H):
    i, j = pairs[k].first, pairs[k].second
    for f in range(W.shape[1]):
        for g in range(2):
            W[i, f, g] += H[j, f, g]
        W[j, f, 1] = 2
    H[j, 0, 0] += 1


def part_of_three_axes(k, pairs, W, H):
    i = pairs[k].first
    for f in range(W.shape[1]):
        part = W[i, f]
        part[0] += 1
    H[i, 0, 0] += 1


def with_an_array_like_a_row(k, pairs, W, H):
    i = pairs[k].first
    for f in range(W.shape[1]):
        W[i, f] += W[i, :].sum()  # which takes the numbers of the row
    H[i, 0] += 1


BODIES = [
    by_element,
    by_field,
    nested,
    under_a_condition,
    left_early,
    another_row_each_time,
    chosen_in_an_outer_loop,
    while_loop,
    negative,
    read_and_written_elsewhere,
    of_three_axes,
    part_of_three_axes,
    with_an_array_like_a_row,
]


def tables(body):
    random = np.random.default_rng(0)
    pairs = np.empty(TASKS, [("first", "i8"), ("second", "i8")])
    pairs["first"], pairs["second"] = random.integers(0, ROWS, (2, TASKS))
    shape = (ROWS, WIDTH, 2) if "axes" in body.__name__ else (ROWS, WIDTH)
    return strads.dvector(pairs), *(strads.dvector(random.random(shape)) for _ in range(2))


def without_pass(monkeypatch):
    original = program.compile_function
    monkeypatch.setattr(program, "compile_function", lambda *a, logged=None, **options: original(*a, **options))


def records_of(body, arguments):
    """Return the rows and tags of each task."""
    bound, indices = bind_arguments(body, arguments), LoopIndices.of(TASKS)
    recorder = LoopProgram(body, bound, fastmath=True).compile_recorder(bound, indices)
    team = strads.cluster.ThreadTeam(1)
    sparse = as_sparse(Reconnaissance(recorder, bound, indices, team).run())
    spans = zip(sparse.offsets[:-1], sparse.offsets[1:], strict=True)
    return [set(zip(sparse.rows[a:b].tolist(), sparse.tags[a:b].tolist(), strict=True)) for a, b in spans]


@pytest.mark.few(3)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_records_are_those_of_each_access(body, monkeypatch):
    found = records_of(body, tables(body))
    without_pass(monkeypatch)
    assert found == records_of(body, tables(body))
    assert run_or_refuse(TASKS, body, *tables(body), fastmath=False) is None


def no_iteration(k, pairs, W, H):
    i = pairs[k].first
    for f in range(k % 2):
        W[i, f] += 1
    H[pairs[k].second, 0] += 1


def test_a_loop_without_iterations_may_be_recorded_as_if_it_had_some(monkeypatch):
    found = records_of(no_iteration, tables(no_iteration))
    without_pass(monkeypatch)
    every = records_of(no_iteration, tables(no_iteration))
    assert all(few <= many for few, many in zip(every, found, strict=True))
    assert every[1] == found[1]


def with_one_outside(of):
    pairs, W, H = tables(no_iteration)
    rows = pairs.to_numpy().copy()
    rows["first"][of] = OUTSIDE
    return strads.dvector(rows), W, H


def test_a_row_that_no_iteration_uses_need_not_exist():
    assert run_or_refuse(TASKS, no_iteration, *with_one_outside(4)) is None


@pytest.mark.parametrize("body", [no_iteration, by_element], ids=lambda body: body.__name__)
def test_a_row_that_an_iteration_uses_must_exist(body):
    with pytest.raises(BodyIndexError, match=f"{body.__code__.co_firstlineno + 3 + (body is by_element)}|index"):
        strads.async_for(TASKS, body, *with_one_outside(5))
