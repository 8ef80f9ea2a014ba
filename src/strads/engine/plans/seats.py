"""Where each thread of a run gets its jobs: functions that compiled bodies call by symbol.

They are compiled once and kept. As a part of each body, the job pool would take longer to compile than many bodies do.
"""

from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from strads.engine.compiling import INNER
from strads.engine.plans.job_pool import JobPool, finish_locked, take_or_wait
from strads.engine.runtime_library import provide

# Items of a seat: the thread's number, and of how many; the address of the run's `_addresses`; the thread's job,
# where its tasks begin and end, and its lane: the replica of relaxed tables that it works on.
_MEMBER, _MEMBERS, _RUN, JOB, FIRST, LAST, LANE = range(7)
_CACHE_LINE = 8  # items of a seat

# Of the pool's arrays, in the order of its fields, and of begins, ends and lanes.
_DTYPES = (*map(np.dtype, ("i8", "i8", "i4", "i4", "i8", "i4", "i8", "i4")), *map(np.dtype, ("i8", "i8", "i4")))
_PLACES = 2 * len(_DTYPES)  # an address and a length each
_WRITTEN = 4  # by the run: the first so many


class Seats:
    """The seats of the threads of one run, `rows` (threads, 8) int64: what a worker and the functions below share.

    `begins`, `ends` (jobs,) int64: where the tasks of each job are; `lanes` (jobs,) int32: the lane of each job, −1:
    that of its thread.
    """

    def __init__(
        self,
        pool: JobPool,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        lanes: NDArray[np.int32],
        members: int,
    ):
        written, read = pool[:_WRITTEN], (*pool[_WRITTEN:], begins, ends, lanes)
        self._arrays = *written, *map(np.ascontiguousarray, read, _DTYPES[_WRITTEN:])  # must outlive the run
        self._addresses = np.array([(array.ctypes.data, len(array)) for array in self._arrays], np.int64)
        self.rows = np.zeros((members, _CACHE_LINE), np.int64)
        self.rows[:, _MEMBER], self.rows[:, _MEMBERS] = np.arange(members), members
        self.rows[:, _RUN] = self._addresses.ctypes.data


@intrinsic
def _pointer(typingctx: Any, address: Any) -> Any:
    """Turn an address into a pointer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


@njit(**INNER)
def _items(address, count, dtype):  # type: ignore[no-untyped-def]
    return carray(_pointer(address), (count,), dtype)


@njit(**INNER)
def _run(seat):  # type: ignore[no-untyped-def]
    """Return the job pool of a seat's run, its begins, ends and lanes."""
    at = _items(seat[_RUN], _PLACES, np.int64)
    pool = JobPool(  # in the order of its fields
        _items(at[0], at[1], np.int64),
        _items(at[2], at[3], np.int64),
        _items(at[4], at[5], np.int32),
        _items(at[6], at[7], np.int32),
        _items(at[8], at[9], np.int64),
        _items(at[10], at[11], np.int32),
        _items(at[12], at[13], np.int64),
        _items(at[14], at[15], np.int32),
    )
    begins, ends = _items(at[16], at[17], np.int64), _items(at[18], at[19], np.int64)
    return pool, begins, ends, _items(at[20], at[21], np.int32)


def _take(address):  # type: ignore[no-untyped-def]
    """Take a job for the seat at an address; returns its number, or what `take_or_wait` returns in its place."""
    seat = _items(address, _CACHE_LINE, np.int64)
    pool, begins, ends, lanes = _run(seat)
    job = take_or_wait(pool, seat[_MEMBER], seat[_MEMBERS])
    seat[JOB] = job
    if job >= 0:
        seat[FIRST], seat[LAST] = begins[job], ends[job]
        seat[LANE] = lanes[job] if lanes[job] >= 0 else seat[_MEMBER]
    return job


def _finish(address):  # type: ignore[no-untyped-def]
    """Finish the job of the seat at an address."""
    seat = _items(address, _CACHE_LINE, np.int64)
    finish_locked(_run(seat)[0], seat[JOB])


_TAKE, _FINISH = "strads_take_job", "strads_finish_job"
take_job = types.ExternalFunction(_TAKE, types.int64(types.int64))
finish_job = types.ExternalFunction(_FINISH, types.void(types.int64))


def provide_jobs() -> None:
    """Provide `take_job` and `finish_job`."""
    provide(_TAKE, _take, take_job.sig)
    provide(_FINISH, _finish, finish_job.sig)
