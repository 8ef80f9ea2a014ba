"""The arguments of a loop body: tables with their hints, accumulators, scalars, constant arrays."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from strads.bodies.analysis import Field, TableKind
from strads.bodies.analysis.sizes import Sizes
from strads.bodies.analysis.values import Fits, Size, of_contents
from strads.dds import (
    Accumulator,
    HashIndex,
    RaggedArray,
    accumulator,
    dvector,
)
from strads.dds.arguments import array_key
from strads.dds.ragged import read_only
from strads.engine.views.keyed import Keyed
from strads.engine.views.kinds import MAX_AXES
from strads.loops.indices import LoopIndices
from strads.rng.numbers import RandomNumbers

Storage = NDArray[Any] | RaggedArray


@dataclass(frozen=True)
class TableArgument:
    """A table or, if `table` is None, a NumPy array that the body only reads.

    A map is the table of its values, with an `index` of its keys.
    """

    name: str  # of the body's parameter
    storage: Storage  # the rows
    table: dvector | None
    relaxed: bool = False  # whether each lane writes to a replica
    readonly: bool = False  # whether it was passed as `strads.readonly(v)`
    index: HashIndex | None = None
    counts: bool = False  # whether tasks only add integers, so that each thread may use a replica of its own

    @property
    def keyed(self) -> bool:
        """Whether rows are found by key."""
        return self.index is not None

    @property
    def ragged(self) -> bool:
        """Whether the rows have different lengths."""
        return isinstance(self.storage, RaggedArray)

    @property
    def record(self) -> bool:
        """Whether the rows are records."""
        return self.storage.dtype.names is not None

    @property
    def dense(self) -> NDArray[Any]:
        """The array of a table that is not ragged."""
        assert isinstance(self.storage, np.ndarray)
        return self.storage

    @property
    def values(self) -> NDArray[Any]:
        """All values, regardless of the row structure."""
        return self.storage.values if isinstance(self.storage, RaggedArray) else self.storage

    @property
    def can_be_ghost(self) -> bool:
        """Whether reconnaissance can do without its values: it has at most `MAX_AXES` dimensions."""
        return self.ragged or self.dense.ndim <= (1 if self.record else MAX_AXES)

    @property
    def kind(self) -> TableKind:
        """What the analysis has to know."""
        dtype = self.storage.dtype
        return TableKind(
            depth=2 if self.ragged else self.dense.ndim,
            fields=tuple(
                Field(
                    name,
                    field[0].shape,
                    field[0].base.kind == "f",
                    _is_integer(field[0].base),
                    field[0].base.kind == "u",
                )
                for name, field in (dtype.fields or {}).items()
            ),
            relaxed=self.relaxed,
            readonly=self.readonly,
            floating=dtype.kind == "f",
            integer=_is_integer(dtype),
            unsigned=dtype.kind == "u",
            keyed=self.keyed,
            ragged=self.ragged,
            has_elements=not (self.ragged or self.keyed) and 2 <= self.dense.ndim <= MAX_AXES,
        )

    @property
    def type_key(self) -> tuple[Any, ...]:
        """Equal keys compile to the same code."""
        index = None if self.index is None else self.index.starts.dtype
        kinds = tuple(map(array_key, self.raw if self.ragged else (self.raw,)))
        return "table", kinds, self.relaxed, self.counts, self.readonly, self.table is None, index

    @property
    def raw(self) -> Any:
        """What is passed to compiled code: the array, or values and offsets."""
        if isinstance(self.storage, RaggedArray):
            return self.storage.values, self.storage.offsets
        return self.storage

    def by_key(self, storage: Any) -> Any:
        """Return the storage behind the argument's view: that of its rows and, for a map, its index."""
        return storage if self.index is None else Keyed(storage, *self.index.arrays)


@dataclass(frozen=True)
class AccumulatorArgument:
    """A sum that the body adds to."""

    name: str  # of the body's parameter
    accumulator: Accumulator  # the user's, or another of the same type
    ragged = False
    keyed = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the jobs' partial sums."""
        return np.dtype(np.float64 if isinstance(self.accumulator.value, float) else np.int64)

    def empty(self) -> "AccumulatorArgument":
        """Return another sum of the same type, which is 0."""
        return replace(self, accumulator=accumulator(self.dtype.type(0).item()))

    @property
    def type_key(self) -> tuple[Any, ...]:
        """Equal keys compile to the same code."""
        return "accumulator", self.dtype


