"""Abstract values of variables: the memory that they may refer to, and whose contents determine the value."""

import numbers
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# Sources that are not arguments.
OPAQUE = -1  # values that the rules do not cover: of unknown functions, and rows drawn by `near`
FLOAT = -3  # values that may be floats
ROUNDED = -4  # results of float arithmetic: the last bits depend on how it is compiled
_FIXED_COLUMNS = -8  # and below: what the loop leaves as it is of a table of which it writes other columns

NOT_CONSTANT = object()
Sources = frozenset[int]
Column = str | int  # a field of records, or a column of rows of numbers
# A size that is constant throughout a task:
# ("constant", n)
# ("argument", p)      a scalar
# ("axis", p, n)       the length of an axis of a table
# ("indices", None)    one more than the largest loop index, if none is negative
# ("row", p)           the length of row k of a ragged table
# ("largest", p, f)    the largest integer of a table, or of a field of its records, if none is negative
# ("above", p, f)      one more than that
# ("top", p, f)        one more than the largest integer, even if some are negative
# ("capacity", p, f)   one more than the largest integer of their dtype
# ("depth", p, f)      minus the smallest integer of their dtype
# ("plus", size, n)    a size and a constant
# ("sum", size, size), ("product", size, size), ("smaller", size, size)
# ("first index", None) the smallest loop index
# ("modulus", size)    exclusive upper bound of remainders of a division by a size, which is positive
# where p is the position of an argument.
Size = tuple[Any, ...]
Fits = frozenset[tuple[Size, Size]]  # something succeeds if the first size of each pair is at most the second
# The block of rows that belongs to one task, as for `T[k * W + j]` with j in `0..W - 1`: the widths of the nested
# blocks, here (W,), where the loop index numbers the outermost, and the pairs of sizes under which this holds.
Block = tuple[tuple[Size, ...], Fits]
# A number that a body is given: `LOOP_INDEX`, ("content", position of a table, field), or a size: an argument, an axis.
Given = tuple[Any, ...]
LOOP_INDEX: Given = ("index",)
INDICES: Size = ("indices", None)
FIRST_INDEX: Size = ("first index", None)
NOTHING: Sources = frozenset()
UNKNOWN_BLOCK = -1


@dataclass(frozen=True)
class Part:
    """A table, a row of it, or a part of a row.

    `depth` is the number of integer indices that lead to a single value, or to a record without a selected field.
    """

    argument: int  # position of the table among the arguments
    depth: int | None  # None: not known
    whole: bool  # the table itself, or some of its rows
    keyed: bool = False  # a map: its rows are selected by keys
    field: str | None = None  # selected field of its records
    full: bool = True  # not sliced: its axes are as long as the table's


@dataclass(frozen=True)
class Local:
    """An array, list, set or dictionary that the body creates, identified by the place where it does."""

    place: Hashable
    depth: int | None  # None: not known
    is_array: bool  # whether stored values are copied into it
    full: bool = True  # whether it is the whole container, not a slice


RANDOM = "random"  # place of random numbers
CONSTANT = "constant"  # place of arrays that are compiled into the code
UNKNOWN = Local("unknown", None, False)  # memory that no rule covers
Reference = Part | Local


SMALL = 1 << 31  # what a loop is given is looked up before a run: whether it is in `0..SMALL - 1`
MAX_BITS = 63


@dataclass(frozen=True)
class Magnitude:
    """A bound of an integer, between -2^bits and 2^bits, if the `given` and `limits` are in `0..SMALL - 1`.

    Then computing it does not overflow.
    """

    given: frozenset[Given] = frozenset()  # numbers that it is computed from
    bits: int = 31  # at most `MAX_BITS`
    nonnegative: bool = True  # whether it is not negative
    limits: frozenset[Given] = frozenset()  # further numbers that limit only the bits, not the sign

    def __or__(self, other: "Magnitude") -> "Magnitude":
        """Return the magnitude of either of two."""
        bits, nonnegative = max(self.bits, other.bits), self.nonnegative and other.nonnegative
        return Magnitude(self.given | other.given, bits, nonnegative, self.limits | other.limits)

    def of_bits(self, bits: int, *, nonnegative: bool) -> "Magnitude | None":
        """Return the magnitude of a number of so many bits that is computed from this one; None for too many."""
        return None if bits > MAX_BITS else Magnitude(self.given | self.limits, bits, nonnegative)


