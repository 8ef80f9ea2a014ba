"""The arguments of a loop body: tables with their hints, accumulators, scalars, constant arrays."""

import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numba import typeof
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from strads.bodies.analysis import Field, TableKind
from strads.bodies.analysis.sizes import Sizes
from strads.bodies.analysis.values import Size
from strads.bodies.functions import parameter_names
from strads.dds import (
    Accumulator,
    HashIndex,
    KeyedTable,
    RaggedArray,
    Readonly,
    Relaxed,
    accumulator,
    dmultimap,
    dvector,
)
from strads.dds.arguments import array_key, map_of, table_of
from strads.dds.ragged import read_only
from strads.engine.views.keyed import Keyed
from strads.engine.views.kinds import MAX_AXES
from strads.errors import ArgumentError
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
    counts: bool = False  # whether any replica does, that of the thread: tasks only add integers

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
                Field(name, field[0].shape, field[0].base.kind == "f", _is_integer(field[0].base))
                for name, field in (dtype.fields or {}).items()
            ),
            relaxed=self.relaxed,
            readonly=self.readonly,
            floating=dtype.kind == "f",
            integer=_is_integer(dtype),
            keyed=self.keyed,
            ragged=self.ragged,
            has_elements=not (self.ragged or self.keyed) and 2 <= self.dense.ndim <= MAX_AXES,
        )

    @property
    def type_key(self) -> tuple[Any, ...]:
        """Equal keys compile to the same code."""
        index = None if self.index is None else self.index.starts.dtype
        kinds = tuple(map(array_key, self.raw if self.ragged else (self.raw,)))
        return "table", kinds, self.relaxed, self.readonly, self.table is None, index

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
    """All arguments of one call, in the order of the body's parameters after the first; then any minibatches."""

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

    def scalars(self) -> dict[int, Any]:
        """Position → number, bool, None, or tuple of them."""
        return {i: a.value for i, a in enumerate(self.arguments) if type(a) is ScalarArgument}

    def float_scalars(self) -> frozenset[int]:
        """Positions of floating-point scalars, and of tuples that contain one."""
        return frozenset(position for position, value in self.scalars().items() if _has_float(value))

    def integer_scalars(self) -> frozenset[int]:
        """Positions of bools, and of integers that compiled code holds signed, or unsigned with less than 64 bits."""
        return frozenset(position for position, value in self.scalars().items() if _is_whole(value))

    def with_copies(self, positions: Collection[int]) -> "BoundArguments":
        """Return the arguments with some tables as counters: each thread works on a replica of them."""
        counters = {p: replace(self.tables()[p], relaxed=True, counts=True) for p in positions}
        return self.exchanged(counters) if counters else self

    def exchanged(self, others: Mapping[int, Argument]) -> "BoundArguments":
        """Return the arguments with some of them exchanged for others."""
        return replace(self, arguments=tuple(others.get(p, argument) for p, argument in enumerate(self.arguments)))

    @property
    def sums_floats(self) -> bool:
        """Whether the body accumulates floats: then the bits of the sum depend on which job runs which task."""
        return any(a.dtype.kind == "f" for a in self.sums().values())

    @property
    def has_floats(self) -> bool:
        """Whether the body gets any number that is not an integer."""
        dtypes = [argument.storage.dtype for argument in self.tables().values()]
        kinds = {field[0].base.kind for dtype in dtypes for field in (dtype.fields or {"": (dtype,)}).values()}
        return bool(kinds - set("iub") or self.float_scalars()) or self.sums_floats

    def tuples(self) -> dict[int, Any]:
        """Position → structure of a tuple of numbers: for each item None, or the same for a nested tuple."""
        return {position: _form(value) for position, value in self.scalars().items() if isinstance(value, tuple)}

    def fit(self, pairs: Collection[tuple[Size, Size]]) -> bool:
        """Whether the first size of each pair is at most the second."""
        if not pairs:  # mostly
            return True
        bounds = None if self.indices is None else self.indices.bounds()
        return Sizes(self.tables(), self.scalars(), bounds, self.has_values).fit(pairs)

    def size(self, size: Size) -> int | None:
        """Return the value of a size that is not that of contents; None if it has none."""
        return Sizes(self.tables(), self.scalars()).value(size)

    def random(self) -> frozenset[int]:
        """Positions of random numbers."""
        return frozenset(i for i, a in enumerate(self.arguments) if isinstance(a, RandomArgument))

    def tables(self) -> dict[int, TableArgument]:
        """Position → table argument."""
        return {i: a for i, a in enumerate(self.arguments) if isinstance(a, TableArgument)}

    def sums(self) -> dict[int, AccumulatorArgument]:
        """Position → accumulator."""
        return {i: a for i, a in enumerate(self.arguments) if isinstance(a, AccumulatorArgument)}

    def storages(self, of_table: Callable[[int, TableArgument], Any], of_sums: Mapping[int, Any]) -> tuple[Any, ...]:
        """Return what compiled code is passed for each argument; for maps, it includes the index.

        Parameters
        ----------
        of_table
            Returns the storage of a table, given its position.
        of_sums
            That of each accumulator, by position.
        """
        return tuple(
            argument.by_key(of_table(position, argument))
            if isinstance(argument, TableArgument)
            else of_sums[position]
            if isinstance(argument, AccumulatorArgument)
            else argument.value
            for position, argument in enumerate(self.arguments)
        )


