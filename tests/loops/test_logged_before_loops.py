"""Rows whose elements a loop uses are logged once, before the loop: with the same records as access by access."""

import numpy as np
import pytest
from numba.core.compiler import run_frontend
from serial import run_or_refuse

import strads
from strads.bodies.passes.logged_before_loops import _Logs
from strads.errors import BodyIndexError
from strads.loops import program
from strads.loops.argument_kinds import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram
from strads.loops.reconnaissance import Reconnaissance
from strads.schedule.records.parts import as_sparse

TASKS, ROWS, WIDTH = 40, 12, 3
OUTSIDE = ROWS + 7
PAIR = np.dtype([("first", "i8"), ("second", "i8")])
SIZES = np.zeros(3)
FIRST = np.random.default_rng(2).integers(0, ROWS, TASKS + 1)


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


def by_slice(k, pairs, W, H):
    i = pairs[k].first
    for f in range(2):
        w = W[i, f : f + 2]
        w[0] = 31 * w[0] + k
    H[i, 0] += 1


def part_that_is_written(k, pairs, W, H):
    i = pairs[k].first
    for f in range(W.shape[1]):
        W[i, f][0] = 3 * W[i, f][1] + k
    H[i, 0, 0] += 1


def index_made_before(k, pairs, W, H):
    i = pairs[k].first
    t = (i, 0)
    if k % 2 == 0:
        i = pairs[k].second
    for f in range(W.shape[1]):
        W[t] = 3 * W[t] + k + H[i, f]
    H[0, 0] += 1


def table_by_another_name(k, pairs, W, H):
    i = pairs[k].first
    for _ in range(2):
        T = W
        for f in range(W.shape[1]):
            T[i, f] = 3 * T[i, f] + k
    H[i, 0] += 1


def field_that_changes(k, pairs, W, H):
    own = np.zeros(1, PAIR)[0]
    own.first = pairs[k].first
    for f in range(W.shape[1]):
        W[own.first, f] = 3 * W[own.first, f] + k
        own.first = pairs[k].second
    H[0, 0] += 1


def conditional_values(k, pairs, W, H):
    i = pairs[k].first
    for f in range(W.shape[1]):
        W[i, f] += W[i, f] * 3 + (k if k % 2 == 0 else 1)
        W[i, f if f < 2 else 0] -= k and 3
    H[i, 0] += 1


def attributes_of_globals(k, pairs, W, H):
    for f in range(W.shape[1]):
        W[SIZES.size, f] += k
        W[ROWS - 2, f] += H[ROWS - 1, f]
    H[0, 0] += 1


def rows_of_arrays(k, pairs, W, H):
    for f in range(W.shape[1]):
        for g in range(k % 3):
            W[FIRST[k], f] += H[FIRST[k + 1], g]
    H[FIRST[0], 0] += 1


def no_iteration(k, pairs, W, H):
    i = pairs[k].first
    for f in range(k % 2):
        W[i, f] += 1
    H[pairs[k].second, 0] += 1


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
    by_slice,
    part_that_is_written,
    index_made_before,
    table_by_another_name,
    field_that_changes,
    conditional_values,
    attributes_of_globals,
    rows_of_arrays,
    no_iteration,
]


def tables(body):
    random = np.random.default_rng(0)
    pairs = np.empty(TASKS, PAIR)
    pairs["first"], pairs["second"] = random.integers(0, ROWS, (2, TASKS))
    shape = (ROWS, WIDTH, 2) if "axes" in body.__name__ or "part" in body.__name__ else (ROWS, WIDTH)
    return strads.dvector(pairs), *(strads.dvector(random.random(shape)) for _ in range(2))


@pytest.fixture(autouse=True)
def compiled_anew(monkeypatch):
    """Code on disk would be that of the other way to compile it."""
    monkeypatch.setattr(LoopProgram, "_keep_on_disk", lambda *arguments: None)


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


@pytest.mark.few(1)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_records_are_those_of_each_access(body, monkeypatch):
    found = records_of(body, tables(body))
    without_pass(monkeypatch)
    assert found == records_of(body, tables(body))
    if body is not field_that_changes:  # records have fields only in compiled code
        assert run_or_refuse(TASKS, body, *tables(body), fastmath=False) is None
        assert run_or_refuse(TASKS, body, *tables(body), mode="python") is None


def of_arrays(k, first, edges, W, H):
    for f in range(W.shape[1]):
        W[first[k], f] += H[edges[k, 1], f] * H[edges[0, 0], f]
    H[first[k + 1], 0] += 1


def of_arrays_without_iterations(k, first, edges, W, H):
    for f in range(k - TASKS + 5):
        W[first[k + 1000], f] += H[edges[k, 7], f]
    H[first[k], 0] += 1


def test_rows_from_arrays_that_are_only_read(monkeypatch):
    pairs, W, H = tables(of_arrays)
    first, edges = np.append(pairs.to_numpy()["first"], 3), np.random.default_rng(1).integers(0, ROWS, (TASKS, 2))
    arguments = strads.dvector(first), strads.dvector(edges), W, H
    found = records_of(of_arrays, arguments)
    without_pass(monkeypatch)
    assert found == records_of(of_arrays, arguments)
    assert run_or_refuse(TASKS, of_arrays, *arguments, fastmath=False) is None


def test_rows_that_no_iteration_uses_need_not_exist():
    pairs, W, H = tables(of_arrays)
    arguments = strads.dvector(pairs.to_numpy()["first"]), strads.dvector(np.zeros((TASKS, 2), np.int64)), W, H
    assert run_or_refuse(TASKS - 4, of_arrays_without_iterations, *arguments, fastmath=False) is None
    with pytest.raises(BodyIndexError):
        strads.async_for(TASKS, of_arrays_without_iterations, *arguments)


def with_one_outside(of):
    pairs, W, H = tables(no_iteration)
    rows = pairs.to_numpy().copy()
    rows["first"][of] = OUTSIDE
    return strads.dvector(rows), W, H


def test_a_row_that_an_iteration_uses_must_exist():
    assert run_or_refuse(TASKS, no_iteration, *with_one_outside(4)) is None
    for body in (no_iteration, by_element):
        with pytest.raises(BodyIndexError):
            strads.async_for(TASKS, body, *with_one_outside(5))


@pytest.mark.parametrize(
    ("body", "count"),
    [(by_element, 4), (by_field, 2), (under_a_condition, 0), (left_early, 1), (while_loop, 0), (index_made_before, 1)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_how_many_rows_are_logged_before_loops(body, count, monkeypatch):
    log, logged = _Logs._log, []
    monkeypatch.setattr(_Logs, "_log", lambda self, found: logged.append(found) or log(self, found))
    _Logs(run_frontend(body), {1: 2, 2: 2}, frozenset([0])).move()
    assert len(logged) == count
