"""Live views: what a body sees of each argument when a plan is executed.

A constructor takes the storage of one argument and the context of one task, `(position in the plan, job, lane,
holder of rows, loop index, random numbers drawn)`, and returns the view. Arrays that are passed unchanged have no
constructor.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from strads.engine.compiling import INLINED, UNCOUNTED, constant_item
from strads.engine.views import accumulators, tables  # noqa: F401 – what bodies do with views
from strads.engine.views.keyed import keyed_view
from strads.engine.views.kinds import (
    make_accumulating,
    make_aligned,
    make_checked,
    make_guarded,
    make_offsets,
    make_ragged,
    make_segmented,
)
from strads.engine.views.near import near_view
from strads.engine.views.random_numbers import make_random
from strads.engine.views.roles import Role
from strads.engine.views.types import DRAWN, HOLDER, INDEX, JOB, LANE, PLAN_POSITION, replica_of


class Replicated(NamedTuple):
    """Storage of a relaxed table."""

    data: Any  # (lanes, `rows` or more, …): its replicas
    rows: int  # of the table


class Guarded(NamedTuple):
    """Storage of a guarded table: its data, the range of rows of each job, and the owner of each row or block."""

    data: Any  # array, or values and offsets of ragged rows
    low: Any  # (jobs,), int64: job j owns the rows low[j]..high[j] - 1
    high: Any  # (jobs,), int64
    owner: Any  # int32: the job or task that has claimed each unit, −1 for none; other tables' units may follow
    blocks: Any  # (rows,), int32: the unit of each row; None, which compiles other code: the row itself


class Aligned(NamedTuple):
    """Storage of an aligned table."""

    data: Any  # its rows in plan order; values and offsets if they are ragged
    rows: int  # of the table itself


class Segmented(NamedTuple):
    """Storage of a segmented table."""

    data: Any  # its segments in plan order, or all of it
    shift: Any  # (tasks,), int64: place in `data` of a row that a task reads, minus its number in the table
    rows: int  # of the table itself


class Offsets(NamedTuple):
    """Storage of the offsets of segmented tables."""

    ends: Any  # (tasks, 2): where the segment of each task begins and ends, in plan order
    rows: int  # number of offsets


@njit(**UNCOUNTED)
def dense_data(data):  # type: ignore[no-untyped-def]
    """Return the array of a dense table."""
    return data


@njit(**UNCOUNTED)
def ragged_data(data):  # type: ignore[no-untyped-def]
    """Return the view of a ragged table, given its values and offsets."""
    return make_ragged((data[0], data[1]))


@njit(**UNCOUNTED)
def ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """View a ragged table."""
    return ragged_data(storage)


@njit(**INLINED)  # Numba takes the array that it returns for a new one
def replica_view(storage, context):  # type: ignore[no-untyped-def]
    """View the lane's replica."""
    return replica_of(storage.data, context[LANE], storage.rows)


@njit(**UNCOUNTED)
def _offsets_view(storage, context):  # type: ignore[no-untyped-def]
    return make_offsets((storage.ends, context[PLAN_POSITION], context[INDEX], storage.rows))


@njit(**UNCOUNTED)
def _accumulating_view(storage, context):  # type: ignore[no-untyped-def]
    """Add to the job's own total, so that the sum does not depend on timing."""
    return make_accumulating((storage, context[JOB]))


@njit(**UNCOUNTED)
def _random_view(storage, context):  # type: ignore[no-untyped-def]
    """Draw from a stream of the loop index, so that numbers depend neither on the thread nor on the order."""
    return make_random((storage[0], storage[1], np.uint64(context[INDEX]), context[DRAWN]))


@cache
def _views(checks: bool | None, *, ragged: bool) -> dict[Role, Any]:
    """Return the constructors, but for arguments that the body sees as they are; `checks` is True or None."""
    data_of = ragged_data if ragged else dense_data

    @njit(**UNCOUNTED)
    def checked(storage, context):  # type: ignore[no-untyped-def]
        return make_checked((storage, checks))

    @njit(**UNCOUNTED)
    def checked_replica(storage, context):  # type: ignore[no-untyped-def]
        return make_checked((replica_of(storage.data, context[LANE], storage.rows), checks))

    @njit(**UNCOUNTED)
    def aligned(storage, context):  # type: ignore[no-untyped-def]
        return make_aligned((data_of(storage.data), context[PLAN_POSITION], storage.rows, checks))

    @njit(**UNCOUNTED)
    def segmented(storage, context):  # type: ignore[no-untyped-def]
        return make_segmented((storage.data, storage.shift[context[PLAN_POSITION]], storage.rows, checks))

    @njit(**UNCOUNTED)
    def guarded(storage, context):  # type: ignore[no-untyped-def]
        s, job = storage, context[JOB]
        low, high = constant_item(s.low, job), constant_item(s.high, job)
        return make_guarded((data_of(s.data), low, high, s.owner, s.blocks, context[HOLDER], checks))

    views = {
        Role.ACCUMULATOR: _accumulating_view,
        Role.RANDOM: _random_view,
        Role.CHECKED: checked,
        Role.ALIGNED: aligned,
        Role.SEGMENTED: segmented,
        Role.OFFSETS: _offsets_view,
        Role.GUARDED: guarded,
        Role.RELAXED: replica_view,
        Role.CHECKED_RELAXED: checked_replica,
    }
    # The view of ragged rows always checks their indices.
    return views | dict.fromkeys((Role.READ, Role.CHECKED, Role.WRITTEN), ragged_view) if ragged else views


def live_view(role: Role, *, ragged: bool, keyed: bool = False, checks: bool = False, near: bool = False) -> Any | None:
    """Return the constructor of a body's view of an argument, or None if the body sees the storage itself.

    With `checks`, the second index of `T[i, j]` is checked, too; with `near`, rows of the table can be drawn.
    """
    constructor = _views(checks or None, ragged=ragged).get(role)
    if near:
        return near_view(constructor, checks or None)
    return keyed_view(constructor) if keyed else constructor
