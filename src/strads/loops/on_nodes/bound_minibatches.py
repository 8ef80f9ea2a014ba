"""A `sync_for` bound to a node: its tables, its minibatches, and the rows that these touch."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.bodies.functions import plain_function
from strads.cluster import Node, ThreadTeam
from strads.dds.arguments import table_of
from strads.dds.ragged import read_only
from strads.dds.shard import Shard, gather_all_rows
from strads.engine.minibatch.data_parallel import Aggregation, Parameter
from strads.engine.plans.executor import zero_totals
from strads.engine.views.live import Replicated
from strads.engine.views.roles import Role
from strads.errors import ArgumentError
from strads.loops.argument_kinds import bind_arguments
from strads.loops.arguments import BatchArgument, TableArgument
from strads.loops.batch_program import BatchProgram, as_parameters
from strads.loops.cache_keys import content_key
from strads.loops.compile_clock import COMPILE_CLOCK
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.binding import shards_of, table_over, values_of
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.specs import TableRef
from strads.loops.program import find_program
from strads.partition import even_bounds
from strads.schedule.consistency import Consistency
from strads.schedule.minibatches import Minibatches, TouchedRows, touched_rows

_KEPT, _MAX_KEPT = "checked minibatches", 8
_RECORDED_AT_A_TIME = 4096  # minibatches


@dataclass(frozen=True)
class SyncCall:
    """A `sync_for` as the driver describes it to the nodes."""

    body: Callable[..., Any]
    data: Any  # a reference to a table on the nodes; if the driver's process is the only node, the table; or a range
    arguments: tuple[Any, ...]  # with references in the same way
    minibatches: Minibatches
    consistency: Consistency
    recon: bool
    fastmath: bool
    team: ThreadTeam | None = None  # if not that of the node
    kinds: tuple[Any, ...] = ()  # keys of what each argument is, and finally the data
    contents: tuple[Any, ...] = ()  # keys of what these hold, if they are tables; None for others
    overlaps: tuple[tuple[int, int], ...] = ()  # arguments that share memory
    aggregations: Mapping[int, Aggregation] = field(default_factory=dict)  # by the position of the argument


class BoundMinibatches:
    """A `sync_for`, bound to the tables of this node."""

    def __init__(self, node: Node, call: SyncCall):
        self.node = node
        self.call = call
        self.team = call.team or node.team
        self.shards = shards_of(node, call.arguments)  # by position; empty if there is only one node
        batches = _batches(node, call)
        values = values_of(node, call.arguments)
        self.bound = as_parameters(bind_arguments(call.body, values, batches, call.overlaps), recorded=call.recon)
        self._compiled_before = COMPILE_CLOCK.seconds
        self.program = find_program(BatchProgram, call.body, self.bound, call.fastmath)
        self.is_checkable = self.program.compile_check(self.bound)  # whether indices are checked before the run
        first, last = call.minibatches.worker_bounds(node.size)[node.rank : node.rank + 2].tolist()
        self.workers = range(first, last)  # of this node
        self.numbers = range(*call.minibatches.bounds[[first, last]].tolist())  # of their minibatches
        self.totals = {p: zero_totals(call.minibatches.workers, a.dtype) for p, a in self.bound.sums.items()}
        self._check()

    @property
    def compile_seconds(self) -> float:
        """Compilation time of this call so far."""
        return COMPILE_CLOCK.seconds - self._compiled_before

    @property
    def written(self) -> list[int]:
        """Positions of the written tables, each once."""
        return sorted({self.bound.same[position] for position in self.program.facts.written})

    def _check(self) -> None:
        facts = self.program.facts
        for position in self.written:
            if _identity(self.call.arguments[position]) == _identity(self.call.data):
                name = self.bound.arguments[position].name
                raise ArgumentError(f"the body writes {name!r}, which is the data that minibatches are made of")
        if self.call.recon and facts.volatile:
            raise ArgumentError(
                "recon=True cannot know which rows a minibatch touches: the body chooses them by values that the loop "
                "changes, or by random numbers. Draw these beforehand into a table, or use recon=False"
            )
        for position in self.written:
            table = self.bound.tables[position]
            if table.storage.dtype.kind == "f":
                continue
            if self.call.aggregations[position] == "average":
                raise ArgumentError(
                    f"{table.name!r} holds whole numbers, which cannot be averaged: "
                    f'strads.register_aggregation({table.name}, "sum")'
                )
            if self.call.consistency.bound(0) < np.inf:
                raise ArgumentError(f"{table.name!r} holds whole numbers, which {self.call.consistency} cannot bound")

    def look_ahead(self) -> dict[int, TouchedRows]:
        """Check all indices and, with `recon`, find which rows of written tables are touched; caches the result.

        Raises
        ------
        BodyIndexError, BodyKeyError, BodyError
            If a minibatch fails; nothing has been written.
        """
        read = self.program.argument_roles.with_role(Role.READ, Role.CHECKED, Role.ALIGNED)
        gather_all_rows(self.node, *(self.shards[position] for position in read if position in self.shards))
        if not self.is_checkable:
            return {}
        kept: list[tuple[Any, ...]] = self.node.store.setdefault(_KEPT, [])
        key = self._key()
        for program, found_key, found in kept:
            if program is self.program and found_key == key:
                return found
        table_of = self.program.argument_roles.table_of
        tasks = NodeTasks(self.node, self.team, self.program, self.bound, self.shards, LoopIndices.of(self.numbers))
        count = len(set(table_of.values()))
        # On all nodes the same number of parts, as recording is a collective.
        parts = 1 + self.call.minibatches.count // (_RECORDED_AT_A_TIME * self.node.size) if count else 1
        records = (tasks.part(range(*c)).record() for c in pairwise(even_bounds(len(self.numbers), parts).tolist()))
        rows = touched_rows(records, count, self.numbers.start)
        touched = {position: rows[table] for position, table in table_of.items()}
        self.node.comm.barrier()  # all nodes cache it or none: a cached result means no part in a collective
        if not self.program.facts.volatile:
            kept.append((self.program, key, touched))
            del kept[:-_MAX_KEPT]
        return touched

    def _key(self) -> tuple[Any, ...]:
        """Return the key of what determines which rows are touched, and whether they exist."""
        call = self.call
        values = (*call.arguments, call.data)
        deciding = {
            position: call.contents[position] if call.contents[position] is not None else content_key(values[position])
            for position in sorted(self.program.facts.deciding)
        }
        return call.kinds, deciding, call.minibatches, self.numbers

    def storages(self, replicas: dict[int, NDArray[Any]]) -> tuple[Any, ...]:
        """Return the storages behind views, given an array (1, rows, …) for each written table."""
        written, roles = self.program.facts.written, self.program.argument_roles.roles

        def storage(position: int, argument: TableArgument) -> Any:
            replica = replicas.get(self.bound.same[position])
            if replica is None or position not in written:
                return read_only(argument.raw if replica is None else replica[0])
            return Replicated(replica, replica.shape[1]) if roles[position].is_relaxed else replica[0]

        return self.bound.storages(storage, self.totals)

    def parameter(self, position: int, touched: TouchedRows | None) -> Parameter:
        """Describe a written table to the engine."""
        argument = self.bound.tables[position]
        shard: Shard | None = self.shards.get(position)
        bounds = np.array([0, len(argument.dense)]) if shard is None else shard.bounds
        return Parameter(argument.name, argument.dense, bounds, self.call.aggregations[position], touched)


def _identity(argument: Any) -> Any:
    """Return a key that is equal for two references to the same table."""
    return argument.name if isinstance(argument, TableRef) else table_of(argument)


def _batches(node: Node, call: SyncCall) -> BatchArgument:
    """Return the source of this node's minibatches."""
    parameters = list(inspect.signature(plain_function(call.body)).parameters)
    name = parameters[0] if parameters else "batch"
    rows: range | TableArgument
    if isinstance(call.data, range):
        rows = call.data
    else:
        table = table_over(node.store[call.data.name]) if isinstance(call.data, TableRef) else call.data
        rows = TableArgument(name, table.storage, table)
    return BatchArgument.of(name, rows, call.minibatches.starts, call.minibatches.stops)
