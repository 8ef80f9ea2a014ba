"""Precedence between jobs: chains of jobs per resource, and barriers between stages."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of


class Precedence(NamedTuple):
    """Edges between jobs; every edge leads from a lower to a higher number."""

    predecessors: NDArray[np.int32]  # (jobs,): number of edges that end at each job
    successor_offsets: NDArray[np.int64]  # (jobs + 1,)
    successors: NDArray[np.int32]  # those of job j: successors[successor_offsets[j]:successor_offsets[j + 1]]


@njit(nogil=True, cache=True)
def _link(resources: NDArray[np.int32], count: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Predecessors of each job (−1: none), their number, and the offsets of the successors."""
    jobs, width = resources.shape
    last = np.full(count, -1, np.int32)
    before = np.full((jobs, width), -1, np.int32)
    predecessors = np.zeros(jobs, np.int32)
    offsets = np.zeros(jobs + 1, np.int64)
    for job in range(jobs):
        for position in range(width):
            resource = resources[job, position]
            if resource < 0 or last[resource] == job:
                continue
            other = last[resource]
            last[resource] = job
            known = other < 0
            for earlier in range(position):
                known |= before[job, earlier] == other
            if not known:
                before[job, position] = other
                predecessors[job] += 1
                offsets[other + 1] += 1
    return before, predecessors, np.cumsum(offsets)


@njit(nogil=True, cache=True)
def _successors(before: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    successors = np.empty(offsets[-1], np.int32)
    start = offsets[:-1].copy()
    for job in range(before.shape[0]):
        for other in before[job]:
            if other >= 0:
                successors[start[other]] = job
                start[other] += 1
    return successors


def chain(resources: NDArray[np.int32], count: int) -> Precedence:
    """Make the jobs that use a resource run in the order of their numbers.

    Parameters
    ----------
    resources : (jobs, width) int32
        Resources (blocks of rows) that each job uses, each below `count`; padded with −1.
    count
        Number of resources.
    """
    before, predecessors, offsets = _link(np.ascontiguousarray(resources, np.int32), count)
    return Precedence(predecessors, offsets, _successors(before, offsets))


def no_precedence(jobs: int) -> Precedence:
    """Return no edges: all jobs may run concurrently."""
    return Precedence(np.zeros(jobs, np.int32), np.zeros(jobs + 1, np.int64), np.empty(0, np.int32))


def linked(sources: NDArray[np.integer], targets: NDArray[np.integer], jobs: int) -> Precedence:
    """Return the precedence of different edges; the successors of a job are in the order of its edges."""
    predecessors = np.bincount(targets, minlength=jobs).astype(np.int32)
    offsets = offsets_of(np.bincount(sources, minlength=jobs))
    return Precedence(predecessors, offsets, targets[np.argsort(sources, kind="stable")].astype(np.int32, copy=False))


def barriers(sizes: Sequence[int] | NDArray[np.integer]) -> Precedence:
    """Close stages by barriers: one empty job after the jobs of each stage.

    Parameters
    ----------
    sizes
        Number of jobs of each stage, not counting barriers. Jobs are numbered consecutively: jobs of stage 0, its
        barrier, jobs of stage 1, ….
    """
    counts = np.array(sizes, np.int64) + 1
    barrier = np.cumsum(counts) - 1  # of each stage
    stage = np.repeat(np.arange(len(counts)), counts)
    jobs = np.flatnonzero(barrier[stage] != np.arange(len(stage)))
    later = jobs[stage[jobs] > 0]
    sources = np.concatenate([jobs, barrier[stage[later] - 1]])
    return linked(sources, np.concatenate([barrier[stage[jobs]], later]), len(stage))


@njit(nogil=True, cache=True)
def heaviest_chain(work: NDArray[np.int64], offsets: NDArray[np.int64], successors: NDArray[np.int32]) -> int:
    """Work on the critical path of jobs: a lower bound for any number of threads."""
    ready = np.zeros(len(work), np.int64)
    heaviest = 0
    for job in range(len(work)):
        end = ready[job] + work[job]
        heaviest = max(heaviest, end)
        for successor in successors[offsets[job] : offsets[job + 1]]:
            ready[successor] = max(ready[successor], end)
    return heaviest


def parallelism(work: NDArray[np.int64], precedence: Precedence) -> float:
    """Total work / work on the heaviest chain; 1 if there is no work."""
    longest = heaviest_chain(work, precedence.successor_offsets, precedence.successors)
    return float(work.sum() / longest) if longest > 0 else 1.0
