"""The analysis of a whole body: its effects (`dataflow`), and the facts that these prove (`proofs`)."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from strads.bodies.analysis.counters import counters
from strads.bodies.analysis.dataflow import Dataflow
from strads.bodies.analysis.facts import BodyAnalysis
from strads.bodies.analysis.inlining import inlined_ssa
from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.memory import Memory
from strads.bodies.analysis.proofs import LoopBody, Proofs, ProofsWithOutcomes
from strads.bodies.analysis.read_only_rows import only_read_rows
from strads.bodies.analysis.source_indices import checkable_places, nonnegative_variables
from strads.bodies.analysis.values import (
    FLOAT,
    INDICES,
    LOOP_INDEX,
    ROUNDED,
    Column,
    Magnitude,
    Numbers,
    Part,
    Sources,
    Value,
    fixed_columns,
)


def analyse_body(
    body: Callable[..., Any],
    kinds: Sequence[TableKind | None],
    same: Sequence[int] | None = None,
    floats: Collection[int] = (),
    tuples: Mapping[int, Any] = MappingProxyType({}),
    batch: TableKind | None = None,
    random: Collection[int] = (),
    integers: Collection[int] = (),
) -> BodyAnalysis:
    """Analyse a loop body.

    Parameters
    ----------
    body
        The function; its first parameter is the loop index, or a minibatch.
    kinds
        The kind of table of each further parameter, or None (a scalar, an accumulator).
    same
        For each further parameter, the first one that is passed the same table; by default all differ.
    floats
        Further parameters that are scalars of a floating type.
    tuples
        Further parameters that are tuples of scalars → for each item None, or the same for a nested tuple.
    batch
        What the first parameter is a minibatch of; in the facts it is an additional last argument.
    random
        Further parameters that are random numbers.
    integers
        Further parameters that are integers of at most 63 bits and a sign.

    Raises
    ------
    ArgumentError
        If the body certainly writes a table that was declared `readonly`, or its minibatch.
    CompileError
        For statements that loop bodies do not support.
    numba.core.errors.NumbaError
        If the bytecode is not supported.
    """
    same = list(range(len(kinds)) if same is None else same)
    kinds = [*kinds, batch]
    same.append(len(kinds) - 1)
    inlined = inlined_ssa(body)  # type: ignore[arg-type]

    tables = {position: kind for position, kind in enumerate(kinds) if kind is not None}
    scalars = _Scalars(floats, integers)

    def dataflow(columns: Mapping[int, frozenset[Column]], *, within_iteration: bool = False) -> Dataflow:
        numbers = Numbers()
        index = numbers.of("loop index")
        arguments = {
            position + 1: _argument(position, same[position], kind, scalars, tuples.get(position), numbers)
            for position, kind in enumerate(kinds[:-1])
        }
        arguments[0] = Value(number=index, below=INDICES, magnitude=Magnitude(frozenset({LOOP_INDEX})))
        if batch is not None:
            arguments[0] = _argument(len(kinds) - 1, len(kinds) - 1, batch, scalars, None, numbers)
        memory = Memory(tables, index, numbers, columns)
        for position in random:
            arguments[position + 1] = memory.random_numbers(position)
        found = Dataflow(inlined.ir.blocks, arguments, memory, numbers, within_iteration=within_iteration)
        found.run()
        return found

    flow, columns = dataflow({}), dict[int, frozenset[Column]]()
    if batch is None:
        columns = flow.effects.written_columns(tables)
        flow = dataflow(columns) if columns else flow

    @cache
    def within_iteration() -> Dataflow:
        return dataflow(columns, within_iteration=True)

    held = frozenset(only_read_rows(inlined.ir.blocks))
    of = LoopBody(body, kinds, frozenset(random), held, batch is not None, checkable_places(inlined, flow))
    proofs = Proofs(of, flow)
    facts = proofs.facts().for_aliases(same)
    conditional = batch is None and proofs.conditions_of_rows()
    if batch is None:
        facts = replace(facts, nonnegative=nonnegative_variables(inlined, flow, facts.written))
        alone = {p: kind for p, kind in tables.items() if same.count(same[p]) == 1}
        facts = replace(facts, counters=counters(inlined.ir.blocks, alone, integers) & facts.written)
    if batch is None and facts.rounding_decides and facts.is_certain and not (facts.is_short or facts.near):
        guarded = Proofs(of, flow, guards_roundings=True).facts().for_aliases(same)
        if not guarded.volatile_parts and ROUNDED not in flow.effects.loops | flow.effects.raises:
            guarded = replace(guarded, counters=facts.counters, nonnegative=facts.nonnegative)
            facts = replace(facts, with_guards=guarded)
    if conditional and not (facts.volatile or facts.reads_count_as_writes or facts.near):
        varying = Proofs(of, within_iteration()).only_conditions()
        if varying:
            other = ProofsWithOutcomes(of, within_iteration(), inlined.branches, varying)
            longer = _as_recorded(other.facts().for_aliases(same), facts)
            decides = {*longer.deciding, *map(fixed_columns, longer.deciding_columns)}
            if not (longer.volatile or longer.reads_count_as_writes or decides & varying):
                facts = replace(facts, with_varying=longer)
    is_inexact = facts.volatile or facts.reads_count_as_writes or (facts.near and facts.has_volatile_access)
    if batch is None and (is_inexact or facts.volatile_parts or facts.unproved_tables):
        other = ProofsWithOutcomes(of, within_iteration(), inlined.branches)
        better = _as_recorded(other.facts().for_aliases(same), facts)
        is_exact = not better.volatile and not better.reads_count_as_writes
        knows_more = facts.volatile or (facts.volatile_parts and not better.volatile_parts)
        if (is_exact and is_inexact) or (not better.volatile and knows_more):
            return replace(facts, with_outcomes=better)
        return replace(facts, first_volatile_line=better.first_volatile_line or facts.first_volatile_line)
    return facts


def _as_recorded(better: BodyAnalysis, facts: BodyAnalysis) -> BodyAnalysis:
    """Return the facts for a reconnaissance that tries both outcomes of conditions, with those that do not need it.

    Its `deciding` leaves out what decides only these conditions. Proofs may rely on them, so nothing is proved but what
    holds for any sizes: these loops are recorded, or checked in the run.
    """
    own_rows = {table: fits for table, fits in better.own_rows.items() if not fits}
    proof = None if better.proof else better.proof
    return replace(better, proof=proof, own_rows=own_rows, counters=facts.counters, nonnegative=facts.nonnegative)


class _Scalars(NamedTuple):
    """Positions of floats, and of integers that fit into int64; of others, as of uint64, nothing is derived."""

    floats: Collection[int]
    integers: Collection[int]


def _argument(
    position: int, table: int, kind: TableKind | None, scalars: _Scalars, form: Any, numbers: Numbers
) -> Value:
    if kind is None:
        number = numbers.of(("argument", position))
        sources = frozenset({position, FLOAT} if position in scalars.floats else {position})
        if form is not None:
            return _tuple(form, sources, ("argument", position), numbers)
        size = ("argument", position) if position in scalars.integers else None
        return Value(sources=sources, number=number, size=size)
    number = numbers.of(("argument", table, kind.keyed))
    return Value(frozenset({Part(table, kind.depth, True, kind.keyed)}), number=number)


def _tuple(form: Any, sources: Sources, name: tuple[Hashable, ...], numbers: Numbers) -> Value:
    if form is None:
        return Value(sources=sources, number=numbers.of(name))
    items = tuple(_tuple(item, sources, (*name, place), numbers) for place, item in enumerate(form))
    return Value(sources=sources, items=items, number=numbers.of(name))
