"""Live views: how each argument of a body reaches it when a plan is executed.

A constructor takes the storage of one argument and the context of one task, `(position in the plan, job, lane,
position in the loop)`, and returns what the body sees. Arrays that need nothing of it have no constructor.
"""

from numba import njit

from strads.engine.views import make_accumulating, make_aligned, make_checked, make_guarded, make_ragged

PLAN_POSITION, JOB, LANE, LOOP_POSITION = 0, 1, 2, 3


@njit(nogil=True, forceinline=True)
def ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """A ragged table from its values and offsets."""
    return make_ragged((storage[0], storage[1]))


@njit(nogil=True, forceinline=True)
def checked_view(storage, context):  # type: ignore[no-untyped-def]
    """A table that is only read, at indices that no reconnaissance could check."""
    return make_checked((storage,))


@njit(nogil=True, forceinline=True)
def checked_replica_view(storage, context):  # type: ignore[no-untyped-def]
    """As `replica_view`, with indices that no reconnaissance could check."""
    return make_checked((storage[context[LANE]],))


@njit(nogil=True, forceinline=True)
def aligned_view(storage, context):  # type: ignore[no-untyped-def]
    """Read only as A[k] and stored in plan order: the row at the plan position."""
    return make_aligned((storage, context[PLAN_POSITION]))


@njit(nogil=True, forceinline=True)
def aligned_ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """As `aligned_view`, for ragged rows given as (values, offsets)."""
    return make_aligned((make_ragged((storage[0], storage[1])), context[PLAN_POSITION]))


@njit(nogil=True, forceinline=True)
def accumulating_view(storage, context):  # type: ignore[no-untyped-def]
    """Adds to the job's own total, so that the sum does not depend on timing."""
    return make_accumulating((storage, context[JOB]))


@njit(nogil=True, forceinline=True)
def replica_view(storage, context):  # type: ignore[no-untyped-def]
    """Relaxed table: the lane's replica, out of (lanes, *shape)."""
    return storage[context[LANE]]


@njit(nogil=True, forceinline=True)
def guarded_view(storage, context):  # type: ignore[no-untyped-def]
    """Each access is checked against the task's records: storage is (data, table, offsets, rows, tags)."""
    return make_guarded((storage[0], storage[1], storage[2], storage[3], storage[4], context[LOOP_POSITION]))


@njit(nogil=True, forceinline=True)
def guarded_ragged_view(storage, context):  # type: ignore[no-untyped-def]
    """As `guarded_view`; the data are (values, offsets)."""
    data = make_ragged((storage[0][0], storage[0][1]))
    return make_guarded((data, storage[1], storage[2], storage[3], storage[4], context[LOOP_POSITION]))
