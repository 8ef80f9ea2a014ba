"""Rows of the tables that reconnaissance records: every access is logged, and the rows are ghosts or private copies."""

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import register_jitable

from strads.engine.compiling import INNER, ON_DISK, compiled
from strads.engine.stopping import check_stop
from strads.engine.views.ghost_records import make_ghost_record, shown
from strads.engine.views.indices import rows_are_scalars, wrap
from strads.engine.views.kinds import (
    COPIED,
    EARLIER,
    LOGGED,
    RECORDING,
    SILENT,
    SLOT,
    SLOTS,
    STAMP,
    GhostRowType,
    GhostType,
    RaggedType,
    make_ghost_row,
)
from strads.engine.views.prefetched_rows import fetch
from strads.engine.views.types import ViewType

_LOOKED_BACK = 6  # recent accesses checked for repetition: three tables, each read and written
SCRATCH_FULL = "scratch rows used up"


# What follows takes the arrays of a view, not the view: so it is compiled once, and kept on disk, for all tables.


@njit(cache=True, **ON_DISK)
def _append(logged, rows, tags, tag, position, write):  # type: ignore[no-untyped-def]
    """Append an access to row `position` of the table with this `tag`; `write` is 1 if it writes, else 0.

    `rows` and `tags` (capacity,) are the log, and `logged[0]` is its length. A full buffer wraps around, and the caller
    repeats with a larger one.
    """
    entry = logged[0]
    if entry < len(rows):
        rows[np.uint64(entry)] = position  # unsigned: no negative-index check
        tags[np.uint64(entry)] = tag | write
    else:
        check_stop()  # endless logging can be stopped, too
        if len(rows) > 0:
            rows[entry % len(rows)] = position
            tags[entry % len(rows)] = tag | write
    logged[0] = entry + 1


@njit(cache=True, **ON_DISK)
def _append_once(logged, rows, tags, tag, recent, place, position, write):  # type: ignore[no-untyped-def]
    """Append an access unless the task has just logged it; `logged[1]` is the log's length before the task.

    `rows`, `tags`, `tag`, `position` and `write` are as in `_append`. Mostly the access is one of the view's last two,
    which the compiler keeps in registers: `recent`, from `place` on.
    """
    last, earlier = np.uint64(place + LOGGED), np.uint64(place + EARLIER)
    one = np.uint64(1)
    if recent[last] == position + 1:
        if recent[last + one] >= write:
            return
        recent[last + one] = write
    elif recent[earlier] == position + 1:
        if recent[earlier + one] >= write:
            return
        recent[earlier + one] = write
    else:
        recent[earlier], recent[earlier + one] = recent[last], recent[last + one]
        recent[last], recent[last + one] = position + 1, write
    entry, size = logged[0], len(rows)
    for other in range(max(logged[1], entry - min(_LOOKED_BACK, size)), entry):
        known = other if other < size else other % size
        if rows[np.uint64(known)] == position and tags[np.uint64(known)] | 1 == tag | 1:
            tags[np.uint64(known)] |= write
            return
    _append(logged, rows, tags, tag, position, write)


@register_jitable
def _slots_in_use(tag):  # type: ignore[no-untyped-def]
    """Return where the state counts the rows of a table that the task has copied."""
    return SLOTS + ((tag & (SILENT - 1)) >> 1)


@njit(cache=True, **ON_DISK)
def _new_slot(state, stamps, slots, capacity, tag, position):  # type: ignore[no-untyped-def]
    """Return the slot for the row at `position`, which the task has not copied so far, in the table with this `tag`.

    `state`, `stamps` and `slots` are as in `Scratch`, and updated; there are `capacity` slots.
    """
    counter = _slots_in_use(tag)
    slot = state[counter]
    if slot >= capacity:
        raise RuntimeError(SCRATCH_FULL)
    state[counter] = slot + 1
    stamps[position] = state[STAMP]
    slots[position] = slot
    return slot


@compiled
def log(view, position, write):  # type: ignore[no-untyped-def]
    """Append an access to the log or, where there is none, fetch what it touches."""
    if isinstance(view.member("rows"), types.NoneType):
        return lambda view, position, write: fetch(view, position)

    def append(view, position, write):  # type: ignore[no-untyped-def]
        if view.tag < SILENT:
            _append(view.logged, view.rows, view.tags, view.tag, position, write)

    return append


@compiled
def log_once(view, position, write):  # type: ignore[no-untyped-def]
    """The same unless the task has just done so: a loop over a row is one access, or one per table."""
    if isinstance(view.member("rows"), types.NoneType):

        def fetch_once(view, position, write):  # type: ignore[no-untyped-def]
            last = np.uint64(view.place + LOGGED)
            if view.recent[last] != position + 1:
                view.recent[last] = position + 1
                fetch(view, position)

        return fetch_once

    def append_once(view, position, write):  # type: ignore[no-untyped-def]
        if view.tag < SILENT:
            _append_once(view.logged, view.rows, view.tags, view.tag, view.recent, view.place, position, write)

    return append_once


@register_jitable
def _is_copied(view, position):  # type: ignore[no-untyped-def]
    """Whether this task has copied a row; fresh stamps are all zeros, and mark none."""
    return view.stamps[position] == view.state[STAMP]


