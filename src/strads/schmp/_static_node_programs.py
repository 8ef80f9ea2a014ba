"""Node programs of the Static Engine: they run one node's workers and hold its shards."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from strads.cluster import Node
from strads.engine.static.rounds import RoundExecution
from strads.engine.statistics import NodeStatistics
from strads.errors import PlanError
from strads.schedule.static.rounds import Job, Schedule, ShardKey, check_schedule
from strads.schedule.static.shard_routes import Holders, ShardRoutes, plan_routes
from strads.schmp._node_part import Equipment, NodePart, in_parallel


@dataclass(eq=False)
class _StaticPart(NodePart):
    """A node's part, with the shards on this node."""

    holders: Holders
    shards: dict[ShardKey, Any]
    results: dict[int, Any] = field(default_factory=dict)

    def contents(self) -> dict[str, Any]:
        """Return what checkpoints save of this node, by name."""
        shards = {f"shard {key[0]} {key[1]}": shard for key, shard in self.shards.items()}
        results = {f"result {worker}": self.results.get(worker) for worker in self.data}
        return super().contents() | shards | results

    def replace(self, name: str, content: Any) -> None:
        """Set one of the contents, after it was restored."""
        kind, *numbers = name.split()
        if kind == "shard":
            self.shards[int(numbers[0]), int(numbers[1])] = content
        elif kind == "result":
            if content is not None:
                self.results[int(numbers[0])] = content
            else:
                self.results.pop(int(numbers[0]), None)
        else:
            super().replace(name, content)


_planning = threading.Lock()  # logical nodes share the cache: the first plans for all of them


@lru_cache(maxsize=8)
def _plan(
    schedule: Schedule, node_of: tuple[int, ...], holders: Holders, nodes: int
) -> tuple[list[ShardRoutes], Holders]:
    check_schedule(schedule, len(node_of), tuple(len(nodes_of_set) for nodes_of_set in holders))
    return plan_routes(schedule, node_of, holders, nodes)


def begin(
    node: Node,
    name: str,
    equipment: Equipment,
    homes: Holders,
    data: dict[int, Any],
    shards: dict[ShardKey, Any],
) -> None:
    """Set up this node's copy of the program, its workers' data and its shards."""
    part = equipment.unpack(node, data)
    node.store[name] = _StaticPart(**vars(part), holders=homes, shards=shards)


def iterate(node: Node, name: str, iteration: int) -> NodeStatistics:
    """Run this node's part of an iteration."""
    part: _StaticPart = node.store[name]
    program = part.program
    schedule = Schedule.of(program.schedule(iteration))
    _check_agreement(node, schedule)
    with _planning:
        routes, holders = _plan(schedule, part.node_of, part.holders, node.size)

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

    own = routes[node.rank]
    statistics = RoundExecution(node, own, program.weight, part.shards, perform, synchronize, part.team).run()
    part.holders = holders
    return statistics


def _check_agreement(node: Node, schedule: Schedule) -> None:
    """Check that all nodes have the same schedule; otherwise they would wait for each other forever."""
    if node.size > 1 and len(set(node.comm.allgather(schedule.digest))) > 1:
        raise PlanError(
            "schedule() gave the nodes different rounds: it may depend on the iteration and on what "
            "`aggregate` leaves, but not on the node, on time, or on random numbers without a seed"
        )


def each_shard(
    node: Node, name: str, parameter_set: int, function: Callable[..., Any], arguments: Sequence[Any]
) -> dict[int, Any]:
    """Call a function for each shard of a parameter set on this node, on its threads."""
    part: _StaticPart = node.store[name]
    here = {shard: content for (number, shard), content in part.shards.items() if number == parameter_set}
    return in_parallel(part, here, function, arguments)
