"""Random numbers of the LDA samplers: functions of (seed, iteration, worker, block) and a count, never of timing."""

from typing import Any

import numpy as np
from numba import njit

from strads.rng.splitmix import GAMMA, mix

_STEP = np.float32(2.0**-23)


@njit(nogil=True, cache=True)
def _chain(seed, iteration, worker, block):  # type: ignore[no-untyped-def]
    """The key of `job_key`, from `seed`, `iteration`, `worker` and `block` as uint64."""
    key = mix(seed + GAMMA)
    key = mix((key ^ iteration) + GAMMA)
    key = mix((key ^ worker) + GAMMA)
    return mix((key ^ block) + GAMMA)


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
    """Number `count` of a stream, as 64 random bits, by SplitMix64: no number depends on another."""
    return mix(key + (np.uint64(count) + np.uint64(1)) * GAMMA)


@njit(nogil=True, cache=True)
def uniform(key: Any, count: Any) -> Any:
    """Number `count` of a stream as a float32 in the open interval (0, 1): an odd multiple of 2⁻²⁴.

    So u·x < x for every normal float32 x > 0, even after rounding: a place drawn as u times a sum lies below the sum.
    """
    bits = random_bits(key, count) >> np.uint64(41)
    return (np.float32(np.int64(bits)) + np.float32(0.5)) * _STEP