def bind_arguments(
    body: Callable[..., Any],
    arguments: Sequence[Any],
    batches: BatchArgument | None = None,
    overlaps: tuple[tuple[int, int], ...] = (),
) -> BoundArguments:
    """Classify the arguments of a loop and give Python floats the tables' floating dtype.

    Parameters
    ----------
    body
        The function.
    arguments
        Arguments for its parameters after the first.
    batches
        What the first parameter is a minibatch of, if it is not an index.
    overlaps
        Arguments that share memory at the driver, as found by `overlaps`.

    Raises
    ------
    ArgumentError
        For a wrong number of arguments or an unsupported type, naming the parameter.
    """
    names = _parameter_names(body, arguments, "the loop index" if batches is None else "the minibatch")
    bound = [_classify(name, value) for name, value in zip(names, arguments, strict=True)]
    float_dtype = _float_dtype([*bound, *_rows_of(batches)])
    for position, (item, value) in enumerate(zip(bound, arguments, strict=True)):
        if isinstance(value, RandomNumbers):
            bound[position] = RandomArgument.of(item.name, value, position, float_dtype)
        elif isinstance(item, ScalarArgument):
            bound[position] = ScalarArgument(item.name, _weak(item.value, float_dtype))
    if batches is not None:
        bound.append(batches)
    return BoundArguments(tuple(bound), _same_tables(bound), float_dtype, overlaps)


def _rows_of(batches: BatchArgument | None) -> list[TableArgument]:
    return [] if batches is None or isinstance(batches.rows, range) else [batches.rows]


def check_call(body: Callable[..., Any], arguments: Sequence[Any], first: str = "the loop index") -> None:
    """Reject invalid loop bodies, and maps that no body can read, before anything is sent."""
    for name, value in zip(_parameter_names(body, arguments, first), arguments, strict=True):
        found = map_of(value)
        if found is not None:
            _check_map(name, found)


def _check_map(name: str, keyed: KeyedTable) -> None:
    noun = type(keyed).__name__
    if isinstance(keyed.index.keys, RaggedArray):
        raise ArgumentError(
            f"argument {name!r} is a {noun} whose keys are texts, which compiled loops cannot look up. Translate them "
            f"to rows beforehand: rows = strads.dvector({name}.rows_of(texts, must_exist=True)); then pass rows, and "
            f"{name}.table in place of {name}, and index it by row: table[rows[k]]"
        )
    if isinstance(keyed, dmultimap) and not keyed.table.is_ragged:
        raise ArgumentError(
            f"argument {name!r} is a dmultimap of rows or records: in a loop body the values of a key must be "
            f"numbers. Pass {name}.table, np.asarray({name}.offsets) and {name}.rows_of(keys, must_exist=True): the "
            "values of row r are table[offsets[r]] to table[offsets[r + 1] - 1]"
        )


