"""Recording views: what a body sees of each argument during reconnaissance (thesis §7.2.2).

A table that the loop writes is seen as *ghosts* (every element reads as one constant and writes are discarded, so that
the compiler eliminates all arithmetic except index computation) or, where the body needs real values, as *scratch*
(each task works on private copies of the rows that it accesses). Both log every access.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from strads.engine.compiling import UNCOUNTED, local_counters
from strads.engine.views.keyed import keyed_view
from strads.engine.views.kinds import (
    RECENT_SIZE,
    SILENT,
    SLOTS,
    STAMP,
    TASK,
    make_elements,
    make_ghost,
    make_ignoring,
    make_scratch,
)
from strads.engine.views.live import dense_data, ragged_data, ragged_view
from strads.engine.views.near import near_recorded_view
from strads.engine.views.random_numbers import DRAW_STATE, make_random
from strads.engine.views.roles import Role
from strads.engine.views.types import bind_with
from strads.schedule.kernels.prefetch import prefetch_rows

_AHEAD = 128  # tasks by which data are fetched that tasks read in turn


class Ghost(NamedTuple):
    """Storage of a table seen as ghosts: data and tag, and the log (`rows`, `tags`).

    `fill` is the value of every element, or the table if its elements are read as they are.
    """

    data: Any
    tag: Any
    rows: Any
    tags: Any
    fill: Any


class Scratch(NamedTuple):
    """Storage of a table seen as scratch: its data and tag, the log (`rows`, `tags`), and the task's copies of rows.

    `state` holds the current task, its stamp and the slots in use; `copies` the copied rows by slot; `stamps` and
    `slots`, by row, the stamp of the last task that copied it, and its slot.
    """

    data: Any
    tag: Any
    rows: Any
    tags: Any
    state: Any
    copies: Any
    stamps: Any
    slots: Any


@njit(**UNCOUNTED)
def _ignoring_view(storage, context):  # type: ignore[no-untyped-def]
    """View an accumulator whose `add` does nothing."""
    return make_ignoring((storage,))


@njit(**UNCOUNTED)
def _silent(tag):  # type: ignore[no-untyped-def]
    return np.uint8(tag | SILENT)


@njit(**UNCOUNTED)
def _loud(tag):  # type: ignore[no-untyped-def]
    """Return the tag of a logged table, such that the compiler can omit the test for `SILENT` in each task."""
    return np.uint8(tag & (SILENT - 1))


@cache
def _ghost_view(make: Any, data_of: Any, tag_of: Any, number: int) -> Any:
    place = RECENT_SIZE * number

    @njit(**UNCOUNTED)
    def view(storage, context):  # type: ignore[no-untyped-def]
        s = storage
        return make((data_of(s.data), tag_of(s.tag), s.rows, s.tags, context[0], context[3], place, s.fill))

    return view


@cache
def _scratch_view(data_of: Any, tag_of: Any, number: int) -> Any:
    place = RECENT_SIZE * number

    @njit(**UNCOUNTED)
    def view(storage, context):  # type: ignore[no-untyped-def]
        s = storage
        log = tag_of(s.tag), s.rows, s.tags, context[0], context[3], place
        return make_scratch((data_of(s.data), *log, s.state, s.copies, s.stamps, s.slots))

    return view


def recording_view(
    role: Role,
    number: int,
    *,
    ragged: bool,
    scratch: bool,
    keyed: bool = False,
    by_element: bool = False,
    near: bool = False,
) -> Any | None:
    """Return the constructor of the body's view of argument `number` during reconnaissance, or None."""
    if by_element:
        return _ghost_view(make_elements, dense_data, _loud, number)
    constructor = _recording_view(role, number, ragged=ragged, scratch=scratch)
    if near:
        silent = (
            _scratch_view(dense_data, _silent, number)
            if scratch
            else _ghost_view(make_ghost, dense_data, _silent, number)
        )
        return near_recorded_view(constructor, silent)
    return keyed_view(constructor) if keyed else constructor


@njit(**UNCOUNTED)
def _random_view(storage, context):  # type: ignore[no-untyped-def]
    return make_random((storage[0], storage[1], np.uint64(context[1]), context[2]))


def _recording_view(role: Role, number: int, *, ragged: bool, scratch: bool) -> Any | None:
    if role is Role.RANDOM:
        return _random_view
    if role is Role.ACCUMULATOR:
        return _ignoring_view
    if role.is_recorded or role.is_relaxed:
        data_of = ragged_data if ragged else dense_data
        if scratch:
            return _scratch_view(data_of, _silent if role.is_relaxed else _loud, number)
        return _ghost_view(make_ghost, data_of, _silent if role.is_relaxed else _loud, number)
    return ragged_view if ragged else None


def _one_after_the_other(bodies: Sequence[Any]) -> Any:
    """Return a function that runs two bodies or more as one task; `drawn`, 0 at first, counts the draws of each."""
    *others, last = bodies
    several = len(others) > 1
    before = _one_after_the_other(others) if several else others[0]

    @njit(**UNCOUNTED)
    def both(index, drawn, *arguments):  # type: ignore[no-untyped-def]
        if several:
            before(index, drawn, *arguments)
        else:
            before(index, *arguments)
        drawn[0] = 0
        last(index, *arguments)

    return both


def make_recorder(
    bodies: Sequence[Any], constructors: tuple[Any | None, ...], *, scratch: bool, in_turn: tuple[int, ...] = ()
) -> Callable[..., int]:
    """Make the lazily compiled recorder of one body, or of several run in sequence by each task.

    It is called as `record(start, step, values, first, count, state, counts, storages)`, runs the tasks
    `first..first + count - 1` on recording views and returns the length of the log. Task k has loop index `values[k]`,
    or `start + step * k` if `values` is empty. `counts[i]` is set to the number of accesses logged by the i-th task;
    `state` holds the position of the current task and, for `scratch` views, its stamp, one more than the last, and the
    slots in use. Of the tables `in_turn` each task reads the row of its index.
    """
    bind = bind_with(constructors)
    prefetch = prefetch_rows(in_turn)
    several = len(bodies) > 1
    body = _one_after_the_other(bodies) if several else bodies[0]
    size = RECENT_SIZE * len(constructors)

    @njit(nogil=True, no_cfunc_wrapper=True, error_model="numpy", _nrt=False)  # the body checks its own indices
    def record(start, step, values, first, count, state, counts, storages):  # type: ignore[no-untyped-def]
        """Record the tasks from `first` on; `start`, `step`, `values`, `state` and `counts` are described above."""
        logged = local_counters(2)  # accesses so far, and before this task
        drawn = local_counters(DRAW_STATE)
        recent = local_counters(size)
        for number in range(np.uint64(count)):  # unsigned: no negative-index checks
            task = first + np.int64(number)
            logged[1] = logged[0]
            for place in range(size):  # compiles faster than a slice
                recent[place] = 0
            drawn[0] = 0
            state[TASK] = task
            if scratch:
                state[STAMP] += 1
                state[SLOTS:] = 0
            ahead, last = task + _AHEAD, len(values) - 1
            prefetch(storages, values[np.uint64(min(ahead, last))] if last >= 0 else start + step * ahead)
            index = values[np.uint64(task)] if last >= 0 else start + step * task
            if several:
                body(index, drawn, *bind(storages, (logged, index, drawn, recent)))
            else:
                body(index, *bind(storages, (logged, index, drawn, recent)))
            counts[number] = logged[0] - logged[1]
        return logged[0]

    return record
