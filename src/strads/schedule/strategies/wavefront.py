"""Strategy *wavefront*: the loop in its own order, with the parallelism that its dependences allow.

A task runs once all earlier tasks have run that write what it reads, or touch what it writes. So the result is that of
the sequential loop, and tasks that are close in the loop, whose data are close in memory, run at about the same time.
Dependences are tracked between chunks of consecutive tasks if these leave enough parallelism, as they do on grids,
meshes and bands; otherwise between the single tasks of a window, level by level.
"""

import numpy as np
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.plan import Plan
from strads.schedule.records.access import SparseRecords
from strads.schedule.records.row_ranges import RowRanges
from strads.schedule.strategies.chunks import (
    ENOUGH_OF_CHUNKS,
    best_chunks,
    chunks_of_ranges,
    is_one_chain,
    kept_order,
    plan_in_loop_order,
    plan_of_chunks,
    sampled_chunks,
)
from strads.schedule.strategies.levels import best_window, plan_of_levels
from strads.schedule.strategies.problem import Problem


def wavefront(problem: Problem, worthwhile: float = 0.0) -> Plan:
    """Follow the dependences of the loop in its order; applies to every loop.

    The estimated speed-up of two threads over one is in `details.gain`.

    Raises
    ------
    PlanError
        If that is less than `worthwhile`, which is known long before the plan would be complete.
    """
    chunked = None if worthwhile > 0 and is_one_chain(problem) else best_chunks(problem)
    if chunked is not None and chunked.parallelism >= ENOUGH_OF_CHUNKS:
        return plan_of_chunks(chunked, "wavefront", kept_order(chunked))
    window, gain = best_window(problem)
    best = gain if chunked is None else max(gain, chunked.parallelism)
    if best < worthwhile:
        raise PlanError(f"its parallelism would be only {best:.1f}")
    if chunked is not None and chunked.parallelism >= gain:
        return plan_of_chunks(chunked, "wavefront", kept_order(chunked))
    return plan_of_levels(problem, window, gain)


def chunks_from_sample(
    part: Problem, records: SparseRecords, begin: int, tasks: int, worthwhile: float
) -> NDArray[np.int64] | None:
    """Return bounds of chunks for a loop of which a part has been recorded, the tasks from `begin` on.

    None if they would be levels or hardly run together, or if the runs of tasks that wait for each other, such as the
    rows of a grid, are not all of one length in the part.
    """
    bounds, gain = sampled_chunks(part, records, begin, tasks, worthwhile)
    if bounds is None or gain < worthwhile:
        return None
    return bounds if gain >= ENOUGH_OF_CHUNKS or gain >= best_window(part)[1] else None


def wavefront_of_ranges(bounds: NDArray[np.int64], ranges: RowRanges, worthwhile: float) -> Plan | None:
    """Plan a loop of which only the ranges of rows that chunks touch are known; None if that is not `worthwhile`."""
    chunked = chunks_of_ranges(bounds, ranges)
    return None if chunked is None or chunked.parallelism < worthwhile else plan_in_loop_order(chunked)
