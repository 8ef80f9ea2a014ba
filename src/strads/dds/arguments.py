"""The table, map and memory behind each argument of a loop, and marking those that a loop has changed."""

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Cluster
from strads.dds._keyed import KeyedTable
from strads.dds.dvector import dvector
from strads.dds.hints import Hint
from strads.dds.ragged import RaggedArray

_ranges: "weakref.WeakKeyDictionary[dvector, dict[str | None, tuple[int, tuple[int, int]]]]" = (
    weakref.WeakKeyDictionary()
)


def map_of(argument: Any) -> KeyedTable | None:
    """Return the map that is an argument, or that its hint is for; None if there is none."""
    kind = type(argument)
    if kind is dvector or kind is np.ndarray:  # together: every call asks for these several times for each argument
        return None
    base = argument.table if isinstance(argument, Hint) else argument
    return base if isinstance(base, KeyedTable) else None


def table_of(argument: Any) -> dvector | None:
    """Return the table behind an argument (for a map, that of its values); None if there is none."""
    kind = type(argument)
    if kind is dvector or kind is np.ndarray:
        return argument if kind is dvector else None
    hinted = argument.table if isinstance(argument, Hint) else argument
    table = hinted.table if isinstance(hinted, KeyedTable) else hinted
    return table if isinstance(table, dvector) else None


def array_key(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return a key of what Numba's type of an array depends on, in a fraction of the time that `typeof` takes."""
    flags = array.flags
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return array.dtype, array.dtype.isalignedstruct, array.ndim, layout, flags.writeable, flags.aligned


def integer_range(table: dvector, field: str | None = None) -> tuple[int, int] | None:
    """Return the smallest and the largest of a table's integers, or of those of a field; None if they are no integers.

    They are found again once the table is written, unless the loop that wrote it is known to keep to a range, which may
    be larger. Of no integers the range is 0, −1.
    """
    known = _ranges.setdefault(table, {})
    if field not in known or known[field][0] != table.version:
        storage = table.storage
        found = range_of(storage.values if isinstance(storage, RaggedArray) else storage, field)
        if found is None:
            return None
        known[field] = table.version, found
    return known[field][1]


def keep_limits(arguments: Sequence[Any], limits: Mapping[tuple[int, str | None], int]) -> None:
    """Note what a loop is known to have left: integers in `0..limit - 1`, by position of the table and field.

    Not of arrays of the caller's: whoever writes one through an old view breaks a rule, but should not break memory.
    """
    for (position, field), limit in limits.items():
        table = table_of(arguments[position])
        if table is not None and not table.may_be_shared:
            _ranges.setdefault(table, {})[field] = table.version, (0, limit - 1)


def range_of(values: NDArray[Any], field: str | None = None) -> tuple[int, int] | None:
    """Return the smallest and the largest integer of an array, or of a field of its records; see `integer_range`."""
    values = values if field is None else values[field]
    if values.dtype.kind not in "iu":
        return None
    return (int(values.min()), int(values.max())) if values.size else (0, -1)


def overlaps(arguments: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of arguments that share memory but are not the same table: a table and a view of it."""
    found = []
    memory, tables = list(map(_memory_of, arguments)), list(map(table_of, arguments))
    for second, own in enumerate(memory):
        for first in range(second if own is not None else 0):
            same = tables[first] is not None and tables[first] is tables[second]
            if memory[first] is not None and not same and np.may_share_memory(memory[first], own):
                found.append((first, second))
    return tuple(found)


def _memory_of(argument: Any) -> NDArray[Any] | None:
    """Return the array behind an argument, if it is in this process."""
    table = table_of(argument)
    memory = argument if table is None else table.memory
    return memory.values if isinstance(memory, RaggedArray) else memory if isinstance(memory, np.ndarray) else None


def mark_written(
    cluster: Cluster,
    arguments: tuple[Any, ...],
    positions: Iterable[int],
    columns: Mapping[int, Collection[str | int]] = MappingProxyType({}),
) -> None:
    """Mark the tables that a loop has, or may have, changed, on the nodes that store them.

    Of some it has changed only these `columns`, by position.
    """
    written = {id(table): (table, columns.get(p)) for p in positions if (table := table_of(arguments[p])) is not None}
    for table, own in written.values():
        if cluster.is_local:
            table.mark_written(own)
        elif table.is_distributed:
            table.written_on_nodes(own)