def _parameter_names(body: Callable[..., Any], arguments: Sequence[Any], first: str) -> tuple[str, ...]:
    names, given = parameter_names(body, first)[1:], len(arguments)
    if given != len(names):
        listed = ", ".join(names)
        raise ArgumentError(
            f"{body.__name__} takes {len(names)} arguments after {first} ({listed}), {given} were given"
        )
    return names


def _classify(name: str, value: Any) -> Argument:
    if isinstance(value, Relaxed) and value.table.dtype == np.bool_:
        raise ArgumentError(f"argument {name!r} is a relaxed table of bools: their changes cannot be summed")
    found = table_of(value)
    if found is not None:
        keyed = map_of(value)
        if keyed is not None:
            _check_map(name, keyed)
        index = None if keyed is None else keyed.index
        return TableArgument(name, found.storage, found, isinstance(value, Relaxed), isinstance(value, Readonly), index)
    if isinstance(value, np.ndarray) and value.ndim > 0:
        if isinstance(value, np.ma.MaskedArray) or not _can_be_read(value.dtype):
            raise ArgumentError(f"argument {name!r} is an array of {value.dtype}, which compiled loops cannot read")
        return TableArgument(name, value, None)
    if isinstance(value, Accumulator):
        return AccumulatorArgument(name, value)
    if isinstance(value, RandomNumbers):
        return ScalarArgument(name, None)  # its numbers have the precision of the tables, which is not known yet
    if _is_scalar(value):
        if not _compiles(value):
            raise ArgumentError(
                f"argument {name!r} is {value!r:.60} of type {type(value).__name__}, which compiled loops "
                "cannot read: give numbers of up to 64 bits"
            )
        return ScalarArgument(name, value)
    raise ArgumentError(
        f"argument {name!r} is a {type(value).__name__}; a loop body takes tables (also as strads.relaxed(v) or "
        "strads.readonly(v)), strads.accumulator(...), strads.random(seed), numbers, tuples of numbers, and NumPy "
        "arrays that it only reads"
    )


def _is_scalar(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_scalar, value))
    return value is None or isinstance(value, numbers.Number | np.bool_)


def _compiles(value: Any) -> bool:
    """Whether Numba has a type for a value."""
    try:
        typeof(value)
    except (ValueError, NumbaError):
        return False
    return True


@lru_cache(256)
def _can_be_read(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iufbV" and _compiles(np.empty(0, dtype))


def _is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether arithmetic with Python's integers stays exact in compiled code, or wraps around."""
    return dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8)


def _is_whole(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) > 0 and all(map(_is_whole, value))
    return isinstance(value, bool) or _is_integer(np.asarray(value).dtype)


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


def _weak(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, tuple):
        items = tuple(_weak(item, dtype) for item in value)
        return type(value)(*items) if hasattr(value, "_fields") else items
    return dtype.type(value) if type(value) is float else value


def _float_dtype(arguments: Sequence[Argument]) -> np.dtype[Any]:
    """Return the widest floating dtype of the tables; if none has one, of the records' fields; else double."""
    tables = [argument for argument in arguments if isinstance(argument, TableArgument)]
    plain = [table.storage.dtype for table in tables if table.storage.dtype.kind == "f"]
    fields = [
        field[0].base
        for table in tables
        for field in (table.storage.dtype.fields or {}).values()
        if field[0].base.kind == "f"
    ]
    chosen = [dtype for dtype in plain or fields if dtype.itemsize in (4, 8)]
    return np.result_type(*chosen) if chosen else np.dtype(np.float64)


def _same_tables(arguments: Sequence[Argument]) -> tuple[int, ...]:
    first: dict[int, int] = {}
    same = []
    for position, argument in enumerate(arguments):
        if not isinstance(argument, TableArgument) or argument.table is None:
            same.append(position)
            continue
        original = first.setdefault(id(argument.table), position)
        other = arguments[original]
        assert isinstance(other, TableArgument)
        if other.relaxed != argument.relaxed:
            raise ArgumentError(
                f"arguments {other.name!r} and {argument.name!r} are the same table, one relaxed and one not: "
                "pass it relaxed in both places or in none"
            )
        same.append(original)
    return tuple(same)
