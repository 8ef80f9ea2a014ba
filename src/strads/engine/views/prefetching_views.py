"""Fetching views: a body that runs over them only brings what its task touches into the cache.

They are the live views of what the loop reads, and ghosts of the tables that it writes, as in reconnaissance, but these
fetch the memory of each access in place of logging it.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from strads.engine.compiling import INLINED, compiled
from strads.engine.views.ghost_records import fill_of
from strads.engine.views.keyed import keyed_view
from strads.engine.views.kinds import RECENT_SIZE, make_ghost
from strads.engine.views.live import dense_data, live_view, ragged_view, replica_view
from strads.engine.views.roles import Role
from strads.engine.views.types import RECENT_ACCESSES, as_it_is


@compiled
def _fill(data):  # type: ignore[no-untyped-def]
    """Return the value of every number of a ghost."""
    values = data.member("values") if not isinstance(data, types.Array) else data
    fill = fill_of(as_dtype(values.dtype))
    return lambda data: fill


@cache
def _ghost_view(data_of: Any, number: int, fill: Any) -> Any:
    place = RECENT_SIZE * number

    @njit(**INLINED)
    def view(storage, context):  # type: ignore[no-untyped-def]
        data = data_of(storage, context)
        return make_ghost((data, np.uint8(0), None, None, None, context[RECENT_ACCESSES], place, fill(data)))

    return view


def fetching_view(role: Role, number: int, *, is_ghost: bool, is_read: bool, ragged: bool, keyed: bool) -> Any | None:
    """Return the constructor of the body's view of argument `number`, or None; a ghost if its rows are fetched.

    The elements of a ghost that `is_read` are read as they are.
    """
    if not is_ghost:
        return live_view(role, ragged=ragged, keyed=keyed)
    data_of, fill = (
        replica_view if role.is_relaxed else ragged_view if ragged else as_it_is,
        dense_data if is_read else _fill,
    )
    constructor = _ghost_view(data_of, number, fill)
    return keyed_view(constructor) if keyed else constructor
