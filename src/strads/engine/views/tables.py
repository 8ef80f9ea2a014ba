"""Views: the container types for which Numba compiles the same loop body (DESIGN §4.2).

A *live* table is its plain array. The others are structs over arrays: `Aligned` (a table stored in plan order),
`Ragged`, `Accumulating`, `Guarded` (lets a job access only its own rows) and, for reconnaissance, `Ghost` and
`Scratch`, which log each access and return objects that the body may read and write without effect; `Elements`
are ghosts of tables that are only used as T[i, j], whose elements are logged individually.
"""

import operator
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload, overload_attribute, overload_method, register_jitable

from strads.engine.stopping import check_stop
from strads.engine.views.types import INLINED, ViewType, define_view

# Fields of the `state` array of a recording.
TASK, SLOTS = 0, 1  # position of the current task, then the number of scratch slots in use per table

# A table's tag: twice its number, plus 1 in the log for a write; `SILENT` tables (relaxed ones) are not logged.
SILENT = 128
MAX_TABLES = SILENT // 2

AlignedType, make_aligned = define_view("Aligned", "data", "position", "rows", "checks")
SegmentedType, make_segmented = define_view("Segmented", "data", "shift", "rows", "checks")
OffsetsType, make_offsets = define_view("Offsets", "data", "position", "index", "rows")
RaggedType, make_ragged = define_view("Ragged", "values", "offsets")
AccumulatingType, make_accumulating = define_view("Accumulating", "totals", "job")
IgnoringType, make_ignoring = define_view("Ignoring", "total")
CheckedType, make_checked = define_view("Checked", "data", "checks")
GuardedType, make_guarded = define_view("Guarded", "data", "low", "high", "owner", "blocks", "holder", "checks")
GhostType, make_ghost = define_view("Ghost", "data", "tag", "rows", "tags", "logged", "fill")
ElementsType, make_elements = define_view("Elements", "data", "tag", "rows", "tags", "logged", "fill")
GhostRowType, make_ghost_row = define_view("GhostRow", "length", "fill")
ScratchType, make_scratch = define_view(
    "Scratch", "data", "tag", "rows", "tags", "logged", "state", "copies", "stamps", "slots"
)

_RECENT = 6  # recent accesses checked for repetition: three tables, each read and written

INDEX_ERROR = "index out of range"
SCRATCH_FULL = "scratch rows used up"
PATTERN_CHANGED = "access outside the recorded ones"

_RECORDING = (GhostType, ScratchType)
_LIVE = (AlignedType, SegmentedType, CheckedType, GuardedType)  # `checks` (True or None) determines the compiled code
_TABLES = (
    *(AlignedType, SegmentedType, OffsetsType, RaggedType, CheckedType, GuardedType),
    *(GhostType, ElementsType, ScratchType),
)


def _wrap(index: int, rows: int) -> int:
    """Return an index with Python semantics: negative counts from the end; raises if out of range."""
    position = index + rows if index < 0 else index
    if not 0 <= position < rows:
        raise IndexError(INDEX_ERROR)
    return position


@overload(_wrap)
def _compiled_wrap(index, rows):  # type: ignore[no-untyped-def]
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
def _clipped(end, rows):  # type: ignore[no-untyped-def]
    """Return a slice end with Python semantics: negative counts from the end; clipped to the table."""
    position = np.int64(end)
    if position < 0:
        position += rows
    return min(max(position, np.int64(0)), np.int64(rows))


# Overloads are compiled without bounds checks regardless of the body; indexing within rows requests them explicitly.
@njit(boundscheck=True, **INLINED)
def item_of(row, index):  # type: ignore[no-untyped-def]
    """`row[index]`, checked."""
    return row[index]


@njit(boundscheck=True, **INLINED)
def set_item_of(row, index, value):  # type: ignore[no-untyped-def]
    """`row[index] = value`, checked."""
    row[index] = value


