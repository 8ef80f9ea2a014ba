"""A node's state of an engine's program, and the operations on it between runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from strads import cluster
from strads.checkpoints import Load, LoadTicket, Save, SaveTicket, Tree, digest, loading, saving
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

    def contents(self) -> dict[str, Any]:
        """Return what checkpoints save of this node, by name; names are the same on any number of nodes."""
        return {"program": self.program} | {f"worker {worker}": data for worker, data in self.data.items()}

    def replace(self, name: str, content: Any) -> None:
        """Set one of the contents, after it was restored."""
        if name == "program":
            self.program = content
        else:
            self.data[int(name.removeprefix("worker "))] = content


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


def digest_part(node: Node, name: str) -> dict[str, str]:
    """Return a digest of each of the contents of a node's part; only node 0 includes the program."""
    part: NodePart = node.store[name]
    return {key: digest(value) for key, value in part.contents().items() if key != "program" or node.rank == 0}


def save_part(node: Node, name: str, target: Save | SaveTicket) -> dict[str, Tree]:
    """Return the trees of a node's part; only node 0 includes the program, which is the same everywhere."""
    part: NodePart = node.store[name]
    with saving(target, node.rank, node.store) as save:
        contents = {key: value for key, value in part.contents().items() if key != "program" or node.rank == 0}
        return {key: save.apart(value) for key, value in contents.items()}


def load_part(node: Node, name: str, target: Load | LoadTicket, trees: dict[str, Tree]) -> None:
    """Restore a node's part from the trees of all nodes."""
    part: NodePart = node.store[name]
    load = loading(target)
    for key, value in part.contents().items():
        part.replace(key, load.apart(trees[key], value))
