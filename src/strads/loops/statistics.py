"""What a loop tells about one call."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strads.engine.statistics import NodeStatistics
from strads.schedule.plan import Plan

__all__ = ["LoopStatistics", "NodeStatistics"]


@dataclass(frozen=True)
class LoopStatistics:
    """Figures of one `async_for` call; all times in seconds.

    Attributes
    ----------
    tasks
        Number of executed loop bodies.
    seconds
        Time of the whole call.
    compile_seconds, reconnaissance_seconds, planning_seconds, execution_seconds
        Its parts. The first three are 0 when an earlier call's results could be used.
    copy_seconds
        The part of `planning_seconds` that went into copying tables in the order of the finished plan; a rotation
        copies the largest while it is made.
    strategy
        How conflicts were avoided (DESIGN §4.4).
    parallelism
        How many threads the plan can keep busy: all work over the work of the longest chain of jobs.
    threads
        Number of threads that ran it.
    plan
        The plan; `plan.explain()` tells why it is as it is.
    nodes
        What each node did, sent and waited, by rank; one entry on a single process.
    order
        With `record_order=True`, the loop indices in a serial order that gives the same result; else None.
    """

    tasks: int
    seconds: float
    compile_seconds: float
    reconnaissance_seconds: float
    planning_seconds: float
    copy_seconds: float
    execution_seconds: float
    strategy: str
    parallelism: float
    threads: int
    plan: Plan = field(repr=False)
    nodes: tuple[NodeStatistics, ...] = field(default=(), repr=False)
    order: NDArray[np.integer] | None = field(default=None, repr=False)
