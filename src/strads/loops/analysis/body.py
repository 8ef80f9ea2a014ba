"""The facts about a body that planning and compilation rest on."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strads.errors import ArgumentError
from strads.loops.analysis.dataflow import FunctionAnalysis
from strads.loops.analysis.effects import Access, Effects
from strads.loops.analysis.kinds import TableKind
from strads.loops.analysis.values import FLOAT, OPAQUE, ROUNDED, Alias, Value


@dataclass(frozen=True)
class BodyAnalysis:
    """Facts about one body; arguments are numbered from 0, without the loop index.

    Attributes
    ----------
    written
        Tables that the body writes, or may write.
    aligned
        Tables that it only reads, and only as A[k].
    deciding
        Arguments whose contents decide which rows are touched: a change of them needs a new reconnaissance.
    dynamic
        Rows of written tables are chosen by values that the loop itself changes, or by random numbers.
    dynamic_reads
        Tables that are only read, at indices that no reconnaissance can check.
    dynamic_parts
        Some row, or local array, is indexed within by such values, or only if such values say so.
    reads_count_as_writes
        Written tables of scalars in which a row may be read in any case and written only if a changing value says
        so (`if new != x[j]: x[j] = new`): reconnaissance logs every access as a write.
    rounding_decides
        Float arithmetic computes an index, or decides whether a row is touched: reconnaissance and run must round
        alike, so sums may not be reordered.
    needs_values
        Reconnaissance has to compute with real values: a loop runs until such a value says so.
    """

    written: frozenset[int]
    aligned: frozenset[int]
    deciding: frozenset[int]
    dynamic: bool
    dynamic_reads: frozenset[int]
    dynamic_parts: bool
    reads_count_as_writes: frozenset[int]
    rounding_decides: bool
    needs_values: bool
    dynamic_line: int = 0


def analyse_body(
    body: Callable[..., Any],
    kinds: Sequence[TableKind | None],
    same: Sequence[int] | None = None,
    floats: Collection[int] = (),
    batch: TableKind | None = None,
) -> BodyAnalysis:
    """Analyse a loop body.

    Parameters
    ----------
    body
        The function; its first parameter is the loop index, or a minibatch.
    kinds
        For each further parameter its kind of table, or None (a scalar, an accumulator).
    same
        For each further parameter the first one that is passed the same table; by default all differ.
    floats
        The further parameters that are scalars of a floating type.
    batch
        What the first parameter is a minibatch of; in the facts it is the argument after the last.

    Raises
    ------
    ArgumentError
        When the body surely writes a table that was declared `readonly`, or its minibatch.
    numba.core.errors.NumbaError
        When the bytecode is not supported.
    """
    same = list(range(len(kinds)) if same is None else same)
    arguments = {0: Value(is_index=True, expression=("index",))}
    if batch is not None:
        alias = Alias(len(kinds), batch.depth, True, batch.record)
        arguments[0] = Value(frozenset({alias}), expression=("argument", len(kinds)))
    for position, kind in enumerate(kinds):
        expression = ("argument", position)
        if kind is None:
            value = Value(
                sources=frozenset({position, FLOAT} if position in floats else {position}), expression=expression
            )
        else:
            alias = Alias(same[position], kind.depth, True, kind.record, kind.keyed)
            value = Value(frozenset({alias}), expression=expression)
        arguments[position + 1] = value
    if batch is not None:
        kinds, same = [*kinds, batch], [*same, len(kinds)]
    analysis = FunctionAnalysis(body, arguments, frozenset())
    analysis.kinds = kinds
    analysis.run()
    return _spread(_conclude(body, kinds, analysis.effects), same)


def _conclude(body: Callable[..., Any], kinds: Sequence[TableKind | None], effects: Effects) -> BodyAnalysis:
    tables = {position for position, kind in enumerate(kinds) if kind is not None}
    readonly = {position for position in tables if kinds[position].readonly}  # type: ignore[union-attr]
    relaxed = {position for position in tables if kinds[position].relaxed}  # type: ignore[union-attr]
    _refuse_written_readonly(body, effects, readonly)
    written = ((set(effects.writes) | effects.doubtful) - readonly) & tables
    volatile = written | {OPAQUE}
    conflicting = written - relaxed
    whole = [access for access in effects.accesses if access.whole]
    parts = [access for access in effects.accesses if not access.whole]
    deciding: set[int] = set()
    for access in effects.accesses:
        deciding |= access.sources | access.control
    logged = [_as_logged(access, kinds) for access in whole if access.argument in conflicting]
    conditional = {
        access.argument
        for access in logged
        if _is_dynamic(access, logged, volatile, same_kind=True) and not _is_dynamic(access, logged, volatile)
    }
    logged = [replace(a, write=True) if a.argument in conditional else a for a in logged]
    dynamic = [access for access in logged if _is_dynamic(access, logged, volatile, same_kind=True)]
    unlogged = [access for access in whole if access.argument not in conflicting]
    unchecked = {access.argument for access in unlogged if _is_dynamic(access, unlogged, volatile)}
    return BodyAnalysis(
        written=frozenset(written),
        aligned=frozenset(_aligned(tables - written - unchecked, whole, effects)),
        deciding=frozenset(source for source in deciding - volatile if source >= 0),
        dynamic=bool(dynamic),
        dynamic_reads=frozenset(unchecked),
        dynamic_parts=any(_is_dynamic(access, parts, volatile) for access in parts),
        reads_count_as_writes=frozenset(conditional),
        rounding_decides=any(_is_rounded(access, volatile) for access in effects.accesses),
        needs_values=bool(effects.loop_sources & volatile) or bool(dynamic),
        dynamic_line=min((access.line for access in dynamic), default=0),
    )


def _spread(facts: BodyAnalysis, same: Sequence[int]) -> BodyAnalysis:
    """Give every parameter the facts of the table that it was passed."""

    def all_with(chosen: frozenset[int]) -> frozenset[int]:
        return frozenset(position for position, first in enumerate(same) if first in chosen)

    return replace(
        facts,
        written=all_with(facts.written),
        aligned=all_with(facts.aligned),
        deciding=all_with(facts.deciding),
        dynamic_reads=all_with(facts.dynamic_reads),
        reads_count_as_writes=all_with(facts.reads_count_as_writes),
    )


def _as_logged(access: Access, kinds: Sequence[TableKind | None]) -> Access:
    """Reconnaissance logs a row that is handed out as written: what happens to it is not followed."""
    kind = kinds[access.argument]
    assert kind is not None
    return replace(access, write=access.write or kind.depth > 1 or kind.record)


def _is_dynamic(access: Access, others: list[Access], volatile: set[int], *, same_kind: bool = False) -> bool:
    """Whether reconnaissance may miss an access, because values that the loop changes decide it.

    Not if the task makes an equal access in any case; with `same_kind`, one that is a write if this one is.
    """
    if access.sources & volatile:
        return True
    if not access.control & volatile:
        return False
    return access.expression is None or not any(
        other.argument == access.argument
        and other.expression == access.expression
        and other.conditions <= access.conditions
        and not (other.sources | other.control) & volatile
        and (other.write or not access.write or not same_kind)
        for other in others
    )


def _is_rounded(access: Access, volatile: set[int]) -> bool:
    """Whether rounding decides an access; where values that the loop changes do, the run is checked anyway."""
    return ROUNDED in access.sources or (ROUNDED in access.control and not access.control & volatile)


def _aligned(candidates: set[int], whole: list[Access], effects: Effects) -> set[int]:
    accesses: dict[int, list[Access]] = {}
    for access in whole:
        accesses.setdefault(access.argument, []).append(access)
    return {
        position
        for position in candidates - effects.escapes
        if position in accesses and all(access.by_loop_index for access in accesses[position])
    }


def _refuse_written_readonly(body: Callable[..., Any], effects: Effects, readonly: set[int]) -> None:
    names = body.__code__.co_varnames[1 : body.__code__.co_argcount]
    for position in sorted(readonly & set(effects.writes)):
        where = f"{body.__code__.co_filename}:{effects.writes[position]}"
        if position >= len(names):
            raise ArgumentError(f"{where}: the body writes its minibatch, which is read only: pass a table to write")
        raise ArgumentError(
            f"{where}: the body writes {names[position]!r}, which was passed as strads.readonly(...); "
            "pass the table itself"
        )
