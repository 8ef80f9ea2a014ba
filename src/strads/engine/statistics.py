"""Statistics of a node in one execution of a plan or schedule."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeStatistics:
    """Statistics of one node in one execution; times in seconds.

    Attributes
    ----------
    rank, host
        The node.
    tasks
        Number of loop bodies, or jobs of a schedule, that it ran.
    bytes_sent, messages_sent
        Sent to other nodes.
    compute_seconds
        Time in the loop's bodies or the program's updates, summed over threads.
    wait_seconds
        Time without a job, summed over threads.
    mean_queue, longest_queue
        Mean and maximum number of ready jobs when a thread took one.
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
