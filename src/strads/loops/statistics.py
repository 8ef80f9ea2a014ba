"""What a loop tells about one call."""

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


@dataclass(frozen=True)
class SyncStatistics:
    """Figures of one `sync_for` call; all times in seconds.

    Attributes
    ----------
    batches, workers
        Minibatches that were run, and threads of all nodes.
    consistency
        The rules.
    seconds
        Time of the whole call.
    compile_seconds, reconnaissance_seconds, execution_seconds
        Its parts. The first two are 0, or nearly so, when an earlier call's results could be used.
    computing, communicating
        In bodies, and in exchanges with the parameter server, of each replica: one for each thread, or under
        `Hybrid()` for each node, on one node summed over its threads.
    bytes_sent, messages_sent
        By each node to others.
    staleness
        By position of a written table among the arguments: clock differentials of the reads of its rows. Empty where
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
