"""What the analysis knows of a variable: which tables it aliases and whose contents it depends on."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

OPAQUE = -1  # the source of what no analysis can follow: random numbers, unknown functions
FLOAT = -3  # the source of what may be a float
ROUNDED = -4  # the source of what float arithmetic has computed: its last bits depend on how it is compiled
NOT_CONSTANT = object()


@dataclass(frozen=True)
class Alias:
    """A variable may be (a part of) the table in this argument.

    `depth` is the number of integer indices that lead to a single value; -1 for a record whose field is not
    chosen.
    """

    argument: int
    depth: int
    whole: bool  # the table itself, not a row of it
    record: bool = False
    keyed: bool = False  # a map, whose rows are chosen by keys


@dataclass(frozen=True)
class Value:
    """Abstract value of a variable; a join over all its assignments."""

    aliases: frozenset[Alias] = frozenset()
    sources: frozenset[int] = frozenset()  # arguments whose contents decide the value, or OPAQUE
    items: "tuple[Value, ...] | None" = None  # of a tuple
    constant: Any = NOT_CONSTANT  # a global: function, module, number
    method: str | None = None  # `table.method`, not called yet
    is_index: bool = False  # the loop index itself
    is_slice: bool = False
    expression: Hashable = None  # equal expressions have equal values in one task; None: not known
    is_shape: bool = False  # a size or dtype, or a tuple of sizes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Hashable, ...]:
        constant = id(self.constant)
        return (
            self.aliases,
            self.sources,
            self.items,
            constant,
            self.method,
            self.is_index,
            self.is_slice,
            self.expression,
            self.is_shape,
        )

    def with_sources(self, sources: Iterable[int]) -> "Value":
        """Return the value with more sources."""
        merged = self.sources | frozenset(sources)
        if merged == self.sources:
            return self
        return replace(self, sources=merged)


def join(first: "Value | None", second: Value) -> Value:
    """Return the value of a variable that is assigned in two places."""
    if first is None or first == second:
        return second
    items = None
    if first.items is not None and second.items is not None and len(first.items) == len(second.items):
        items = tuple(map(join, first.items, second.items))
    return Value(
        aliases=first.aliases | second.aliases,
        sources=first.sources | second.sources,
        items=items,
        constant=first.constant if first.constant is second.constant else NOT_CONSTANT,
        method=first.method if first.method == second.method else None,
        is_index=first.is_index and second.is_index,
        is_slice=first.is_slice or second.is_slice,
        expression=first.expression if first.expression == second.expression else None,
        is_shape=first.is_shape and second.is_shape,
    )


def derived(values: Iterable[Value], expression: Hashable = None) -> Value:
    """Return a fresh value computed from others: it aliases nothing."""
    sources: frozenset[int] = frozenset()
    for value in values:
        sources |= all_sources(value)
    return Value(sources=sources, expression=expression)


def all_sources(value: Value) -> frozenset[int]:
    """Sources of a value and of its items."""
    sources = value.sources
    for item in value.items or ():
        sources |= all_sources(item)
    return sources


def all_aliases(value: Value) -> frozenset[Alias]:
    """Aliases of a value and of its items."""
    aliases = value.aliases
    for item in value.items or ():
        aliases |= all_aliases(item)
    return aliases
