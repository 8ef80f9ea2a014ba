"""Statistics of one call of a loop."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strads.engine.ps.profile import StalenessProfile
from strads.engine.statistics import NodeStatistics
from strads.schedule.consistency import Consistency
from strads.schedule.plan import Plan

__all__ = ["LoopStatistics", "NodeStatistics", "SyncStatistics"]


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
        Its parts. The first three are 0 if an earlier call's results could be reused.
    copy_seconds
        The part of `planning_seconds` spent on copying tables into plan order after planning. (A rotation copies the
        largest one while it plans, which is not included.)
    strategy
        How conflicts were avoided: see `Plan`.
    parallelism
        Number of threads that the plan can keep busy: total work over the work of the longest chain of jobs.
    threads
        Number of threads that ran it.
    plan
        The plan; `plan.explain()` gives the reasons for it.
    nodes
        Work, traffic and waiting time of each node, by rank; one entry for a single process.
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


@dataclass(frozen=True)
class SyncStatistics:
    """Figures of one `sync_for` call; all times in seconds.

    Attributes
    ----------
    batches, workers
        Number of minibatches that were run, and of workers of all nodes.
    consistency
        The consistency model.
    seconds
        Time of the whole call.
    compile_seconds, reconnaissance_seconds, execution_seconds
        Its parts. The first two are 0, or nearly so, if an earlier call's results could be reused.
    computing, communicating
        Time of each replica in bodies, and in exchanges with the parameter server: one entry per worker or, under
        `Hybrid()`, per node. Under `BSP()` on one node, without functions as aggregations, one per thread.
    bytes_sent, messages_sent
        Sent by each node to the others.
    staleness
        Position of a written table among the arguments → clock differentials of the reads of its rows. Empty if
        nothing was exchanged.
    """

    batches: int
    workers: int
    consistency: Consistency
    seconds: float
    compile_seconds: float
    reconnaissance_seconds: float
    execution_seconds: float
    computing: list[float] = field(repr=False)
    communicating: list[float] = field(repr=False)
    bytes_sent: list[int]
    messages_sent: list[int]
    staleness: dict[int, StalenessProfile] = field(repr=False)
