"""Live views: how each argument of a body reaches it when a plan is executed.

A constructor takes the storage of one argument and the context of one task, `(position in the plan, job, lane,
holder of rows)`, and returns what the body sees. Arrays that need nothing of it have no constructor.
"""

from typing import Any, NamedTuple

from numba import njit

from strads.engine.keyed import keyed_view
from strads.engine.roles import Role
from strads.engine.views import make_accumulating, make_aligned, make_checked, make_guarded, make_ragged

PLAN_POSITION, JOB, LANE, HOLDER = 0, 1, 2, 3


class Guarded(NamedTuple):
    """Storage of a guarded table: its data, the range of rows of each job, and who owns each row, or nothing."""

    data: Any
    low: Any
    high: Any
    owner: Any


class Aligned(NamedTuple):
    """Storage of an aligned table: its rows in plan order, how many rows the table itself has, whether to check parts.

    `checks` is True or None: it decides what is compiled.
    """

    data: Any
    rows: int
    checks: bool | None


@njit(nogil=True, forceinline=True)
def ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """A ragged table from its values and offsets."""
    return make_ragged((storage[0], storage[1]))


@njit(nogil=True, forceinline=True)
def _checked_view(storage, context):  # type: ignore[no-untyped-def]
    return make_checked((storage,))


@njit(nogil=True, forceinline=True)
def _replica_view(storage, context):  # type: ignore[no-untyped-def]
    """The lane's replica, out of (lanes, *shape)."""
    return storage[context[LANE]]


@njit(nogil=True, forceinline=True)
def _checked_replica_view(storage, context):  # type: ignore[no-untyped-def]
    return make_checked((storage[context[LANE]],))


@njit(nogil=True, forceinline=True)
def _aligned_view(storage, context):  # type: ignore[no-untyped-def]
    return make_aligned((storage.data, context[PLAN_POSITION], storage.rows, storage.checks))


@njit(nogil=True, forceinline=True)
def _aligned_ragged_view(storage, context):  # type: ignore[no-untyped-def]
    data = make_ragged((storage.data[0], storage.data[1]))
    return make_aligned((data, context[PLAN_POSITION], storage.rows, storage.checks))


@njit(nogil=True, forceinline=True)
def _accumulating_view(storage, context):  # type: ignore[no-untyped-def]
    """Adds to the job's own total, so that the sum does not depend on timing."""
    return make_accumulating((storage, context[JOB]))


@njit(nogil=True, forceinline=True)
def _guarded_view(storage, context):  # type: ignore[no-untyped-def]
    s, job = storage, context[JOB]
    return make_guarded((s.data, s.low[job], s.high[job], s.owner, context[HOLDER]))


@njit(nogil=True, forceinline=True)
def _guarded_ragged_view(storage, context):  # type: ignore[no-untyped-def]
    s, job = storage, context[JOB]
    data = make_ragged((s.data[0], s.data[1]))
    return make_guarded((data, s.low[job], s.high[job], s.owner, context[HOLDER]))


_PLAIN = {
    Role.SCALAR: None,
    Role.ACCUMULATOR: _accumulating_view,
    Role.READ: None,
    Role.CHECKED: _checked_view,
    Role.ALIGNED: _aligned_view,
    Role.WRITTEN: None,
    Role.GUARDED: _guarded_view,
    Role.RELAXED: _replica_view,
    Role.CHECKED_RELAXED: _checked_replica_view,
}
# The view of a ragged table checks every row index anyhow.
_RAGGED = {
    Role.READ: ragged_view,
    Role.CHECKED: ragged_view,
    Role.ALIGNED: _aligned_ragged_view,
    Role.WRITTEN: ragged_view,
    Role.GUARDED: _guarded_ragged_view,
}


def live_view(role: Role, *, ragged: bool, keyed: bool = False) -> Any | None:
    """Return the constructor of the view that a body has of an argument, or None: of the storage itself."""
    constructor = _RAGGED[role] if ragged else _PLAIN[role]
    return keyed_view(constructor) if keyed else constructor
