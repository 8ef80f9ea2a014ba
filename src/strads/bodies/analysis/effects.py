"""The effects of a body: its accesses to tables, and what determines them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.values import NOTHING, Block, Column, Fits, Size, Sources
from strads.user_code.source_location import SourceLine


@dataclass(frozen=True)
class Access:
    """One place in the program where a row of a table is read or written.

    Attributes
    ----------
    argument
        The table.
    write
        Whether it is written.
    sources
        What determines which row it is.
    control
        What determines whether the access happens.
    place
        Block and statement.
    line
        Line in the user's file.
    number
        Value number of the row index; None for a slice or an array.
    is_row
        Whether it is one row, chosen by an integer.
    by_loop_index, by_next_index
        Whether that is the loop index k itself, or k + 1.
    segment
        An array A such that the row, or each row of a slice, is in A[k]:A[k + 1].
    element
        Whether it is an element T[i, j], with an index for each axis.
    scattered
        Whether it is one whose last index is read from a table.
    near
        The table of which `near` has drawn the row.
    fits
        Pairs of sizes: the row exists if the first of each is at most the second; None if sizes do not decide that.
    block
        The block of rows of its task's own that the row is in, if it is known.
    """

    argument: int
    write: bool
    sources: Sources
    control: Sources
    place: tuple[int, int]
    line: SourceLine
    number: int | None = None
    is_row: bool = False
    by_loop_index: bool = False
    by_next_index: bool = False
    segment: int | None = None
    element: bool = False
    scattered: bool = False
    near: int | None = None
    fits: Fits | None = None
    block: Block | None = None

    @property
    def exists(self) -> bool:
        """Whether the row certainly exists."""
        return self.fits == frozenset()


@dataclass(frozen=True)
class FallibleOperation:
    """An operation that may raise, depending on values: an index within a row, a size, a function that refuses some."""

    sources: Sources  # what determines the outcome
    control: Sources  # what determines whether it is reached
    number: tuple[int, int] | None  # value numbers of the array that is indexed, and of the index
    fits: Fits | None  # it succeeds if the first size of each pair is at most the second; None: unknown
    place: tuple[int, int]  # block and statement
    line: SourceLine
    is_index: bool = False  # whether bounds checks decide it: an index of an array that may not exist
    by_array: bool = False  # whether that may be an array of indices
    table: int | None = None  # that has further indices, as T[i, j] has, of which only those decide


AnyAccess = TypeVar("AnyAccess", Access, FallibleOperation)


@dataclass
class Effects:
    """What a body does.

    Attributes
    ----------
    accesses
        Accesses to rows of tables.
    fallible
        Indices within rows and local containers, sizes of arrays, functions that refuse some values.
    loops, may_not_end
        Conditions of `while` loops; whether there are any, even if nothing but the loop index decides.
    raises, may_raise
        The same of exceptions that the body raises itself.
    writes, stores
        Argument → first line that certainly writes it; → the statements that do, with the column that each writes, or
        None if it is not known.
    lasting
        Pairs of sizes, of which the first is that of the contents of a written table → pairs under which they still fit
        after the loop.
    doubtful
        Arguments that an operation without a rule may write.
    escapes
        Tables that are used other than row by row.
    arrays
        Tables of which rows are used as arrays, other than number by number.
    near
        Tables of which `near` draws rows, with the table of weights, or None.
    allocates, computes
        Whether it creates arrays or other containers; whether it calls functions like `exp`, not only operators.
    """

    accesses: set[Access] = field(default_factory=set)
    fallible: set[FallibleOperation] = field(default_factory=set)
    loops: Sources = NOTHING
    raises: Sources = NOTHING
    may_not_end: bool = False
    may_raise: bool = False
    writes: dict[int, SourceLine] = field(default_factory=dict)
    stores: dict[int, dict[tuple[int, int], Column | None]] = field(default_factory=dict)
    lasting: dict[tuple[Size, Size], Fits] = field(default_factory=dict)
    doubtful: set[int] = field(default_factory=set)
    escapes: set[int] = field(default_factory=set)
    arrays: set[int] = field(default_factory=set)
    near: set[tuple[int, int | None]] = field(default_factory=set)
    allocates: bool = False
    computes: bool = False

    def written_columns(self, kinds: Mapping[int, TableKind]) -> dict[int, frozenset[Column]]:
        """Return the tables of which only some columns are written, and these columns."""
        found = {}
        for table, stores in self.stores.items():
            kind, columns = kinds[table], set(stores.values())
            known = frozenset(column for column in columns if column is not None)
            is_plain = not (kind.relaxed or kind.keyed or kind.ragged or table in self.doubtful)
            if is_plain and len(known) == len(columns):
                found[table] = known
        return found
