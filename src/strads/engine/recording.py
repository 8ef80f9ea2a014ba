"""Recording views: how each argument of a body reaches it during reconnaissance (DESIGN §4.3).

A table that the loop writes is seen as *ghosts* (every element reads as one constant, writes vanish, so that the
compiler drops all arithmetic and leaves the index computation) or, where the body needs real values, as *scratch*
(each task works on private copies of the rows that it touches). Both log every access.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

from strads.engine.view_types import bind_with, local_counter
from strads.engine.views import (
    SLOTS,
    TASK,
    make_clamped,
    make_ghost,
    make_ignoring,
    make_ragged,
    make_scratch,
)


@njit(nogil=True, forceinline=True)
def ignoring_view(storage, context):  # type: ignore[no-untyped-def]
    """Accumulator that adds nothing."""
    return make_ignoring((storage,))


@njit(nogil=True, forceinline=True)
def plain_ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """Ragged table that is only read: storage is (values, offsets)."""
    return make_ragged((storage[0], storage[1]))


@njit(nogil=True, forceinline=True)
def clamped_view(storage, context):  # type: ignore[no-untyped-def]
    """Read-only table at indices computed from ghosts: they mean nothing, and the live view checks them."""
    return make_clamped((storage,))


@njit(nogil=True, forceinline=True)
def ghost_view(storage, context):  # type: ignore[no-untyped-def]
    """Storage is (data, tag, rows, tags, fill)."""
    return make_ghost((storage[0], storage[1], storage[2], storage[3], context[0], storage[4]))


@njit(nogil=True, forceinline=True)
def ghost_ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """As `ghost_view`; the data are (values, offsets)."""
    data = make_ragged((storage[0][0], storage[0][1]))
    return make_ghost((data, storage[1], storage[2], storage[3], context[0], storage[4]))


@njit(nogil=True, forceinline=True)
def scratch_view(storage, context):  # type: ignore[no-untyped-def]
    """Storage is (data, tag, rows, tags, state, copies, stamps, slots)."""
    log = (storage[1], storage[2], storage[3], context[0])
    return make_scratch((storage[0], *log, storage[4], storage[5], storage[6], storage[7]))


@njit(nogil=True, forceinline=True)
def scratch_ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """As `scratch_view`; the data are (values, offsets)."""
    data = make_ragged((storage[0][0], storage[0][1]))
    log = (storage[1], storage[2], storage[3], context[0])
    return make_scratch((data, *log, storage[4], storage[5], storage[6], storage[7]))


def make_recorder(body: Any, constructors: tuple[Any | None, ...], *, scratch: bool) -> Callable[..., int]:
    """Compile-on-call recorder of one body: `record(start, step, values, first, count, state, counts, storages)`.

    Runs the tasks `first..first + count - 1` over recording views and returns the length of the log. `counts[i]`
    becomes the number of accesses that the i-th of them logged; `state` holds the position of the task at work
    and, for `scratch` views, the slots in use.
    """
    bind = bind_with(constructors)

    @njit(nogil=True, error_model="numpy", boundscheck=True)
    def record(start, step, values, first, count, state, counts, storages):  # type: ignore[no-untyped-def]
        logged = local_counter()
        for number in range(count):
            task = first + number
            before = logged[0]
            state[TASK] = task
            if scratch:
                state[SLOTS:] = 0
            index = values[task] if len(values) > 0 else start + step * task
            body(index, *bind(storages, (logged,)))
            counts[number] = logged[0] - before
        return logged[0]

    return record
