"""Rows whose elements a loop uses are logged once, before the loop: with the same records as access by access."""

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads.bodies.passes.logged_before_loops import _Logs
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


def by_field_in_the_loop(k, pairs, W, H):
    for f in range(W.shape[1]):
        W[pairs[k].first, f] += H[pairs[k].second, f]


def by_a_record_that_changes(k, pairs, W, H):
    own = np.array([pairs[k].first, 0])
    for f in range(W.shape[1]):
        W[own[0], f] += 1
        own[0] = (own[0] + 1) % W.shape[0]
    H[0, 0] += 1


def by_row(k, pairs, W, H):
    i, j = pairs[k].first, pairs[k].second
    for f in range(W.shape[1]):
        W[i][f] += H[j][f]
    for f in range(W.shape[1]):
        row = W[j]
        if row[f] > 0:
            H[i, f] += 1


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
    by_row,
    by_field_in_the_loop,
    by_a_record_that_changes,
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


def of_arrays(k, first, edges, W, H):
    for f in range(W.shape[1]):
        W[first[k], f] += H[edges[k, 1], f] * H[edges[0, 0], f]
    H[first[k + 1], 0] += 1


def of_arrays_without_iterations(k, first, edges, W, H):
    for f in range(k - TASKS + 5):
        W[first[k + 1000], f] += H[edges[k, 7], f]
    H[first[k], 0] += 1


def test_indices_from_arrays_are_computed_before_the_loop(monkeypatch):
    pairs, W, H = tables(of_arrays)
    first, edges = np.append(pairs.to_numpy()["first"], 3), np.random.default_rng(1).integers(0, ROWS, (TASKS, 2))
    arguments = strads.dvector(first), strads.dvector(edges), W, H
    logged = []
    append = _Logs._log
    monkeypatch.setattr(
        _Logs, "_log", lambda self, *args, **options: logged.append(1) or append(self, *args, **options)
    )
    found = records_of(of_arrays, arguments)
    assert len(logged) == 3
    without_pass(monkeypatch)
    assert found == records_of(of_arrays, arguments)
    assert run_or_refuse(TASKS, of_arrays, *arguments, fastmath=False) is None


def test_indices_from_arrays_that_are_too_short_are_not_read_in_vain():
    pairs, W, H = tables(of_arrays)
    arguments = strads.dvector(pairs.to_numpy()["first"]), strads.dvector(np.zeros((TASKS, 2), np.int64)), W, H
    assert run_or_refuse(TASKS - 4, of_arrays_without_iterations, *arguments, fastmath=False) is None
    with pytest.raises(BodyIndexError):
        strads.async_for(TASKS, of_arrays_without_iterations, *arguments)


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
