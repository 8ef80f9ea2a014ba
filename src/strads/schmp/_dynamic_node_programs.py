"""Node programs of the Dynamic Engine: one node's workers and scheduler instances, and a run of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.engine.dynamic.commands import Coordinator, DynamicExecution, Instance
from strads.engine.statistics import NodeStatistics
from strads.schedule.dynamic.merging import Range, merge_subtree, own_subtrees
from strads.schedule.dynamic.pipeline import Parameters, Pipeline
from strads.schmp._node_part import Equipment, NodePart

_STRETCH = 0.05  # seconds of compiled rounds between checks for interrupts


@dataclass(frozen=True)
class Scheduling:
    """How an engine schedules.

    Attributes
    ----------
    node_of
        Node of each scheduler instance.
    pipeline_depth, subplans, reorder
        As in `Pipeline`.
    """

    node_of: tuple[int, ...]
    pipeline_depth: int
    subplans: int
    reorder: bool

    def parameters(self, instance: int, count: int) -> range:
        """Return the parameters of an instance."""
        instances = len(self.node_of)
        return range(instance * count // instances, (instance + 1) * count // instances)


@dataclass(eq=False)
class _DynamicPart(NodePart):
    """A node's part, with the scheduler instances on this node."""

    instances: dict[int, Instance]
    compiled: Callable[[int], int] | None
    stretch: int = 1  # number of compiled rounds that take about _STRETCH

    def contents(self) -> dict[str, Any]:
        """Return what checkpoints save of this node, by name."""
        return super().contents() | {f"instance {number}": each for number, each in self.instances.items()}

    def replace(self, name: str, content: Any) -> None:
        """Set one of the contents, after it was restored."""
        kind, _, number = name.partition(" ")
        if kind == "instance":
            self.instances[int(number)] = content
        else:
            super().replace(name, content)

    def subtrees(self, rank: int) -> list[Range]:
        """Return the groups of workers whose results are merged on this node alone."""
        own = [worker for worker, place in enumerate(self.node_of) if place == rank]
        return own_subtrees((0, len(self.node_of)), (own[0], own[-1] + 1)) if own else []


class _Work:
    """The work of a node's workers in a run, on its threads."""

    def __init__(self, part: _DynamicPart, subtrees: list[Range]):
        self._part = part
        self._subtrees = subtrees
        self._workers = sorted(part.data)
        self.threads = part.team.size
        self.tasks = 0
        self.seconds = 0.0

    def update(self, parameters: Parameters) -> dict[Range, Any]:
        """Return the results of this node's workers, merged to subtrees."""
        if not self._workers:
            return {}
        program = self._part.program
        parts = np.array_split(parameters, self._cuts(len(parameters)))
        pairs = [(worker, part) for worker in self._workers for part in parts]
        found = self._for_each(lambda worker, part: program.update(part, self._part.data[worker]), pairs)
        self.tasks += len(pairs)
        results = {
            (worker, worker + 1): _joined(found[number * len(parts) : (number + 1) * len(parts)])
            for number, worker in enumerate(self._workers)
        }
        return {workers: merge_subtree(workers, results, program.merge) for workers in self._subtrees}

    def _cuts(self, count: int) -> int:
        """Return the number of parts to cut a subplan into for each worker, so that no thread stays idle."""
        wanted = -(-self.threads // len(self._workers))
        return max(1, min(wanted, count // self._part.program.grain))

    def commit(self, parameters: Parameters, changes: NDArray[Any]) -> None:
        """Update the data of this node's workers."""
        program = self._part.program
        pairs = [(worker, changes) for worker in self._workers]
        self._for_each(lambda worker, changes: program.commit(parameters, changes, self._part.data[worker]), pairs)

    def _for_each(self, function: Callable[[int, Any], Any], pairs: list[tuple[int, Any]]) -> list[Any]:
        """Call a function for each pair; without the team if there is only one pair or one thread."""
        values: list[Any] = [None] * len(pairs)
        seconds = [0.0] * len(pairs)

        def call(number: int) -> None:
            start = time.perf_counter()
            values[number] = function(*pairs[number])
            seconds[number] = time.perf_counter() - start

        if len(pairs) == 1 or self.threads == 1:
            for number in range(len(pairs)):
                call(number)
        else:
            self._part.team.for_each(call, len(pairs))
        self.seconds += sum(seconds)
        return values


def _joined(parts: list[Any]) -> Any:
    """Concatenate the results of a subplan's parts."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return np.concatenate(parts)


def begin(node: Node, name: str, equipment: Equipment, scheduling: Scheduling, data: dict[int, Any]) -> None:
    """Set up this node's copy of the program, its workers' data and its scheduler instances."""
    part = equipment.unpack(node, data)
    program, instances = part.program, {}
    for number, place in enumerate(scheduling.node_of):
        if place == node.rank:
            parameters = scheduling.parameters(number, program.parameters)
            instances[number] = Instance(number, program.schedule(number, parameters), parameters)
    compiled = None
    if node.size == len(part.node_of) == len(instances) == 1:
        compiled = program.compiled_rounds(instances[0].schedule, part.data[0], part.team)
    node.store[name] = _DynamicPart(**vars(part), instances=instances, compiled=compiled)


def run(node: Node, name: str, scheduling: Scheduling, rounds: int, first: int) -> tuple[int, int, NodeStatistics]:
    """Run this node's part of some rounds; returns rounds, updates (both 0 off the coordinator) and statistics.

    `first`: number of rounds of earlier runs.
    """
    part: _DynamicPart = node.store[name]
    if part.compiled is not None:
        return _run_compiled(node, part, part.compiled, rounds)
    coordinator = pipeline = None
    if node.rank == 0:
        pipeline = Pipeline(
            rounds,
            len(scheduling.node_of),
            len(set(part.node_of)),
            scheduling.pipeline_depth,
            scheduling.subplans,
            scheduling.reorder,
            first=first,
        )
        program = part.program
        coordinator = Coordinator(node, pipeline, part.node_of, scheduling.node_of, program.merge, program.aggregate)
    work = _Work(part, part.subtrees(node.rank))
    statistics = DynamicExecution(node, work, part.instances, len(scheduling.node_of), coordinator).run()
    return (0, 0, statistics) if pipeline is None else (pipeline.plans, pipeline.updates, statistics)


def _run_compiled(
    node: Node, part: _DynamicPart, compiled: Callable[[int], int], rounds: int
) -> tuple[int, int, NodeStatistics]:
    """Run rounds as compiled code, in stretches short enough to respond to Ctrl-C."""
    start = time.perf_counter()
    done = updates = 0
    while done < rounds:
        node.comm.check()
        count = min(part.stretch, rounds - done)
        begin = time.perf_counter()
        updated = compiled(count)
        if updated == 0:
            break
        done += count
        updates += updated
        if count == part.stretch and time.perf_counter() - begin < _STRETCH / 2:
            part.stretch *= 2
    seconds = time.perf_counter() - start
    host, threads = node.comm.hosts[node.rank], part.team.size
    return done, updates, NodeStatistics(node.rank, host, done, 0, 0, seconds * threads, 0.0, 0.0, 0)
