"""Indices of views, with the meaning that they have in Python, and the checks that a run makes of them."""

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, register_jitable

from strads.engine.compiling import INLINED, INNER, compiled

INDEX_ERROR = "index out of range"
PATTERN_CHANGED = "access outside the recorded ones"


@compiled
def wrap(index, rows):  # type: ignore[no-untyped-def]
    """Return an index with Python semantics: negative counts from the end; raises if out of range."""
    if isinstance(index, types.Integer) and not index.signed:

        def unsigned(index, rows):  # type: ignore[no-untyped-def]
            if np.uint64(index) >= np.uint64(rows):  # might be negative as a signed number
                raise IndexError(INDEX_ERROR)
            return np.int64(index)

        return unsigned

    def signed(index, rows):  # type: ignore[no-untyped-def]
        position = np.int64(index)
        if position < 0:
            position += rows
        if position < 0 or position >= rows:
            raise IndexError(INDEX_ERROR)
        return position

    return signed


@register_jitable
def clipped(end, rows):  # type: ignore[no-untyped-def]
    """Return a slice end with Python semantics: negative counts from the end; clipped to the table."""
    position = np.int64(end)
    if position < 0:
        position += rows
    return min(max(position, np.int64(0)), np.int64(rows))


@compiled
def rest_of(index):  # type: ignore[no-untyped-def]
    """Return what a tuple of two or more indices selects from a row: one index, or the tuple of the others."""
    return (lambda index: index[1]) if len(index) == 2 else (lambda index: index[1:])


# Overloads are compiled without bounds checks regardless of the body; indexing within rows requests them explicitly.
@njit(boundscheck=True, **INLINED)
def item_of(row, index):  # type: ignore[no-untyped-def]
    """`row[index]`, checked."""
    return row[index]


@njit(boundscheck=True, **INLINED)
def set_item_of(row, index, value):  # type: ignore[no-untyped-def]
    """`row[index] = value`, checked."""
    row[index] = value


@compiled
def _unit_of(blocks, position):  # type: ignore[no-untyped-def]
    """Return the unit of ownership: the row, or its block."""
    if isinstance(blocks, types.NoneType):
        return lambda blocks, position: position
    return lambda blocks, position: blocks[np.uint64(position)]


@njit(**INNER)
def _claimed(owner, blocks, holder, position):  # type: ignore[no-untyped-def]
    """Whether the row at `position`, outside the job's range, is one that the `holder` claimed when it began.

    `owner` has the holder of each unit of the table, and `blocks` the unit of each row, see `Guarded`.
    """
    return len(owner) > 0 and owner[np.uint64(_unit_of(blocks, position))] == holder


@compiled
def owned(view, index):  # type: ignore[no-untyped-def]
    """Return the row of a guarded table that an index denotes; raises if another job may be using it."""

    def position_of(view, index):  # type: ignore[no-untyped-def]
        position = np.int64(index)
        # One comparison for most accesses: rows from `low` on are in the table and not negative.
        if np.uint64(position - view.low) < np.uint64(view.high - view.low):
            return position
        if np.uint64(position) < np.uint64(len(view.data)) and _claimed(view.owner, view.blocks, view.holder, position):
            return position
        return _other_row(view, index)

    return position_of


@intrinsic
def _other_row(typing_context: Any, view: Any, index: Any) -> Any:
    """Return the row of any index, as `owned` does.

    It is called, not inlined: the rare cases would take registers from the usual ones.
    """

    def other_row(view, index):  # type: ignore[no-untyped-def]
        row = wrap(index, len(view.data))
        if view.low <= row and row < view.high:
            return row
        if _claimed(view.owner, view.blocks, view.holder, row):
            return row
        raise RuntimeError(PATTERN_CHANGED)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        compiled = context.compile_subroutine(builder, other_row, signature)
        function = context.declare_function(builder.module, compiled.fndesc)
        convention = context.call_conv
        status, row = convention.call_function(
            builder, function, types.int64, signature.args, arguments, attrs=("noinline",)
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return row

    return types.int64(view, index), generate


def rows_are_scalars(data: Any) -> bool:
    """Whether indexing a table of this type by one integer gives a scalar, not a row or record."""
    return isinstance(data, types.Array) and data.ndim == 1 and not isinstance(data.dtype, types.Record)


def refuse_index(index: Any) -> None:
    """Reject at compile time an index that is not a row number."""
    raise TypingError(f"this table is indexed by row number, not by {index}: loop over its rows")
