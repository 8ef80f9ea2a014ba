"""Strategy *components*: connected components of batches of tasks (CYCLADES, Pan et al. 2016)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.details import Details
from strads.schedule.kernels.counting_sort import count_keys, group_by_key
from strads.schedule.kernels.packing import pack
from strads.schedule.kernels.parallel import chunk_bounds, index_dtype
from strads.schedule.kernels.prefetch import SOON, prefetch
from strads.schedule.plan import Plan
from strads.schedule.records.touches import Touches, span
from strads.schedule.strategies.precedence import barriers, no_precedence
from strads.schedule.strategies.problem import Problem

MAX_JOBS = 32  # of a batch
SMALLEST_BATCH = 512  # tasks, so that a barrier costs little compared with the batch
ENOUGH_OF_BATCH = 8  # parallelism of a batch: smaller ones would only add barriers
WORTH_BARRIERS = 1.2  # with less parallelism in a batch, barriers cost more than they gain


@njit(nogil=True, cache=True)
def _root(parent: NDArray[np.integer], row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@njit(nogil=True, cache=True)
def _join_rows(touches: Touches, tasks: NDArray[np.integer], parent: NDArray[np.integer]) -> None:
    """Union–find: rows that are touched by the same task get the same root."""
    for position in range(len(tasks)):
        if position + SOON < len(tasks):
            prefetch(touches.rows, span(touches, tasks[position + SOON])[0])
        first, last = span(touches, tasks[position])
        for access in range(first, last):
            row = touches.rows[access]
            if row >= 0:
                parent[row] = row
    for task in tasks:
        first, last = span(touches, task)
        root = -1
        for access in range(first, last):
            row = touches.rows[access]
            if row < 0:
                continue
            other = _root(parent, row)
            if root < 0:
                root = other
            elif other != root:
                parent[max(root, other)] = min(root, other)
                root = min(root, other)


@njit(nogil=True, cache=True)
def _find_components(
    touches: Touches, tasks: NDArray[np.integer], parent: NDArray[np.integer], label: NDArray[np.integer]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Component of each of the tasks, numbered by first appearance, and the work of each component.

    `parent` and `label` are scratch memory with one entry per row; `label` is all −1 before and after the call.
    """
    _join_rows(touches, tasks, parent)
    component = np.empty(len(tasks), np.int32)
    work = np.zeros(len(tasks), np.int64)
    roots = np.empty(len(tasks), parent.dtype)
    count = 0
    for position in range(len(tasks)):
        first, last = span(touches, tasks[position])
        root = -1
        for access in range(first, last):
            row = touches.rows[access]
            if row >= 0:
                root = _root(parent, row)
                break
        roots[position] = root
        if root >= 0 and label[root] >= 0:
            component[position] = label[root]
        else:
            component[position] = count
            if root >= 0:
                label[root] = count
            count += 1
        work[component[position]] += 1 + last - first
    for root in roots:
        if root >= 0:
            label[root] = -1
    return component, work[:count].copy()


