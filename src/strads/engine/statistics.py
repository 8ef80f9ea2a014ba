"""What a node did in one execution of a plan or a schedule."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeStatistics:
    """What one node did in one execution; times in seconds.

    Attributes
    ----------
    rank, host
        The node.
    tasks
        Loop bodies, or jobs of a schedule, that it ran.
    bytes_sent, messages_sent
        To other nodes.
    compute_seconds
        In the loop's bodies or the program's updates, of all its threads together.
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
