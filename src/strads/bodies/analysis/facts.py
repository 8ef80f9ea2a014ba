"""The facts about a body on which recording, planning and compilation rely."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from strads.bodies.analysis.inlining import Variable
from strads.bodies.analysis.outcomes import Outcomes
from strads.bodies.analysis.values import Column, Fits, Given, Size
from strads.user_code.source_location import SourceLine


@dataclass(frozen=True)
class CheckedIndex:
    """An index of a table, or within a row or a local array, that may not exist."""

    variable: Variable | None  # of the source; None if it cannot be checked alone
    table: int | None  # that has further indices T[i, j], of which those after the first are meant
    fits: Fits | None  # pairs of sizes: it exists if the first of each is at most the second; None: unknown


def _tables(chosen: frozenset[int], same: Sequence[int]) -> frozenset[int]:
    return frozenset(position for position, first in enumerate(same) if first in chosen)


def _by_table(facts: Mapping[int, Any], same: Sequence[int]) -> Mapping[int, Any]:
    return {position: facts[first] for position, first in enumerate(same) if first in facts}


def _indices(chosen: frozenset[CheckedIndex], same: Sequence[int]) -> frozenset[CheckedIndex]:
    return chosen | {replace(i, table=p) for i in chosen for p, first in enumerate(same) if first == i.table}


# Metadata of a field: the function that extends it to later arguments that are the same table.
_TABLES, _BY_TABLE, _INDICES = ({"for_aliases": extended} for extended in (_tables, _by_table, _indices))


@dataclass(frozen=True)
class BodyAnalysis:
    """Facts about one body; arguments are numbered from 0, excluding the loop index.

    An access is *fixed* if its row, and whether it happens, provably depend only on the loop index, scalars and what
    the loop only reads: tables, or fields and columns of them. All others are *volatile*.

    Attributes
    ----------
    written
        Tables that the body writes or may write.
    aligned
        Tables that it only reads, and only as A[k].
    own_rows
        Written tables (not relaxed) that it accesses only as A[k], or only as A[k * W + j] with j in 0..W - 1 → pairs
        of sizes under which tasks of different indices share no row of them.
    segments
        Tables A that it only reads, and only as A[p] with p in the range P[k]:P[k + 1], or as that slice → P.
    offsets
        Arrays P of that kind of which it reads only P[k] and P[k + 1].
    by_element
        Written tables of numbers with one-axis rows of which it accesses a few elements T[i, j], all of them fixed:
        none in a loop, and no rows.
    arrays
        Tables of which rows are used as arrays, not number by number: recording it takes their numbers.
    scattered
        Written tables of which it accesses only elements T[i, j] with a last index that is read from a table.
    streamed
        Tables that it reads at indices determined by the loop index and scalars alone, or as `segments`.
    deciding
        Arguments whose contents determine which rows are touched, or whether an index exists: if they change, a new
        reconnaissance is needed.
    deciding_columns, written_columns
        Written tables with fields or columns that determine rows and that the body does not write; tables of which it
        writes only some fields or columns → these.
    volatile
        Written tables (not relaxed) with a volatile access that no fixed access covers.
    unproved_tables
        Tables without conflicts that have a volatile access to a row that is not proved to exist and that no fixed
        access covers.
    volatile_parts, volatile_fits
        Whether some index within a row or local container depends on such values, or is used only under a condition
        that does, and sizes do not prove that the index exists; and, where they do, pairs of sizes of which the first
        must not be the larger.
    part_indices, volatile_indices
        Indices within rows and local arrays that may not exist: all of them, and those of `volatile_parts`.
    reads_count_as_writes
        Written tables of scalars of which a fixed read covers a volatile write (`if new != x[j]: x[j] = new`):
        reconnaissance logs every access as a write.
    rounding_decides
        Float arithmetic computes an index, or determines whether a row is touched: reconnaissance and run must round
        identically, so sums may not be reordered.
    is_certain
        Nothing volatile determines what the body touches, or whether it ends: a run of a loop that reconnaissance has
        accepted completes. Unless there are `deciding_columns`, reconnaissance needs no real values of written tables.
    counters
        Written tables to which it only adds integers.
    row_indices, volatile_row_indices
        Tables → indices of rows that may not exist: all of them, and those of volatile accesses.
    proof
        Pairs of sizes of which the first must not be the larger: then a run completes, whatever it reads. None if it
        may not: an index may not exist, or it may wait, or raise.
    lasting
        Pairs of sizes, of which the first is that of the contents of a written table → pairs under which they still fit
        after the loop.
    checked_in_loops
        Tables with an access in a loop of the body to a row that may not exist.
    first_volatile_line, deciding_lines
        First line with a volatile access to a written table, preferably one with a volatile row; arguments that are
        `deciding`, or have `deciding_columns` → the first line where they do.
    certain_share
        Fraction of the access sites to conflicting tables whose execution does not depend on an undecided branch.
    allocates
        Whether it creates arrays or other containers: then compilers keep computations that have no effect.
    computes
        Whether its time may be another than that of its accesses: it calls functions like `exp` or of arrays, or has
        loops without accesses to tables.
    is_short
        Whether it has no loop and uses single elements of its tables only: a task takes well under a microsecond.
    searches
        Whether loops over what it only reads lead to a row that it accesses after them: a search, a walk down a tree.
    outcomes
        Sets of outcomes of undecided branches: the facts are about a reconnaissance that runs each task once with each
        set.
    has_volatile_access
        Whether any access to a conflicting table is volatile, even if a fixed access to the same row covers it.
    drawn
        Written tables (not relaxed) with rows chosen by random numbers, other than by `near`.
    near
        Written tables whose rows `near` draws, or that are indexed by such rows → number of their group. Accesses to
        such rows are neither fixed nor volatile: the run draws among rows that the job owns.
    weights
        Number of a group → the table of weights that are used for it.
    nonnegative
        Variables of the source that, as indices, are certainly not negative if the given numbers are
        in `0..SMALL - 1`: the loop index, tables, which the body does not write, and scalars.
    guards_roundings
        Whether the facts are about a run that may reorder sums which choose rows: it checks accesses to these rows.
    with_outcomes
        The facts for a reconnaissance with such outcomes, which then misses no access, if that is possible and needed.
    with_guards
        The facts for such a run, if reordered sums may be faster and everything that they choose can be checked.
    with_varying
        The facts for a reconnaissance that misses no access whatever the outcomes of branches on what the loop only
        reads: if that varies from call to call, the records last.
    """

    written: frozenset[int] = field(metadata=_TABLES)
    aligned: frozenset[int] = field(metadata=_TABLES)
    own_rows: Mapping[int, Fits] = field(metadata=_BY_TABLE)
    segments: Mapping[int, int] = field(metadata=_BY_TABLE)
    offsets: frozenset[int] = field(metadata=_TABLES)
    by_element: frozenset[int] = field(metadata=_TABLES)
    arrays: frozenset[int] = field(metadata=_TABLES)
    streamed: frozenset[int] = field(metadata=_TABLES)
    deciding: frozenset[int] = field(metadata=_TABLES)
    deciding_columns: frozenset[int] = field(metadata=_TABLES)
    written_columns: Mapping[int, frozenset[Column]] = field(metadata=_BY_TABLE)
    volatile: frozenset[int] = field(metadata=_TABLES)
    unproved_tables: frozenset[int] = field(metadata=_TABLES)
    volatile_parts: bool
    volatile_fits: Fits
    part_indices: frozenset[CheckedIndex] = field(metadata=_INDICES)
    volatile_indices: frozenset[CheckedIndex] = field(metadata=_INDICES)
    reads_count_as_writes: frozenset[int] = field(metadata=_TABLES)
    rounding_decides: bool
    is_certain: bool
    counters: frozenset[int] = frozenset()
    scattered: frozenset[int] = field(metadata=_TABLES, default=frozenset())
    row_indices: Mapping[int, frozenset[CheckedIndex]] = field(metadata=_BY_TABLE, default_factory=dict)
    volatile_row_indices: Mapping[int, frozenset[CheckedIndex]] = field(metadata=_BY_TABLE, default_factory=dict)
    proof: Fits | None = None
    lasting: Mapping[tuple[Size, Size], Fits] = field(default_factory=dict)
    checked_in_loops: frozenset[int] = field(metadata=_TABLES, default=frozenset())
    first_volatile_line: SourceLine | None = None
    deciding_lines: Mapping[int, SourceLine] = field(default_factory=dict)
    certain_share: float = 1.0
    allocates: bool = False
    computes: bool = False
    is_short: bool = False
    searches: bool = False
    outcomes: tuple[Outcomes, ...] = ()
    has_volatile_access: bool = False
    drawn: frozenset[int] = field(metadata=_TABLES, default=frozenset())
    near: Mapping[int, int] = field(metadata=_BY_TABLE, default_factory=dict)
    weights: Mapping[int, int] = field(default_factory=dict)
    nonnegative: Mapping[Variable, frozenset[Given]] = field(default_factory=dict)
    guards_roundings: bool = False
    with_outcomes: "BodyAnalysis | None" = None
    with_guards: "BodyAnalysis | None" = None
    with_varying: "BodyAnalysis | None" = None

    def for_aliases(self, same: Sequence[int]) -> "BodyAnalysis":
        """Extend the facts to every argument; `same` has for each the first one that is the same table."""
        extended = {
            fact.name: fact.metadata["for_aliases"](getattr(self, fact.name), same)
            for fact in fields(self)
            if "for_aliases" in fact.metadata
        }
        return replace(self, **extended)
