"""Elements of rows that have been logged before the loop that uses them."""

from typing import Any

import numpy as np
from numba import types

from strads.engine.compiling import compiled
from strads.engine.views.indices import item_of, rest_of, set_item_of
from strads.engine.views.kinds import RECORDING
from strads.engine.views.recorded_rows import log_once, recorded_row

_NO_ROW = np.iinfo(np.int64).max


@compiled
def item_if_it_exists(data, index):  # type: ignore[no-untyped-def]
    """`data[index]` of a table that is only read; if that does not exist, a number that no row has, and none uses."""
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


def _log_if_used(write: int) -> Any:
    """Make the function that logs an access to the row `view[index]`, if it exists, and if there are any iterations."""

    @compiled
    def log(iterations, view, index):  # type: ignore[no-untyped-def]
        if not _is_logged(view, index):
            return lambda iterations, view, index: None

        def log_if_used(iterations, view, index):  # type: ignore[no-untyped-def]
            position, rows = np.int64(index), len(view)
            if position < 0:
                position += rows
            if len(iterations) > 0 and position >= 0 and position < rows:
                log_once(view, position, write)

        return log_if_used

    return log


log_read, log_write = _log_if_used(0), _log_if_used(1)


@compiled
def _log_nothing(view, position, write):  # type: ignore[no-untyped-def]
    return lambda view, position, write: None


@compiled
def _row(view, index):  # type: ignore[no-untyped-def]
    return recorded_row(view, _log_nothing)


@compiled
def logged_item(view, index):  # type: ignore[no-untyped-def]
    """`view[index]`, a number of a row that has been logged."""
    if not _is_logged(view, index[0]):
        return lambda view, index: view[index]
    return lambda view, index: item_of(_row(view, index[0]), rest_of(index))


@compiled
def set_logged_item(view, index, value):  # type: ignore[no-untyped-def]
    """`view[index] = value`, given several indices, of a row that has been logged."""
    if not _is_logged(view, index[0]):

        def set_item(view, index, value):  # type: ignore[no-untyped-def]
            view[index] = value

        return set_item

    def set_in_row(view, index, value):  # type: ignore[no-untyped-def]
        set_item_of(_row(view, index[0]), rest_of(index), value)

    return set_in_row