@register_jitable
def scratch_slot(view, position):  # type: ignore[no-untyped-def]
    """Return the slot of this task's private copy of a row; the first access creates the copy."""
    if _is_copied(view, position):
        return np.int64(view.slots[position])
    return _new_slot(view.state, view.stamps, view.slots, len(view.copies), view.tag, position)


# Assigning whole rows would also compile an error message: one second for rows of numbers, ten for more dimensions.


@register_jitable
def _copy_row(target, slot, source, position):  # type: ignore[no-untyped-def]
    """`target[slot] = source[position]`."""
    for item in range(source.shape[1]):
        target[slot, item] = source[position, item]


@njit(**INNER)
def _copy_deep_row(target, slot, source, position):  # type: ignore[no-untyped-def]
    """`target[slot] = source[position]`, for rows of several dimensions."""
    rows = max(len(source), 1)
    flat_target = target.reshape((len(target), target.size // max(len(target), 1)))
    flat_source = source.reshape((len(source), source.size // rows))
    for item in range(flat_source.shape[1]):
        flat_target[slot, item] = flat_source[position, item]


def recorded_row(view: ViewType, log: Any = log, write: int = 1) -> Any:
    """Return the implementation of `T[i]` for a table that is recorded."""
    return (_row_of_ghost if isinstance(view, GhostType) else _row_of_scratch)(view, log, write)


def _row_of_ghost(view: ViewType, log: Any, write: int) -> Any:
    """Return the implementation of `T[i]` for ghosts."""
    data = view.member("data")
    if rows_are_scalars(data):

        def scalar(view, index):  # type: ignore[no-untyped-def]
            log(view, wrap(index, len(view.data)), 0)
            return view.fill

        return scalar
    if isinstance(data, types.Array) and data.ndim == 1:

        def record(view, index):  # type: ignore[no-untyped-def]
            position = wrap(index, len(view.data))
            log(view, position, write)
            return make_ghost_record(view.data[np.uint64(position)], view.fill)

        return record
    if isinstance(data, RaggedType):

        def ragged_row(view, index):  # type: ignore[no-untyped-def]
            position = wrap(index, len(view.data))
            log(view, position, write)
            offsets = view.data.offsets
            return make_ghost_row(((offsets[position + 1] - offsets[position],), view.fill))

        return ragged_row

    def row(view, index):  # type: ignore[no-untyped-def]
        position = wrap(index, len(view.data))
        log(view, position, write)
        return make_ghost_row((view.data.shape[1:], shown(view.fill, np.uint64(position))))

    return row


def _row_of_scratch(view: ViewType, log: Any, write: int) -> Any:
    """Return the implementation of `T[i]` for private copies."""
    data = view.member("data")
    if isinstance(data, RaggedType):

        def ragged_row(view, index):  # type: ignore[no-untyped-def]
            position = wrap(index, len(view.data))
            log(view, position, write)
            length = view.data.offsets[position + 1] - view.data.offsets[position]
            fresh = not _is_copied(view, position)
            row = view.copies[scratch_slot(view, position), :length]
            if fresh:
                source = view.data[position]
                for item in range(length):
                    row[item] = source[item]
            return row

        return ragged_row
    if rows_are_scalars(data):

        def scalar(view, index):  # type: ignore[no-untyped-def]
            position = wrap(index, len(view.data))
            log(view, position, 0)
            # A number is copied only when it is written: most tasks read many and write few.
            if view.state[_slots_in_use(view.tag)] > 0 and _is_copied(view, position):
                return view.copies[view.slots[position]]
            return view.data[position]

        return scalar

    copy_row = _copy_row if data.ndim == 2 else _copy_deep_row

    def row(view, index):  # type: ignore[no-untyped-def]
        position = wrap(index, len(view.data))
        log(view, position, write)
        copied, in_slot = np.uint64(view.place + COPIED), np.uint64(view.place + SLOT)
        if view.recent[copied] != position + 1:
            fresh = not _is_copied(view, position)
            slot = scratch_slot(view, position)
            if fresh:
                copy_row(view.copies, slot, view.data, position)
            view.recent[copied], view.recent[in_slot] = position + 1, slot
        return view.copies[np.uint64(view.recent[in_slot])]

    return row


def _row_of(write: int) -> Any:
    """Make the function of `view[index]` where the row is logged once, as written or only read.

    So it is where only items of the row are used, perhaps in a loop over all of them.
    """

    @compiled
    def row(view, index):  # type: ignore[no-untyped-def]
        if isinstance(view, RECORDING) and isinstance(index, types.Integer | types.Boolean):
            return recorded_row(view, log_once, write)
        return lambda view, index: view[index]

    return row


row_of, read_row_of = _row_of(1), _row_of(0)


@compiled
def check_row_fits(view, value):  # type: ignore[no-untyped-def]
    """Raise for a value of the wrong length for a row: for a ghost, nothing else checks it."""
    is_row = isinstance(value, GhostRowType | types.BaseTuple | types.List | types.Array)
    if not is_row or (isinstance(value, types.Array) and value.ndim == 0):
        return lambda view, value: None
    if getattr(view.member("data"), "ndim", 0) != 2 or (isinstance(value, types.Array) and value.ndim > 1):
        raise TypingError("whether a value fits is known only for rows of one dimension")

    def check(view, value):  # type: ignore[no-untyped-def]
        if len(value) != 1 and len(value) != view.data.shape[1]:
            raise ValueError("a value whose length is not that of the row it is stored in")

    return check
