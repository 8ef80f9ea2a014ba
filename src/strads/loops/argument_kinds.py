"""Classification of the arguments of a call, and the errors for what a loop body cannot take."""

import numbers
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numba import typeof
from numba.core.errors import NumbaError

from strads.bodies.functions import parameter_names
from strads.dds import Accumulator, KeyedTable, RaggedArray, Readonly, Relaxed, dmultimap
from strads.dds.arguments import map_of, table_of
from strads.engine.views.python_floats import WeakFloat
from strads.errors import ArgumentError
from strads.loops.arguments import (
    AccumulatorArgument,
    Argument,
    BatchArgument,
    BoundArguments,
    RandomArgument,
    ScalarArgument,
    TableArgument,
)
from strads.rng.numbers import RandomNumbers


def bind_arguments(
    body: Callable[..., Any],
    arguments: Sequence[Any],
    batches: BatchArgument | None = None,
    overlaps: tuple[tuple[int, int], ...] = (),
) -> BoundArguments:
    """Classify the arguments of a loop; Python floats get the precision of what they meet (see `python_floats`).

    `batches`: what the first parameter is a minibatch of, if it is not an index.

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
        if isinstance(value, np.matrix | np.ma.MaskedArray):
            raise ArgumentError(f"argument {name!r} is a {type(value).__name__}: pass it as a plain array")
        if not _can_be_read(value.dtype):
            raise ArgumentError(
                f"argument {name!r} is an array of {value.dtype}, which compiled loops cannot read "
                "(strads.dvector(array) converts other byte orders)"
            )
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
    return value is None or isinstance(value, int | float | np.number | np.bool_ | numbers.Number)  # the usual first


def _compiles(value: Any) -> bool:
    """Whether Numba has a type for a value."""
    try:
        typeof(value)
    except (ValueError, NumbaError):
        return False
    return True


@lru_cache(256)
def _can_be_read(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iufbcV" and _compiles(np.empty(0, dtype))


def _weak(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, tuple):
        items = tuple(_weak(item, dtype) for item in value)
        return type(value)(*items) if hasattr(value, "_fields") else items
    return WeakFloat(value) if type(value) is float and dtype == np.float32 else value


def _float_dtype(arguments: Sequence[Argument]) -> np.dtype[Any]:
    """Return the widest floating dtype of the tables and their fields; double if none has one."""
    dtypes = {argument.storage.dtype for argument in arguments if isinstance(argument, TableArgument)}
    values = {field[0].base for dtype in dtypes for field in (dtype.fields or {"": (dtype,)}).values()}
    chosen = [dtype for dtype in values if dtype.kind == "f" and dtype.itemsize in (4, 8)]
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
