"""Which node each worker of a program runs on, and which data it needs there."""

from collections.abc import Callable, Sequence
from typing import Any


def place_workers(workers: int, nodes: int) -> tuple[int, ...]:
    """Return the node of each worker: contiguous ranges whose sizes differ by at most one."""
    return tuple(worker * nodes // workers for worker in range(workers))


def data_for_node(
    data: Sequence[Any] | Callable[[int], Any] | None, node_of: Sequence[int], rank: int
) -> dict[int, Any]:
    """Return the data to send to a node, by worker: nothing if a function creates them there."""
    if data is None or callable(data):
        return {}
    return {worker: data[worker] for worker, place in enumerate(node_of) if place == rank}
