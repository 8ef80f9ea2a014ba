"""A loop's arguments on one node: its shards of the tables, or the tables themselves if there is only one node."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from strads.cluster import Node
from strads.dds import KeyedTable, RaggedArray, accumulator, dmap, dmultimap, dvector, readonly, relaxed
from strads.dds.shard import Shard
from strads.loops.argument_kinds import bind_arguments
from strads.loops.arguments import BoundArguments
from strads.loops.compile_clock import COMPILE_CLOCK
from strads.loops.on_nodes.specs import LoopSpec, SumRef, TableRef
from strads.loops.program import LoopProgram, Variant, find_program


def shards_of(node: Node, arguments: tuple[Any, ...]) -> dict[int, Shard]:
    """This node's shard of each argument that is a reference to one, by position."""
    return {i: node.store[a.name] for i, a in enumerate(arguments) if isinstance(a, TableRef)}


def bind(
    node: Node, spec: LoopSpec, arguments: tuple[Any, ...], variant: Variant | None = None
) -> tuple[BoundArguments, LoopProgram]:
    """Bind the body to this node's tables, whose address space covers all rows under their global numbers.

    The program is a `variant`, if one is given.
    """
    bound = bind_arguments(spec.body, values_of(node, arguments), overlaps=spec.overlaps).with_copies(spec.counters)
    is_here = not any(isinstance(argument, TableRef) for argument in arguments)
    bound = replace(bound, has_values=is_here, indices=spec.indices)
    program = find_program(LoopProgram, spec.body, bound, spec.options.fastmath)
    return bound, (variant and program.as_variant(variant, bound)) or program


def compiling(compile_it: Callable[[], Any]) -> tuple[Any, float]:
    """Compile something under the lock; returns it and the seconds taken."""
    with COMPILE_CLOCK.lock:
        before = COMPILE_CLOCK.seconds
        return compile_it(), COMPILE_CLOCK.seconds - before


def values_of(node: Node, arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arguments of a body on this node, resolving references."""
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


def table_over(shard: Shard) -> dvector:
    """Return a table over a shard's address space; the shard's own arrays remain writeable."""
    if isinstance(shard.whole, RaggedArray):
        return dvector(RaggedArray(shard.whole.values.view(), shard.whole.offsets.view()), copy=False)
    return dvector(shard.whole.view(), copy=False)