class _Finder:
    """Finds components of sets of tasks, using scratch memory with one entry per row."""

    def __init__(self, problem: Problem) -> None:
        self._touches = problem.touches
        self._parent = np.empty(problem.rows, index_dtype(problem.rows))
        self._label = np.full(problem.rows, -1, np.int32)

    def __call__(self, tasks: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        component, work = _find_components(self._touches, tasks, self._parent, self._label)
        return component, work


def components(problem: Problem) -> Plan:
    """Components of all tasks together or, if one is too heavy, of random batches separated by barriers.

    Applies to every loop; the parallelism is 1 if even small batches are connected.
    """
    batches, batch_order = _split(problem)
    job_of = np.empty(problem.tasks, np.int32)
    bounds = np.arange(batches + 1) * problem.tasks // batches
    of_batch: list[tuple[NDArray[np.int32], int]] = [(job_of, 0)] * batches
    finders: list[_Finder] = []  # one per thread
    components_of_all = 0

    def find(batch: int) -> None:
        nonlocal components_of_all
        try:
            finder = finders.pop()
        except IndexError:
            finder = _Finder(problem)
        component, work = finder(batch_order[bounds[batch] : bounds[batch + 1]])
        of_batch[batch] = _jobs(component, work)
        if batches == 1:
            components_of_all = len(work)
        finders.append(finder)

    problem.parallel(find, batches)
    first_job = 0
    for batch, (jobs, size) in enumerate(of_batch):
        job_of[batch_order[bounds[batch] : bounds[batch + 1]]] = jobs + first_job
        first_job += size + 1  # the barrier has a number too
    return _plan(problem, job_of, [size for _, size in of_batch], components_of_all)


def _balance(work: NDArray[np.int64]) -> float:
    """Total work divided by the work of the heaviest component."""
    return float(work.sum() / work.max()) if len(work) else 1.0


def _split(problem: Problem) -> tuple[int, NDArray[np.integer]]:
    """How many random batches to cut the tasks into, and the tasks by batch, in loop order within each.

    Batches are doubled as long as the components of the first one balance; if they do not, the smallest count is used.
    """
    shuffled = np.random.default_rng(problem.loop.seed).permutation(problem.tasks).astype(index_dtype(problem.tasks))
    find = _Finder(problem)
    batches = 1 << max(int(np.log2(problem.tasks / SMALLEST_BATCH + 1e-9)), 0)
    balance = _balance(find(np.sort(shuffled[: problem.tasks // batches]))[1])
    if balance <= WORTH_BARRIERS:
        batches = 1
    while batches > 1 and balance >= ENOUGH_OF_BATCH:
        larger = problem.tasks // (batches // 2)
        if _balance(find(np.sort(shuffled[:larger]))[1]) < ENOUGH_OF_BATCH:  # in loop order, rows are closer together
            break
        batches //= 2
    if batches == 1:
        return 1, np.arange(problem.tasks, dtype=index_dtype(problem.tasks))
    batch_of = np.empty(problem.tasks, np.int32)
    batch_of[shuffled] = np.arange(problem.tasks, dtype=np.int64) * batches // problem.tasks
    return batches, _group(problem, batch_of, batches)[0]


def _group(problem: Problem, keys: NDArray[np.int32], count: int) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    bounds = chunk_bounds(problem.tasks, min(problem.threads, 1 + problem.tasks // count))
    counts = np.zeros((len(bounds) - 1, count), index_dtype(problem.tasks))
    problem.parallel(lambda c: count_keys(keys, bounds[c], bounds[c + 1], counts[c]), len(counts))
    return group_by_key(keys, counts, np.arange(count), bounds, problem.parallel)


def _jobs(component: NDArray[np.int32], work: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
    """Job of each task, the heaviest job first, and the number of jobs."""
    bin_of, load = pack(work, MAX_JOBS)
    rank = np.empty(MAX_JOBS, np.int32)
    rank[np.argsort(-load, kind="stable")] = np.arange(MAX_JOBS, dtype=np.int32)
    return rank[bin_of][component], int(np.count_nonzero(load))


def _plan(problem: Problem, job_of: NDArray[np.int32], sizes: list[int], count: int) -> Plan:
    stages = len(sizes)
    counts = sizes if stages == 1 else [size + 1 for size in sizes]
    groups = _group(problem, job_of, sum(counts))
    stage = np.repeat(np.arange(stages), counts)
    plural = "s" if count > 1 else ""
    if stages == 1:
        jobs = f"{sizes[0]} job{'s' * (sizes[0] > 1)}"
        reason = f"tasks that share rows form {count} component{plural}, packed into {jobs}"
        precedence = no_precedence(sizes[0])
    else:
        reason = (
            f"all tasks together form too heavy components: {stages} random batches, the components of each packed "
            f"into up to {max(sizes)} jobs, with barriers between batches"
        )
        precedence = barriers(sizes)
    return problem.plan("components", reason, groups, stage, precedence, Details(batches=stages))