@register_jitable
def _log(view, position, write):  # type: ignore[no-untyped-def]
    """Append an access; a full buffer wraps around, and the caller repeats with a larger one."""
    if view.tag >= SILENT:
        return
    entry = view.logged[0]
    if entry < len(view.rows):
        view.rows[np.uint64(entry)] = position  # unsigned: no negative-index check
        view.tags[np.uint64(entry)] = view.tag | write
    else:
        check_stop()  # endless logging can be stopped, too
        if len(view.rows) > 0:
            view.rows[entry % len(view.rows)] = position
            view.tags[entry % len(view.rows)] = view.tag | write
    view.logged[0] = entry + 1


@register_jitable
def _log_once(view, position, write):  # type: ignore[no-untyped-def]
    """Append an access unless the task has just logged it: a loop over a row is one access, or one per table."""
    entry, size = view.logged[0], len(view.rows)
    for recent in range(max(view.logged[1], entry - min(_RECENT, size)), entry):
        place = recent if recent < size else recent % size
        if view.rows[np.uint64(place)] == position and view.tags[np.uint64(place)] | 1 == view.tag | 1:
            view.tags[np.uint64(place)] |= write
            return
    _log(view, position, write)


@register_jitable
def _scratch_slot(view, position):  # type: ignore[no-untyped-def]
    """Return the slot of this task's private copy of a row; the first access creates the copy."""
    task = view.state[TASK]
    if view.stamps[position] == task:
        return view.slots[position]
    counter = SLOTS + ((view.tag & (SILENT - 1)) >> 1)
    slot = view.state[counter]
    if slot >= len(view.copies):
        raise RuntimeError(SCRATCH_FULL)
    view.state[counter] = slot + 1
    view.stamps[position] = task
    view.slots[position] = slot
    return slot


