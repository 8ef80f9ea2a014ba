"""What a body does: its accesses to tables, and what decides them."""

from dataclasses import dataclass, field

from strads.loops.analysis.values import NOTHING, Size, Sources


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
        What decides which row it is.
    control
        What decides whether the access happens.
    number
        Number of the value that chooses the row; None where it is a slice or an array.
    by_loop_index, by_next_index
        Whether that is the loop index k itself, or k + 1.
    segment
        An array A, where the row, or each of a slice, is in A[k]:A[k + 1].
    element
        Whether it is one of T[i, j], with an index for each axis.
    place
        Block and statement.
    line
        In the user's file.
    """

    argument: int
    write: bool
    sources: Sources
    control: Sources
    number: int | None
    by_loop_index: bool
    by_next_index: bool
    segment: int | None
    element: bool
    place: tuple[int, int]
    line: int


@dataclass(frozen=True)
class Decision:
    """A place whose outcome depends on values: an index within a row, a size, a function that refuses some values."""

    sources: Sources
    control: Sources  # what decides whether it is come to
    number: tuple[int, int] | None  # of the array that is indexed, and of the index
    # It turns out well if each first of these sizes is at most the second; None: nobody knows.
    fits: frozenset[tuple[Size, Size]] | None
    place: tuple[int, int]
    line: int


@dataclass
class Effects:
    """What a body does.

    Attributes
    ----------
    accesses
        To rows of tables.
    inner
        Indices within rows and local containers, sizes of arrays, functions that refuse some values.
    loops
        Conditions of `while` loops.
    raises
        Exceptions that the body raises itself.
    writes
        Argument → first line that surely writes it.
    doubtful
        Arguments that something may write that no rule covers.
    escapes
        Tables that are used otherwise than row by row.
    """

    accesses: set[Access] = field(default_factory=set)
    inner: set[Decision] = field(default_factory=set)
    loops: Sources = NOTHING
    raises: Sources = NOTHING
    writes: dict[int, int] = field(default_factory=dict)
    doubtful: set[int] = field(default_factory=set)
    escapes: set[int] = field(default_factory=set)