@dataclass(frozen=True)
class ScalarArgument:
    """A number, a bool, None, or a tuple of them."""

    name: str  # of the body's parameter
    value: Any  # as passed to compiled code
    ragged = False
    keyed = False

    @property
    def type_key(self) -> tuple[Any, ...]:
        """Equal keys compile to the same code."""
        return "scalar", _scalar_type(self.value)


class RandomArgument(ScalarArgument):
    """Random numbers; the value is what compiled code is passed: the key, and 1 in the precision of the numbers."""

    @classmethod
    def of(cls, name: str, numbers: RandomNumbers, position: int, dtype: np.dtype[Any]) -> "RandomArgument":
        """Create the argument at a position of the body's parameters."""
        return cls(name, (numbers.key(position), dtype.type(1)))

    @property
    def type_key(self) -> tuple[Any, ...]:
        """Equal keys compile to the same code."""
        return "random", self.value[1].dtype


@dataclass(frozen=True, eq=False)
class BatchArgument(ScalarArgument):
    """The source of minibatches: rows of a table, or the numbers of a range.

    Minibatch b is `starts[b]..stops[b] - 1`. It is the last of the bound arguments, but the body's first parameter. Its
    value is what compiled code is passed: rows (or a tuple of start and step of the range), starts and stops.
    """

    rows: TableArgument | range
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(
        cls, name: str, rows: TableArgument | range, starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> "BatchArgument":
        """Create an argument from rows and the bounds of each minibatch."""
        raw = (np.array([rows.start, rows.step]),) if isinstance(rows, range) else rows.raw
        return cls(name, read_only((raw, starts, stops)), rows, starts, stops)

    @property
    def kind(self) -> TableKind:
        """What the analysis has to know."""
        return TableKind(1, readonly=True) if isinstance(self.rows, range) else replace(self.rows.kind, readonly=True)

    def __getitem__(self, number: int) -> Any:
        """Return a minibatch, for the interpreter."""
        chosen = slice(int(self.starts[number]), int(self.stops[number]))
        if isinstance(self.rows, range):
            return np.array(self.rows[chosen])
        if self.rows.record:
            return self.rows.dense[chosen].view(np.recarray)
        return self.rows.storage[chosen]


Argument = TableArgument | AccumulatorArgument | ScalarArgument


@dataclass(frozen=True)
class BoundArguments:
    """All arguments of one call, in the order of the body's parameters after the first; then any minibatches.

    Each preparation and each run binds new ones, so what is derived from them is cached.
    """

    arguments: tuple[Argument, ...]
    same: tuple[int, ...]  # for each argument, the first one with the same table
    float_dtype: np.dtype[Any]  # of Python floats, among the arguments and in the body
    overlaps: tuple[tuple[int, int], ...] = ()  # arguments that share memory, but are not the same table
    has_values: bool = False  # whether tables have all their values here
    indices: LoopIndices | None = None  # of the loop

    @property
    def type_key(self) -> tuple[Any, ...]:
        """Equal keys compile to the same code."""
        return tuple(argument.type_key for argument in self.arguments), self.same, self.float_dtype, self.overlaps

    @cached_property
    def scalars(self) -> Mapping[int, Any]:
        """Position → number, bool, None, or tuple of them."""
        return {i: a.value for i, a in enumerate(self.arguments) if type(a) is ScalarArgument}

    def float_scalars(self) -> frozenset[int]:
        """Positions of floating-point scalars, and of tuples that contain one."""
        return frozenset(position for position, value in self.scalars.items() if _has_float(value))

    def integer_scalars(self) -> frozenset[int]:
        """Positions of bools, and of integers that compiled code holds with a sign, and of tuples of them."""
        return frozenset(position for position, value in self.scalars.items() if _is_whole(value))

    def with_copies(self, positions: Collection[int]) -> "BoundArguments":
        """Return the arguments with some tables as counters: each thread works on a replica of them."""
        counters = {p: replace(self.tables[p], relaxed=True, counts=True) for p in positions}
        return self.exchanged(counters) if counters else self

    def exchanged(self, others: Mapping[int, Argument]) -> "BoundArguments":
        """Return the arguments with some of them exchanged for others."""
        return replace(self, arguments=tuple(others.get(p, argument) for p, argument in enumerate(self.arguments)))

    @property
    def sums_floats(self) -> bool:
        """Whether the body accumulates floats: then the bits of the sum depend on which job runs which task."""
        return any(a.dtype.kind == "f" for a in self.sums.values())

    @property
    def has_floats(self) -> bool:
        """Whether the body gets any number that is not an integer."""
        dtypes = [argument.storage.dtype for argument in self.tables.values()]
        kinds = {field[0].base.kind for dtype in dtypes for field in (dtype.fields or {"": (dtype,)}).values()}
        return bool(kinds - set("iub") or self.float_scalars()) or self.sums_floats

    def tuples(self) -> dict[int, Any]:
        """Position → structure of a tuple of numbers: for each item None, or the same for a nested tuple."""
        return {position: _form(value) for position, value in self.scalars.items() if isinstance(value, tuple)}

    def fit(self, pairs: Fits) -> bool:
        """Whether the first size of each pair is at most the second."""
        if not pairs:  # mostly
            return True
        known = self._known_to_fit.get(pairs)
        if known is None or any(table.version != version for table, version in known[1]):
            by_contents = {of_contents(size) for pair in pairs for size in pair}
            tables = [a.table for p, a in self.tables.items() if p in by_contents and a.table is not None]
            known = self._sizes.fit(pairs), [(table, table.version) for table in tables]
            self._known_to_fit[pairs] = known
        return known[0]

    @cached_property
    def _known_to_fit(self) -> dict[Fits, tuple[bool, list[tuple[dvector, int]]]]:
        return {}  # and the versions of the tables whose contents decided

    @cached_property
    def _sizes(self) -> Sizes:
        bounds = None if self.indices is None else self.indices.bounds()
        return Sizes(self.tables, self.scalars, bounds, self.has_values)

    def size(self, size: Size) -> int | None:
        """Return the value of a size that is not that of contents; None if it has none."""
        return self._sizes.value(size)

    def random(self) -> frozenset[int]:
        """Positions of random numbers."""
        return frozenset(i for i, a in enumerate(self.arguments) if isinstance(a, RandomArgument))

    @cached_property
    def tables(self) -> Mapping[int, TableArgument]:
        """Position → table argument."""
        return {i: a for i, a in enumerate(self.arguments) if isinstance(a, TableArgument)}

    @cached_property
    def sums(self) -> Mapping[int, AccumulatorArgument]:
        """Position → accumulator."""
        return {i: a for i, a in enumerate(self.arguments) if isinstance(a, AccumulatorArgument)}

    def storages(self, of_table: Callable[[int, TableArgument], Any], of_sums: Mapping[int, Any]) -> tuple[Any, ...]:
        """Return what compiled code is passed for each argument; for maps, it includes the index."""
        return tuple(
            argument.by_key(of_table(position, argument))
            if isinstance(argument, TableArgument)
            else of_sums[position]
            if isinstance(argument, AccumulatorArgument)
            else argument.value
            for position, argument in enumerate(self.arguments)
        )


def _is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether arithmetic with Python's integers stays exact in compiled code, or wraps around."""
    return dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8)


def _is_whole(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) > 0 and all(map(_is_whole, value))
    return isinstance(value, bool) or np.asarray(value).dtype.kind == "i"


def _has_float(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_float, value))
    return isinstance(value, float | np.floating)


def _form(value: Any) -> Any:
    return tuple(map(_form, value)) if isinstance(value, tuple) else None


def _scalar_type(value: Any) -> object:
    if isinstance(value, tuple):
        return type(value), getattr(value, "_fields", None), tuple(map(_scalar_type, value))
    return typeof(value)
