"""Node programs of the Static Engine: one node's workers and shards, and what is done with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from strads import cluster
from strads.cluster import Node, ThreadTeam
from strads.cluster.messages import Message, decode
from strads.engine.round_execution import RoundExecution
from strads.engine.statistics import NodeStatistics
from strads.errors import PlanError
from strads.schedule.itinerary import Holders, NodeItinerary, plan_itineraries
from strads.schedule.rounds import Job, Schedule, ShardKey, check_schedule
from strads.schmp.program import Program


@dataclass(eq=False)
class _Part:
    """What a node keeps of a program between iterations."""

    program: Program
    node_of: tuple[int, ...]
    holders: Holders
    data: dict[int, Any]
    shards: dict[ShardKey, Any]
    team: ThreadTeam
    results: dict[int, Any] = field(default_factory=dict)


@lru_cache(maxsize=8)
def _plan(
    schedule: Schedule, node_of: tuple[int, ...], holders: Holders, nodes: int
) -> tuple[list[NodeItinerary], Holders]:
    check_schedule(schedule, len(node_of), tuple(len(nodes_of_set) for nodes_of_set in holders))
    return plan_itineraries(schedule, node_of, holders, nodes)


def begin(
    node: Node,
    name: str,
    message: Message,
    node_of: tuple[int, ...],
    homes: Holders,
    make: Callable[[int], Any] | None,
    threads: int | None,
    data: dict[int, Any],
    shards: dict[ShardKey, Any],
) -> None:
    """Take over this node's copy of the program, its workers' data and its shards."""
    program = decode(message.copy())  # logical nodes share a process, but not their programs
    own = [worker for worker, place in enumerate(node_of) if place == node.rank]
    if make is not None:
        data = {worker: make(worker) for worker in own}
    elif not data:
        data = dict.fromkeys(own)
    team = node.team if threads is None else cluster.current().team(threads)  # a single process
    node.store[name] = _Part(program, node_of, homes, data, shards, team)


def iterate(node: Node, name: str, iteration: int) -> NodeStatistics:
    """Run this node's part of an iteration."""
    part: _Part = node.store[name]
    program = part.program
    schedule = Schedule.of(program.schedule(iteration))
    _check_agreement(node, schedule)
    itineraries, holders = _plan(schedule, part.node_of, part.holders, node.size)

    def perform(job: Job, shards: tuple[Any, ...]) -> None:
        result = program.update(job, part.data[job.worker], *shards)
        if result is not None:
            earlier = part.results.get(job.worker)
            part.results[job.worker] = result if earlier is None else program.merge(earlier, result)

    def synchronize() -> None:
        found = node.comm.allgather(part.results)
        part.results = {}
        results = {worker: result for of_node in found for worker, result in of_node.items()}
        program.aggregate([results.get(worker) for worker in range(len(part.node_of))])

    execution = RoundExecution(node, itineraries[node.rank], program.weight, part.shards, perform, synchronize)
    statistics = execution.run(part.team)
    part.holders = holders
    return statistics


def _check_agreement(node: Node, schedule: Schedule) -> None:
    """Nodes with different schedules would wait for each other in vain."""
    if node.size > 1 and len(set(node.comm.allgather(schedule.digest))) > 1:
        raise PlanError(
            "schedule() gave the nodes different rounds: it may depend on the iteration and on what "
            "`aggregate` leaves, but not on the node, on time, or on random numbers without a seed"
        )


def each_worker(node: Node, name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> dict[int, Any]:
    """Call a function for each worker of this node, on its threads."""
    part: _Part = node.store[name]
    return _in_parallel(part, part.data, function, arguments)


def each_shard(
    node: Node, name: str, parameter_set: int, function: Callable[..., Any], arguments: Sequence[Any]
) -> dict[int, Any]:
    """Call a function for each shard of a parameter set that is here, on this node's threads."""
    part: _Part = node.store[name]
    here = {shard: content for (number, shard), content in part.shards.items() if number == parameter_set}
    return _in_parallel(part, here, function, arguments)


def _in_parallel(
    part: _Part, contents: dict[int, Any], function: Callable[..., Any], arguments: Sequence[Any]
) -> dict[int, Any]:
    numbers = sorted(contents)
    values: dict[int, Any] = {}

    def call(index: int) -> None:
        number = numbers[index]
        values[number] = function(part.program, contents[number], *arguments)

    part.team.for_each(call, len(numbers))
    return values


def each_node(node: Node, name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a function with this node's copy of the program."""
    part: _Part = node.store[name]
    return function(part.program, *arguments)


def itself(program: Program) -> Program:
    """Return the program."""
    return program


def content(program: Program, value: Any) -> Any:
    """Return a worker's data, or a shard."""
    return value
