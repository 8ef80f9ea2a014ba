"""Elements of rows that have been logged before the loop that uses them."""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from strads.engine.views.indices import item_of, set_item_of
from strads.engine.views.kinds import RECORDING, GhostType
from strads.engine.views.recorded_rows import ghost_getitem, log_once, scratch_getitem
from strads.engine.views.types import INNER

_NO_ROW = np.iinfo(np.int64).max


def log_read(iterations: Any, view: Any, index: Any) -> None:
    """Log that the row `view[index]` is read, if it exists, and if there are any iterations."""
    raise NotImplementedError("for compiled code only")


def log_write(iterations: Any, view: Any, index: Any) -> None:
    """Log that the row `view[index]` is written, if it exists, and if there are any iterations."""
    raise NotImplementedError("for compiled code only")


def logged_item(view: Any, index: Any) -> Any:
    """`view[index]`, a number of a row that has been logged."""
    raise NotImplementedError("for compiled code only")


def set_logged_item(view: Any, index: Any, value: Any) -> None:
    """`view[index] = value`, given several indices, of a row that has been logged."""
    raise NotImplementedError("for compiled code only")


def item_if_it_exists(data: Any, index: Any) -> Any:
    """`data[index]` of a table that is only read; if that does not exist, a number that no row has, and none uses."""
    raise NotImplementedError("for compiled code only")


@overload(item_if_it_exists, jit_options=INNER)
def _compiled_item_if_it_exists(data, index):  # type: ignore[no-untyped-def]
    is_number = isinstance(data, types.Array) and isinstance(data.dtype, types.Integer)
    if is_number and data.ndim == 1 and isinstance(index, types.Integer):

        def item(data, index):  # type: ignore[no-untyped-def]
            return np.int64(data[index]) if -len(data) <= index and index < len(data) else np.int64(_NO_ROW)

        return item
    is_pair = isinstance(index, types.BaseTuple) and all(isinstance(each, types.Integer) for each in index)
    if is_number and data.ndim == 2 and is_pair and len(index) == 2:

        def item_of_row(data, index):  # type: ignore[no-untyped-def]
            rows, columns = data.shape
            is_row, is_column = -rows <= index[0] and index[0] < rows, -columns <= index[1] and index[1] < columns
            return np.int64(data[index[0], index[1]]) if is_row and is_column else np.int64(_NO_ROW)

        return item_of_row
    return lambda data, index: item_of(data, index)


def _is_logged(view: Any, index: Any) -> bool:
    """Whether `log_read` and `log_write` log the row."""
    return isinstance(view, RECORDING) and isinstance(index, types.Integer)


def _define_log(function: Any, write: int) -> None:
    @overload(function, jit_options=INNER)
    def _compiled(iterations, view, index):  # type: ignore[no-untyped-def]
        if not _is_logged(view, index):
            return lambda iterations, view, index: None

        def log_if_used(iterations, view, index):  # type: ignore[no-untyped-def]
            position, rows = np.int64(index), len(view)
            if position < 0:
                position += rows
            if len(iterations) > 0 and position >= 0 and position < rows:
                log_once(view, position, write)  # type: ignore[arg-type]

        return log_if_used


_define_log(log_read, 0)
_define_log(log_write, 1)


def _log_nothing(view: Any, position: int, write: int) -> None:
    raise NotImplementedError("for compiled code only")


@overload(_log_nothing, jit_options=INNER)
def _compiled_log_nothing(view, position, write):  # type: ignore[no-untyped-def]
    return lambda view, position, write: None


def _row(view: Any, index: Any) -> Any:
    raise NotImplementedError("for compiled code only")


@overload(_row, jit_options=INNER)
def _compiled_row(view, index):  # type: ignore[no-untyped-def]
    return (ghost_getitem if isinstance(view, GhostType) else scratch_getitem)(view, _log_nothing)


@overload(logged_item, jit_options=INNER)
def _compiled_logged_item(view, index):  # type: ignore[no-untyped-def]
    if not _is_logged(view, index[0]):
        return lambda view, index: view[index]
    if len(index) == 2:
        return lambda view, index: item_of(_row(view, index[0]), index[1])
    if isinstance(view, GhostType):  # whose items are those of `item_of`, which must not call itself
        return lambda view, index: _row(view, index[0])[index[1:]]
    return lambda view, index: item_of(_row(view, index[0]), index[1:])


@overload(set_logged_item, jit_options=INNER)
def _compiled_set_logged_item(view, index, value):  # type: ignore[no-untyped-def]
    if not _is_logged(view, index[0]):

        def set_item(view, index, value):  # type: ignore[no-untyped-def]
            view[index] = value

        return set_item
    if len(index) == 2:

        def set_in_row(view, index, value):  # type: ignore[no-untyped-def]
            set_item_of(_row(view, index[0]), index[1], value)

        return set_in_row

    def set_in_part(view, index, value):  # type: ignore[no-untyped-def]
        set_item_of(_row(view, index[0]), index[1:], value)

    def set_in_ghost(view, index, value):  # type: ignore[no-untyped-def]
        part = _row(view, index[0])
        part[index[1:]] = value

    return set_in_ghost if isinstance(view, GhostType) else set_in_part