@njit(nogil=True)
def _copy_row(target, slot, source, position):  # type: ignore[no-untyped-def]
    """`target[slot] = source[position]`; assigning arrays of several dimensions takes Numba ten seconds to compile."""
    rows = max(len(source), 1)
    flat_target = target.reshape((len(target), target.size // max(len(target), 1)))
    flat_source = source.reshape((len(source), source.size // rows))
    for item in range(flat_source.shape[1]):
        flat_target[slot, item] = flat_source[position, item]


def _unit_of(blocks: Any, position: int) -> int:
    """Return the unit of ownership: the row, or its block."""
    raise NotImplementedError("for compiled code only")


@overload(_unit_of)
def _compiled_unit_of(blocks, position):  # type: ignore[no-untyped-def]
    if isinstance(blocks, types.NoneType):
        return lambda blocks, position: position
    return lambda blocks, position: blocks[np.uint64(position)]


@register_jitable
def _check_owned(view, position):  # type: ignore[no-untyped-def]
    """Raise for a row that another job may be using."""
    if view.low <= position and position < view.high:
        return
    # Without owners, only `low` and `high` count.
    if len(view.owner) > 0 and view.owner[np.uint64(_unit_of(view.blocks, position))] == view.holder:
        return
    raise RuntimeError(PATTERN_CHANGED)


def _rows_are_scalars(data: Any) -> bool:
    """Whether indexing a table of this type by one integer gives a scalar, not a row or record."""
    return isinstance(data, types.Array) and data.ndim == 1 and not isinstance(data.dtype, types.Record)


def _refuse_index(view: ViewType, index: Any) -> None:
    message = f"a table that the loop writes is indexed by row number, not by {index}; loop over the rows"
    raise TypingError(message)


def _ghost_getitem(view: ViewType, log: Any = _log, write: int = 1) -> Any:
    data = view.member("data")
    if _rows_are_scalars(data):

        def scalar(view, index):  # type: ignore[no-untyped-def]
            log(view, _wrap(index, len(view.data)), 0)
            return view.fill

        return scalar
    if isinstance(data, RaggedType):

        def ragged_row(view, index):  # type: ignore[no-untyped-def]
            position = _wrap(index, len(view.data))
            log(view, position, write)
            offsets = view.data.offsets
            return make_ghost_row((offsets[position + 1] - offsets[position], view.fill))

        return ragged_row
    if data.ndim == 2:

        def row(view, index):  # type: ignore[no-untyped-def]
            log(view, _wrap(index, len(view.data)), write)
            return make_ghost_row((view.data.shape[1], view.fill))

        return row
    raise TypingError("only rows of one dimension can be recorded as ghosts")


def _scratch_getitem(view: ViewType, log: Any = _log, write: int = 1) -> Any:
    data = view.member("data")
    if isinstance(data, RaggedType):

        def ragged_row(view, index):  # type: ignore[no-untyped-def]
            position = _wrap(index, len(view.data))
            log(view, position, write)
            length = view.data.offsets[position + 1] - view.data.offsets[position]
            fresh = view.stamps[position] != view.state[TASK]
            row = view.copies[_scratch_slot(view, position), :length]
            if fresh:
                row[:] = view.data[position]
            return row

        return ragged_row
    write = 0 if _rows_are_scalars(data) else write

    def row(view, index):  # type: ignore[no-untyped-def]
        position = _wrap(index, len(view.data))
        log(view, position, write)
        fresh = view.stamps[position] != view.state[TASK]
        slot = _scratch_slot(view, position)
        if fresh:
            _copy_row(view.copies, slot, view.data, position)
        return view.copies[slot]

    return row


def _row_of(view: Any, index: Any) -> Any:
    """`view[index]`, of which an item is used immediately, possibly in a loop over all: logged once."""
    raise NotImplementedError("for compiled code only")


def _read_row_of(view: Any, index: Any) -> Any:
    """As `_row_of`, when a number is read."""
    raise NotImplementedError("for compiled code only")


def _define_row_of(function: Any, write: int) -> None:
    @overload(function)
    def _compiled(view, index):  # type: ignore[no-untyped-def]
        if isinstance(view, GhostType):
            return _ghost_getitem(view, _log_once, write)
        if isinstance(view, ScratchType):
            return _scratch_getitem(view, _log_once, write)
        return lambda view, index: view[index]


_define_row_of(_row_of, 1)
_define_row_of(_read_row_of, 0)


def _is_element(view: ViewType, index: Any) -> bool:
    """Whether a tuple of indices selects a single number of a table."""
    data = view.member("data")
    axes = 2 if isinstance(data, RaggedType) else data.ndim
    is_record = isinstance(data, types.Array) and isinstance(data.dtype, types.Record)
    return len(index) == axes and not is_record and all(isinstance(item, types.Integer) for item in index)


@register_jitable
def _element_of(view, index):  # type: ignore[no-untyped-def]
    """Return the flat index of an element."""
    return _wrap(index[0], len(view.data)) * view.data.shape[1] + _wrap(index[1], view.data.shape[1])


@overload(operator.getitem)
def _view_getitem(view, index):  # type: ignore[no-untyped-def]
    if not isinstance(view, (*_TABLES, GhostRowType)):
        return None
    if isinstance(view, SegmentedType) and isinstance(index, types.SliceType):

        def segment(view, index):  # type: ignore[no-untyped-def]
            start = _clipped(index.start, view.rows)
            stop = max(_clipped(index.stop, view.rows), start)
            return view.data[start + view.shift : stop + view.shift]

        return segment
    if isinstance(index, types.BaseTuple) and len(index) > 1 and isinstance(index[0], types.SliceType):
        if isinstance(view, SegmentedType) and len(index) == 2:
            return lambda view, index: item_of(view[index[0]], (slice(None), index[1]))
        if isinstance(view, CheckedType):
            return lambda view, index: item_of(view.data, index)
        return _refuse_index(view, index)
    if isinstance(index, types.BaseTuple):
        if len(index) == 1:
            return lambda view, index: view[index[0]]
        if isinstance(view, _LIVE) and isinstance(view.member("checks"), types.NoneType):
            if len(index) == 2:
                return lambda view, index: view[index[0]][index[1]]
            return lambda view, index: view[index[0]][index[1:]]
        if isinstance(view, ElementsType):
            if not _is_element(view, index):
                return _refuse_index(view, index)

            def element(view, index):  # type: ignore[no-untyped-def]
                _log_once(view, _element_of(view, index), 0)
                return view.fill

            return element
        row_of = _read_row_of if isinstance(view, _RECORDING) and _is_element(view, index) else _row_of
        if len(index) == 2:
            return lambda view, index: item_of(row_of(view, index[0]), index[1])
        return lambda view, index: item_of(row_of(view, index[0]), index[1:])
    if isinstance(view, ElementsType):
        return _refuse_index(view, index)
    if not isinstance(index, types.Integer | types.Boolean):
        if isinstance(view, AlignedType) or (isinstance(view, CheckedType) and isinstance(index, types.SliceType)):
            return lambda view, index: view.data[index]
        return _refuse_index(view, index)
    if isinstance(view, AlignedType):
        return lambda view, index: view.data[view.position]
    if isinstance(view, SegmentedType):
        return lambda view, index: view.data[np.uint64(index + view.shift)]
    if isinstance(view, OffsetsType):
        return lambda view, index: view.data[view.position, np.uint64(index - view.index)]
    if isinstance(view, RaggedType):

        def ragged(view, index):  # type: ignore[no-untyped-def]
            position = _wrap(index, len(view.offsets) - 1)
            return view.values[view.offsets[position] : view.offsets[position + 1]]

        return ragged
    if isinstance(view, CheckedType):
        return lambda view, index: view.data[_wrap(index, len(view.data))]
    if isinstance(view, GuardedType):

        def guarded(view, index):  # type: ignore[no-untyped-def]
            position = _wrap(index, len(view.data))
            _check_owned(view, position)
            return view.data[position]

        return guarded
    if isinstance(view, GhostRowType):

        def element(view, index):  # type: ignore[no-untyped-def]
            _wrap(index, view.length)
            return view.fill

        return element
    return _ghost_getitem(view) if isinstance(view, GhostType) else _scratch_getitem(view)


def _check_row_fits(view: Any, value: Any) -> None:
    """Raise for a value of the wrong length for a row: for a ghost, nothing else checks it."""
    raise NotImplementedError("for compiled code only")


@overload(_check_row_fits)
def _compiled_check_row_fits(view, value):  # type: ignore[no-untyped-def]
    is_row = isinstance(value, GhostRowType | types.BaseTuple | types.List)
    if not (is_row or (isinstance(value, types.Array) and value.ndim == 1)) or view.member("data").ndim != 2:
        return lambda view, value: None

    def check(view, value):  # type: ignore[no-untyped-def]
        if len(value) != 1 and len(value) != view.data.shape[1]:
            raise ValueError("a value of another length than the row that it is stored in")

    return check


@overload(operator.setitem)
def _view_setitem(view, index, value):  # type: ignore[no-untyped-def]
    if isinstance(view, ElementsType):
        if not isinstance(index, types.BaseTuple) or not _is_element(view, index):
            return _refuse_index(view, index)

        def set_element(view, index, value):  # type: ignore[no-untyped-def]
            _log_once(view, _element_of(view, index), 1)

        return set_element
    if not isinstance(view, (CheckedType, GuardedType, GhostType, GhostRowType, ScratchType)):
        return None
    if isinstance(index, types.BaseTuple):
        if isinstance(view, _LIVE) and isinstance(view.member("checks"), types.NoneType):

            def unchecked(view, index, value):  # type: ignore[no-untyped-def]
                row = view[index[0]]
                row[index[1:]] = value

            def unchecked_item(view, index, value):  # type: ignore[no-untyped-def]
                row = view[index[0]]
                row[index[1]] = value

            return unchecked_item if len(index) == 2 else unchecked
        if len(index) == 2:

            def nested(view, index, value):  # type: ignore[no-untyped-def]
                set_item_of(_row_of(view, index[0]), index[1], value)

            return nested

        def deeper(view, index, value):  # type: ignore[no-untyped-def]
            set_item_of(_row_of(view, index[0]), index[1:], value)

        return deeper
    if not isinstance(index, types.Integer | types.Boolean):
        return _refuse_index(view, index)
    if isinstance(view, GuardedType):

        def guarded(view, index, value):  # type: ignore[no-untyped-def]
            position = _wrap(index, len(view.data))
            _check_owned(view, position)
            view.data[position] = value

        return guarded
    if isinstance(view, CheckedType):

        def checked(view, index, value):  # type: ignore[no-untyped-def]
            view.data[_wrap(index, len(view.data))] = value

        return checked
    if isinstance(view, GhostRowType):

        def element(view, index, value):  # type: ignore[no-untyped-def]
            _wrap(index, view.length)

        return element
    if isinstance(view, GhostType):

        def ghost(view, index, value):  # type: ignore[no-untyped-def]
            _log(view, _wrap(index, len(view.data)), 1)
            _check_row_fits(view, value)

        return ghost

    def scratch(view, index, value):  # type: ignore[no-untyped-def]
        position = _wrap(index, len(view.data))
        _log(view, position, 1)
        view.copies[_scratch_slot(view, position)] = value

    return scratch


@overload(len)
def _view_len(view):  # type: ignore[no-untyped-def]
    if isinstance(view, RaggedType):
        return lambda view: len(view.offsets) - 1
    if isinstance(view, GhostRowType):
        return lambda view: view.length
    if isinstance(view, AlignedType | SegmentedType | OffsetsType):
        return lambda view: view.rows
    if isinstance(view, _TABLES):
        return lambda view: len(view.data)
    return None


# Numba compares the signatures of these functions with those of the functions returned: both lack annotations.
def _shape(view):  # type: ignore[no-untyped-def]
    if isinstance(view, GhostRowType):
        return lambda view: (view.length,)
    if isinstance(view, RaggedType | OffsetsType) or isinstance(view.member("data"), ViewType):
        return lambda view: (len(view),)
    return lambda view: (len(view), *view.data.shape[1:])


def _size(view):  # type: ignore[no-untyped-def]
    if isinstance(view, GhostRowType):
        return lambda view: view.length
    if isinstance(view, RaggedType | OffsetsType) or isinstance(view.member("data"), ViewType):
        return lambda view: len(view)
    if view.member("data").ndim == 1:
        return lambda view: len(view)
    return lambda view: len(view) * (view.data.size // max(len(view.data), 1))


def _ndim(view):  # type: ignore[no-untyped-def]
    data = None if isinstance(view, GhostRowType | RaggedType | OffsetsType) else view.member("data")
    ndim = data.ndim if isinstance(data, types.Array) else 1
    return lambda view: ndim


def _dtype(view):  # type: ignore[no-untyped-def]
    return (lambda view: view.values.dtype) if isinstance(view, RaggedType) else (lambda view: view.data.dtype)


for _type in _TABLES:
    overload_attribute(_type, "dtype")(_dtype)
for _type in (*_TABLES, GhostRowType):
    overload_attribute(_type, "shape")(_shape)
    overload_attribute(_type, "size")(_size)
    overload_attribute(_type, "ndim")(_ndim)


def _refuse_fraction(total: Any, amount: Any) -> None:
    if isinstance(total, types.Integer) and isinstance(amount, types.Float):
        raise TypingError("an accumulator that sums ints cannot add a float: make it with accumulator(0.0)")


@overload_method(AccumulatingType, "add")
def _accumulating_add(view, amount):  # type: ignore[no-untyped-def]
    _refuse_fraction(view.member("totals").dtype, amount)

    def add(view, amount):  # type: ignore[no-untyped-def]
        view.totals[view.job, 0] += amount

    return add


@overload_method(IgnoringType, "add")
def _ignoring_add(view, amount):  # type: ignore[no-untyped-def]
    _refuse_fraction(view.member("total"), amount)

    def add(view, amount):  # type: ignore[no-untyped-def]
        return None

    return add


def ghost_fill(dtype: np.dtype[Any]) -> Any:
    """Return the value of every element of a ghost: one, or for integers zero (a valid index)."""
    return dtype.type(0) if dtype.kind in "iub" else dtype.type(1)
