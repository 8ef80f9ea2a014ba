"""A node's state of an engine's program, and the operations on it between runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from strads import cluster
from strads.cluster import Node, ThreadTeam
from strads.cluster.messages import Message, decode


@dataclass(eq=False)
class NodePart:
    """A node's copy of the program, and its workers.

    Attributes
    ----------
    program
        The copy; of class Program or DynamicProgram.
    node_of
        Node of each worker.
    data
        Data of this node's workers, by worker number.
    team
        Threads that the workers run on.
    """

    program: Any
    node_of: tuple[int, ...]
    data: dict[int, Any]
    team: ThreadTeam


@dataclass(frozen=True)
class Equipment:
    """What an engine sends to all nodes about its program at the start.

    Attributes
    ----------
    message
        The program, encoded.
    node_of
        Node of each worker.
    make
        Creates a worker's data on its node; None if the data are sent, or if there are none.
    threads
        Threads to use on a single process; None: those of the node.
    """

    message: Message
    node_of: tuple[int, ...]
    make: Callable[[int], Any] | None
    threads: int | None

    def unpack(self, node: Node, data: dict[int, Any]) -> NodePart:
        """Return this node's part."""
        program = decode(self.message.copy())  # logical nodes share a process, but not the program
        own = [worker for worker, place in enumerate(self.node_of) if place == node.rank]
        if self.make is not None:
            data = {worker: self.make(worker) for worker in own}
        elif not data:
            data = dict.fromkeys(own)
        team = node.team if self.threads is None else cluster.current().team(self.threads)  # a single process
        return NodePart(program, self.node_of, data, team)


def each_worker(node: Node, name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> dict[int, Any]:
    """Call a function for each worker of this node, on its threads."""
    part: NodePart = node.store[name]
    return in_parallel(part, part.data, function, arguments)


def in_parallel(
    part: NodePart, contents: dict[int, Any], function: Callable[..., Any], arguments: Sequence[Any]
) -> dict[int, Any]:
    """Call a function with the program and each content, on this node's threads; returns the results by number."""
    numbers = sorted(contents)
    values: dict[int, Any] = {}

    def call(index: int) -> None:
        number = numbers[index]
        values[number] = function(part.program, contents[number], *arguments)

    part.team.for_each(call, len(numbers))
    return values


def each_node(node: Node, name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a function with this node's copy of the program."""
    part: NodePart = node.store[name]
    return function(part.program, *arguments)


def itself(program: Any) -> Any:
    """Return the program."""
    return program


def content(program: Any, value: Any) -> Any:
    """Return a worker's data, or a shard."""
    return value
