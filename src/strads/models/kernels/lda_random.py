"""Random numbers of the LDA samplers: functions of (seed, iteration, worker, block) and a count, never of timing."""

from typing import Any

import numpy as np
from numba import njit

# SplitMix64 (Steele et al. 2014): the n-th number of a stream is its finalizer, applied to key + n·γ. So numbers do not
# depend on one another, and a stream is identified by its key alone.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.float32(2.0**-23)


@njit(nogil=True, cache=True)
def _mix(number: Any) -> Any:
    h = np.uint64(number)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(nogil=True, cache=True)
def _chain(seed, iteration, worker, block):  # type: ignore[no-untyped-def]
    key = _mix(seed + _GAMMA)
    key = _mix((key ^ iteration) + _GAMMA)
    key = _mix((key ^ worker) + _GAMMA)
    return _mix((key ^ block) + _GAMMA)


def job_key(seed: int, iteration: int, worker: int, block: int) -> np.uint64:
    """The key of the random stream of one job: worker `worker` on block `block` in one iteration.

    Parameters
    ----------
    seed, iteration, worker, block : int
        From 0 to 2⁶⁴ − 1. Each is mixed in separately, so that neighbouring jobs have unrelated streams.
    """
    return np.uint64(_chain(np.uint64(seed), np.uint64(iteration), np.uint64(worker), np.uint64(block)))


@njit(nogil=True, cache=True)
def random_bits(key: Any, count: Any) -> Any:
    """Number `count` of a stream, as 64 random bits."""
    return _mix(key + (np.uint64(count) + np.uint64(1)) * _GAMMA)


@njit(nogil=True, cache=True)
def uniform(key: Any, count: Any) -> Any:
    """Number `count` of a stream as a float32 in the open interval (0, 1): an odd multiple of 2⁻²⁴.

    So u·x < x for every normal float32 x > 0, even after rounding: a place drawn as u times a sum lies below the sum.
    """
    bits = random_bits(key, count) >> np.uint64(41)
    return (np.float32(np.int64(bits)) + np.float32(0.5)) * _STEP
