"""Indices in the source of a body: which are not negative, and which can be checked one by one."""

from collections.abc import Iterable, Mapping

from strads.bodies.analysis.dataflow import Dataflow
from strads.bodies.analysis.effects import Access, FallibleOperation
from strads.bodies.analysis.facts import CheckedIndex
from strads.bodies.analysis.index_ranges import nonnegative_indices
from strads.bodies.analysis.inlining import Inlined, Variable, indexed
from strads.bodies.analysis.values import NOTHING, Given, Magnitude, nonnegative


def nonnegative_variables(
    inlined: Inlined, flow: Dataflow, written: frozenset[int]
) -> dict[Variable, frozenset[Given]]:
    """Return the indices that are not negative if what they are computed from is not: see `BodyAnalysis`."""
    effects = flow.effects
    fixed = NOTHING.union(*(a.sources for a in effects.accesses), *(i.sources for i in effects.fallible)) - written
    guarded = nonnegative_indices(flow)
    of_places: dict[Variable, list[Magnitude | None]] = {}
    for name, variable in inlined.indices.items():
        value = flow.final(name)
        is_literal = value.size is not None and value.size[0] == "constant"
        reason = None if is_literal else nonnegative(value)
        if reason is None and not is_literal and name in guarded:
            reason = Magnitude(guarded[name])
        if reason is not None and not all(kind in ("index", "axis") or of[0] in fixed for kind, *of in reason.given):
            reason = None
        of_places.setdefault(variable, []).append(reason)
    found = dict[Variable, frozenset[Given]]()
    for variable, reasons in of_places.items():
        known = [reason.given for reason in reasons if reason is not None]
        if len(known) == len(reasons):
            found[variable] = frozenset().union(*known)
    return found


def checkable_places(inlined: Inlined, flow: Dataflow) -> dict[tuple[int, int], Variable]:
    """Return the places of statements that index → the variable of the source that is the index.

    Only those are included at which the compiled body can check the index alone: Numba compiles constant indices of
    tuples only as they are written.
    """
    if inlined.has_closures:
        return {}
    found, of_tuples = dict[tuple[int, int], Variable](), set[Variable]()
    for label, block in inlined.ir.blocks.items():
        for number, statement in enumerate(block.body):
            holder, container = indexed(statement)
            if holder is None:
                continue
            variable = inlined.indices[holder.index.name]
            found[label, number] = variable
            if flow.final(container.name).items is not None:
                of_tuples.add(variable)
    return {place: variable for place, variable in found.items() if variable not in of_tuples}


def checked_indices(
    operations: Iterable[FallibleOperation], places: Mapping[tuple[int, int], Variable]
) -> frozenset[CheckedIndex]:
    """Return those of some operations that the compiled body checks: indices that may not exist."""
    return frozenset(
        CheckedIndex(None if operation.by_array else places.get(operation.place), operation.table, operation.fits)
        for operation in operations
        if operation.is_index and operation.fits != frozenset()
    )


def row_indices(
    tables: Iterable[int], accesses: Iterable[Access], places: Mapping[tuple[int, int], Variable]
) -> dict[int, frozenset[CheckedIndex]]:
    """Return what of some accesses to tables the compiled body checks: rows that may not exist, for each table."""
    found = {table: set[CheckedIndex]() for table in tables}
    for access in accesses:
        if not access.exists:
            variable = places.get(access.place) if access.is_row else None
            found[access.argument].add(CheckedIndex(variable, None, access.fits))
    return {table: frozenset(indices) for table, indices in found.items()}
