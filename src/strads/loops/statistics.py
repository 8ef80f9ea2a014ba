"""What a loop tells about one call."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strads.schedule.plan import Plan


@dataclass(frozen=True)
class NodeStatistics:
    """What one node did in one execution of a loop; times in seconds.

    Attributes
    ----------
    rank, host
        The node.
    tasks
        Loop bodies that it ran.
    bytes_sent, messages_sent
        To other nodes.
    compute_seconds
        In the loop's bodies, of all its threads together.
    wait_seconds
        Of all its threads together, without a job to do.
    mean_queue, longest_queue
        Jobs that were ready when a thread took one: on average, and at most.
    """

    rank: int
    host: str
    tasks: int
    bytes_sent: int
    messages_sent: int
    compute_seconds: float
    wait_seconds: float
    mean_queue: float
    longest_queue: int


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
