"""What a body does with a table: `T[i]`, `T[i] = x`, `len(T)`, `T.shape`, for every kind of view."""

import operator
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload, overload_attribute, register_jitable

from strads.engine.compiling import INNER, compiled
from strads.engine.views import shape_errors  # noqa: F401 – of assignments to rows
from strads.engine.views.ghost_records import shown
from strads.engine.views.indices import clipped, item_of, owned, refuse_index, rest_of, set_item_of, wrap
from strads.engine.views.kinds import (
    LIVE,
    RECORDING,
    TABLES,
    AlignedType,
    CheckedType,
    ElementsType,
    GhostRowType,
    GhostType,
    GuardedType,
    OffsetsType,
    RaggedType,
    ScratchType,
    SegmentedType,
    make_ghost_row,
)
from strads.engine.views.recorded_rows import (
    check_row_fits,
    log,
    log_once,
    read_row_of,
    recorded_row,
    row_of,
    scratch_slot,
)
from strads.engine.views.types import ViewType


def _is_element(view: ViewType, index: Any) -> bool:
    """Whether a tuple of indices selects a single number of a table."""
    data = view.member("data")
    axes = 2 if isinstance(data, RaggedType) else data.ndim
    is_record = isinstance(data, types.Array) and isinstance(data.dtype, types.Record)
    return len(index) == axes and not is_record and all(isinstance(item, types.Integer) for item in index)


@compiled
def _element_of(view, index):  # type: ignore[no-untyped-def]
    """Return the flat index of an element of a table of two to four dimensions."""

    last = len(index) - 1
    if last == 0:
        return lambda view, index: wrap(index[0], len(view.data))

    def element(view, index):  # type: ignore[no-untyped-def]
        size = view.data.shape[last]
        return _element_of(view, index[:last]) * size + wrap(index[last], size)

    return element


def _is_unchecked(view: ViewType) -> bool:
    """Whether what is selected from a row needs no check, or the row checks it by itself."""
    return isinstance(view, GhostRowType) or (
        isinstance(view, LIVE) and isinstance(view.member("checks"), types.NoneType)
    )


@overload(operator.getitem, jit_options=INNER)
def _view_getitem(view, index):  # type: ignore[no-untyped-def]
    if not isinstance(view, (*TABLES, GhostRowType)):
        return None
    if isinstance(view, SegmentedType) and isinstance(index, types.SliceType):

        def segment(view, index):  # type: ignore[no-untyped-def]
            start = clipped(index.start, view.rows)
            stop = max(clipped(index.stop, view.rows), start)
            return view.data[start + view.shift : stop + view.shift]

        return segment
    if isinstance(index, types.BaseTuple) and len(index) > 1 and isinstance(index[0], types.SliceType):
        if isinstance(view, SegmentedType) and len(index) == 2:
            return lambda view, index: item_of(view[index[0]], (slice(None), index[1]))
        if isinstance(view, CheckedType):
            return lambda view, index: item_of(view.data, index)
        return refuse_index(index)
    if isinstance(index, types.BaseTuple):
        if len(index) == 1:
            return lambda view, index: view[index[0]]
        if _is_unchecked(view):
            return lambda view, index: view[index[0]][rest_of(index)]
        if isinstance(view, ElementsType):
            if not _is_element(view, index):
                return refuse_index(index)

            def element(view, index):  # type: ignore[no-untyped-def]
                log_once(view, _element_of(view, index), 0)
                return shown(view.fill, index)

            return element
        row = read_row_of if isinstance(view, RECORDING) and _is_element(view, index) else row_of
        return lambda view, index: item_of(row(view, index[0]), rest_of(index))
    if isinstance(view, ElementsType):
        return refuse_index(index)
    if not isinstance(index, types.Integer | types.Boolean):
        if isinstance(view, AlignedType) or (isinstance(view, CheckedType) and isinstance(index, types.SliceType)):
            return lambda view, index: view.data[index]
        return refuse_index(index)
    if isinstance(view, AlignedType):
        return lambda view, index: view.data[view.position]
    if isinstance(view, SegmentedType):
        return lambda view, index: view.data[np.uint64(np.int64(index) + view.shift)]
    if isinstance(view, OffsetsType):
        return lambda view, index: view.data[view.position, np.uint64(np.int64(index) - view.index)]
    if isinstance(view, RaggedType):

        def ragged(view, index):  # type: ignore[no-untyped-def]
            position = wrap(index, len(view.offsets) - 1)
            return view.values[view.offsets[position] : view.offsets[position + 1]]

        return ragged
    if isinstance(view, CheckedType):
        return lambda view, index: view.data[wrap(index, len(view.data))]
    if isinstance(view, GuardedType):

        def guarded(view, index):  # type: ignore[no-untyped-def]
            return view.data[np.uint64(owned(view, index))]

        return guarded
    if isinstance(view, GhostRowType):

        def element(view, index):  # type: ignore[no-untyped-def]
            return shown(view.fill, np.uint64(wrap(index, view.shape[0])))

        def part(view, index):  # type: ignore[no-untyped-def]
            wrap(index, view.shape[0])
            return make_ghost_row((view.shape[1:], view.fill))

        return element if len(view.member("shape")) == 1 else part
    return recorded_row(view)