class Numbers:
    """Value numbering: equal numbers for equal operations on equal operands."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, key: Hashable) -> int:
        """Return the number of a variable or an operation."""
        return self._known.setdefault(key, len(self._known))


@dataclass(frozen=True)
class Value:
    """Abstract value of a variable in SSA form."""

    references: frozenset[Reference] = frozenset()  # memory that it may be; none for a number
    sources: Sources = NOTHING  # arguments whose contents determine the value; for memory: which memory it is
    length: Sources = NOTHING  # what determines the shape of the memory, apart from its `Local`s
    items: "tuple[Value, ...] | None" = None  # items of a tuple
    constant: Any = NOT_CONSTANT  # a global: function, module, number
    method: "tuple[str, Value] | None" = None  # a bound method: its name and owner
    elements: "Value | None" = None  # what an iterator yields
    number: int | None = None  # equal numbers imply equal values if computed from the same variables
    size: Size | None = None  # the size that it equals
    sizes: tuple[Size | None, ...] = ()  # of a shape, if their number is known
    below: Size | None = None  # a size that the value is below, and it is not negative
    magnitude: Magnitude | None = None  # of an integer, if it is known
    is_slice: bool = False  # whether it may be a slice
    is_shape: bool = False  # a tuple of sizes
    segment: int | None = None  # an array A such that the value is in A[k]:A[k + 1], or is this slice
    near: int | None = None  # a table of which `near` has drawn this row
    iterator: int | None = None  # for an iterator that can be consumed only once: the block that created it

    def __eq__(self, other: object) -> bool:
        # Constants are compared by identity: they may be arrays.
        return isinstance(other, Value) and self.constant is other.constant and vars(self) == vars(other)

    @property
    def is_memory(self) -> bool:
        """Whether it may be an array or another container; a tuple is not."""
        return bool(self.references)

    @property
    def is_number(self) -> bool:
        """Whether it is certainly one number: no container, tuple, iterator or function."""
        if self.constant is not NOT_CONSTANT and not isinstance(self.constant, numbers.Number | np.bool_):
            return False
        others = self.items, self.elements, self.method
        return not (self.is_memory or self.is_shape or self.is_slice) and others == (None, None, None)

    def with_sources(self, sources: Iterable[int]) -> "Value":
        """Return the value with additional sources."""
        merged = self.sources | frozenset(sources)
        return self if merged == self.sources else replace(self, sources=merged)


def largest(value: Value) -> Size | None:
    """Return the largest integer that a value can be, if the content of a table limits it, and it is not negative."""
    return ("largest", *value.below[1:]) if value.below is not None and value.below[0] == "above" else None


def limit_of(index: Value) -> Size | None:
    """Return a size with which an axis is long enough for an index; None if there is none, or it is no integer."""
    if type(index.constant) is int:
        return "constant", max(index.constant + 1, -index.constant)
    return None if index.is_memory or index.is_slice else index.below


def magnitude(value: Value) -> Magnitude | None:
    """Return the magnitude of an integer, if it is known."""
    if value.magnitude is None and value.size is not None:
        kind, number, *_ = value.size
        if kind in ("argument", "axis"):
            return Magnitude(frozenset({value.size}))
        if kind == "constant" and number.bit_length() <= MAX_BITS:
            return Magnitude(bits=number.bit_length(), nonnegative=number >= 0)
    return value.magnitude


def nonnegative(value: Value) -> Magnitude | None:
    """Return the magnitude of an integer that is not negative; None if that is not known."""
    found = magnitude(value)
    return found if found is not None and found.nonnegative else None


def content(argument: int, field: str | None) -> Magnitude:
    """Return the magnitude of an integer of a table."""
    return Magnitude(frozenset({("content", argument, field)}))


def fixed_columns(argument: int) -> int:
    """Return the source of values that a loop does not change in a table of which it writes other columns."""
    return _FIXED_COLUMNS - argument


def table_of_fixed(source: int) -> int | None:
    """Return the table that a source is the fixed columns of; None for other sources."""
    return _FIXED_COLUMNS - source if source <= _FIXED_COLUMNS else None


def from_arguments(sources: Iterable[int]) -> Sources:
    """Return those of some sources that are the contents of arguments."""
    return frozenset(source for source in sources if source >= 0 or source <= _FIXED_COLUMNS)


def of_contents(size: Size) -> int | None:
    """Return the table whose content determines a size; None if none does."""
    if size[0] == "plus":
        return of_contents(size[1])
    return size[1] if size[0] in ("largest", "above", "top") else None


def parts(value: Value) -> list[Part]:
    """Return the tables that a value may be, or be a part of."""
    return [reference for reference in value.references if isinstance(reference, Part)]


def locals_of(value: Value) -> list[Local]:
    """Return the containers of the body that a value may be."""
    return [reference for reference in value.references if isinstance(reference, Local)]


def is_random(local: Local) -> bool:
    """Whether a container is random numbers."""
    return local.place == RANDOM


def join(first: "Value | None", second: Value) -> Value:
    """Return the value of a variable that is either of two."""
    if first is None or first == second:
        return second
    references, items = first.references | second.references, None
    magnitudes = magnitude(first), magnitude(second)
    sources = first.sources | second.sources
    if first.items is not None and second.items is not None and len(first.items) == len(second.items):
        items = tuple(map(join, first.items, second.items))
    elif first.items is not None or second.items is not None:
        references |= {UNKNOWN}  # a tuple of unknown length
        for value in (first, second):
            for item in value.items or ():
                references |= item.references
                sources |= item.sources
    elements = first.elements
    if elements is not None and second.elements is not None:
        elements = join(elements, second.elements)
    return Value(
        references=references,
        sources=sources,
        length=first.length | second.length,
        items=items,
        constant=first.constant if first.constant is second.constant else NOT_CONSTANT,
        method=first.method if first.method == second.method else None,
        elements=elements if first.elements is not None and second.elements is not None else None,
        number=first.number if first.number == second.number else None,
        size=first.size if first.size == second.size else None,
        sizes=first.sizes if first.sizes == second.sizes else (),
        below=first.below if first.below == second.below else None,
        magnitude=magnitudes[0] | magnitudes[1] if magnitudes[0] and magnitudes[1] else None,
        is_slice=first.is_slice or second.is_slice,
        is_shape=first.is_shape and second.is_shape,
        segment=first.segment if first.segment == second.segment else None,
        near=first.near if first.near == second.near else None,
        iterator=first.iterator if first.iterator == second.iterator else UNKNOWN_BLOCK,
    )
