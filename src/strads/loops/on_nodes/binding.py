"""A loop's arguments on one node: its shards of the tables, or the tables themselves where there is one node only."""

import threading
from collections.abc import Callable
from typing import Any

from strads.cluster import Node
from strads.dds import KeyedTable, RaggedArray, accumulator, dmap, dmultimap, dvector, readonly, relaxed
from strads.dds.shard import Shard, complete
from strads.engine.roles import Role
from strads.loops.arguments import BoundArguments, bind_arguments
from strads.loops.on_nodes.specs import LoopSpec, SumRef, TableRef
from strads.loops.program import LoopProgram, find_program

# Logical nodes share one process: the first compiles, the others find what it has compiled.
COMPILING = threading.RLock()


def shards_of(node: Node, arguments: tuple[Any, ...]) -> dict[int, Shard]:
    """This node's shard of each argument that is a reference to one, by position."""
    return {i: node.store[a.name] for i, a in enumerate(arguments) if isinstance(a, TableRef)}


def bind(
    node: Node, spec: LoopSpec, arguments: tuple[Any, ...], *, outcomes: bool = False
) -> tuple[BoundArguments, LoopProgram]:
    """Bind the body to this node's tables: in their whole address space a row has its own number.

    With `outcomes`, the program is the one whose reconnaissance chooses them.
    """
    bound = bind_arguments(spec.body, values_of(node, arguments), overlaps=spec.overlaps)
    with COMPILING:
        program = find_program(spec.body, bound, fastmath=spec.options.fastmath)
        chosen = program.with_outcomes(bound) if outcomes else None
        return bound, chosen or program


def compiling(program: LoopProgram, compile_it: Callable[[], Any]) -> tuple[Any, float]:
    """Compile something under the lock; returns it, and the seconds that it took, of the analysis too if it is new."""
    with COMPILING:
        before = program.compile_seconds if program.used else 0.0
        program.used = True
        return compile_it(), program.compile_seconds - before


def values_of(node: Node, arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arguments of a body on this node, where they have come as references."""
    tables: dict[str, dvector] = {}
    values: list[Any] = []
    table: dvector | KeyedTable
    for argument in arguments:
        if isinstance(argument, TableRef):
            if argument.name not in tables:
                tables[argument.name] = table_over(node.store[argument.name])
            table = tables[argument.name]
            if argument.index is not None:
                table = (dmultimap if table.is_ragged else dmap).of_index(node.store[argument.index], table)
            values.append(relaxed(table) if argument.relaxed else readonly(table) if argument.readonly else table)
        else:
            values.append(accumulator(argument.start) if isinstance(argument, SumRef) else argument)
    return values


def bring_what_is_read(node: Node, program: LoopProgram, shards: dict[int, Shard]) -> None:
    """Have on every node what its tasks may read at any row."""
    everywhere = (
        Role.READ,
        Role.CHECKED,
        Role.SEGMENTED,
        Role.OFFSETS,
        Role.RELAXED,
        Role.CHECKED_RELAXED,
    )
    complete(node, *(shards[position] for position in program.cast.with_role(*everywhere) if position in shards))


def table_over(shard: Shard) -> dvector:
    """Return a table over a shard's address space; the shard's own arrays stay writeable."""
    if isinstance(shard.whole, RaggedArray):
        return dvector(RaggedArray(shard.whole.values.view(), shard.whole.offsets.view()), copy=False)
    return dvector(shard.whole.view(), copy=False)