@overload(operator.setitem, jit_options=INNER)
def _view_setitem(view, index, value):  # type: ignore[no-untyped-def]
    if isinstance(view, ElementsType):
        if not isinstance(index, types.BaseTuple) or not _is_element(view, index):
            return refuse_index(index)

        def set_element(view, index, value):  # type: ignore[no-untyped-def]
            log_once(view, _element_of(view, index), 1)

        return set_element
    if not isinstance(view, (CheckedType, GuardedType, GhostType, GhostRowType, ScratchType)):
        return None
    if isinstance(index, types.BaseTuple):
        if len(index) == 1:

            def of_one(view, index, value):  # type: ignore[no-untyped-def]
                view[index[0]] = value

            return of_one
        if _is_unchecked(view):

            def unchecked(view, index, value):  # type: ignore[no-untyped-def]
                row = view[index[0]]
                row[rest_of(index)] = value

            return unchecked

        def nested(view, index, value):  # type: ignore[no-untyped-def]
            set_item_of(row_of(view, index[0]), rest_of(index), value)

        return nested
    if not isinstance(index, types.Integer | types.Boolean):
        return refuse_index(index)
    if isinstance(view, GuardedType):

        def guarded(view, index, value):  # type: ignore[no-untyped-def]
            view.data[np.uint64(owned(view, index))] = value

        return guarded
    if isinstance(view, CheckedType):

        def checked(view, index, value):  # type: ignore[no-untyped-def]
            view.data[wrap(index, len(view.data))] = value

        return checked
    if isinstance(view, GhostRowType):
        if len(view.member("shape")) > 1 and not isinstance(value, types.Number | types.Boolean):
            raise TypingError("only numbers are known to fit into a part of a row")

        def element(view, index, value):  # type: ignore[no-untyped-def]
            wrap(index, view.shape[0])

        return element
    if isinstance(view, GhostType):

        def ghost(view, index, value):  # type: ignore[no-untyped-def]
            log(view, wrap(index, len(view.data)), 1)
            check_row_fits(view, value)

        return ghost

    def scratch(view, index, value):  # type: ignore[no-untyped-def]
        position = wrap(index, len(view.data))
        log(view, position, 1)
        view.copies[scratch_slot(view, position)] = value

    return scratch


@overload(len, jit_options=INNER)
def _view_len(view):  # type: ignore[no-untyped-def]
    if isinstance(view, RaggedType):
        return lambda view: len(view.offsets) - 1
    if isinstance(view, GhostRowType):
        return lambda view: view.shape[0]
    if isinstance(view, AlignedType | SegmentedType | OffsetsType):
        return lambda view: view.rows
    if isinstance(view, TABLES):
        return lambda view: len(view.data)
    return None


@register_jitable
def _product(shape):  # type: ignore[no-untyped-def]
    size = 1
    for length in shape:
        size *= length
    return size


# Numba compares the signatures of these functions with those of the functions returned: both lack annotations.
def _shape(view):  # type: ignore[no-untyped-def]
    if isinstance(view, RaggedType | OffsetsType) or isinstance(view.member("data"), ViewType):
        return lambda view: (len(view),)
    return lambda view: (len(view), *view.data.shape[1:])


def _size(view):  # type: ignore[no-untyped-def]
    return lambda view: _product(view.shape)


def _ndim(view):  # type: ignore[no-untyped-def]
    return lambda view: len(view.shape)


def _dtype(view):  # type: ignore[no-untyped-def]
    return (lambda view: view.values.dtype) if isinstance(view, RaggedType) else (lambda view: view.data.dtype)


for _type in TABLES:
    overload_attribute(_type, "dtype")(_dtype)
    overload_attribute(_type, "shape")(_shape)
for _type in (*TABLES, GhostRowType):
    overload_attribute(_type, "size")(_size)
    overload_attribute(_type, "ndim")(_ndim)
