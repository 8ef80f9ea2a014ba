"""Grouping rows by key and joining tables: rows with equal keys meet on one node."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.dds._hash_index import Groups, HashIndex, group_keys
from strads.dds._hashing import hash_keys, node_of
from strads.dds._keys import Keys
from strads.dds._layout import Bounds, Layout, concatenated, inverse, take
from strads.dds._node_tables import store_rows
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.dds.shard import Shard
from strads.errors import ArgumentError
from strads.partition import offsets_of, places_of


@dataclass(frozen=True)
class GroupedColumns:
    """Which part of a row is its key, and which its value.

    Attributes
    ----------
    key
        A field, or None for the first column.
    value
        The only other field, the dtype of the other fields, or the number of the other columns.
    """

    key: str | None
    value: str | np.dtype[Any] | int

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of a value."""
        return (self.value,) if isinstance(self.value, int) and self.value > 1 else ()

    def keys(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the keys of some rows."""
        return (rows[:, 0] if self.key is None else rows[self.key]).astype(np.int64)

    def values(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of the values of some rows."""
        if isinstance(self.value, str):
            return rows[self.value].copy()
        if isinstance(self.value, int):
            return rows[:, 1:].copy() if self.value > 1 else rows[:, 1].copy()
        records = np.empty(len(rows), self.value)
        for name in self.value.names or ():
            records[name] = rows[name]
        return records


def grouped_columns(layout: Layout, key: str | None) -> GroupedColumns:
    """Return which parts of a table's rows are key and value, or raise ArgumentError."""
    names = layout.dtype.names
    if names is None:
        if key is not None:
            raise ArgumentError(f"rows of numbers have no field {key!r}: their first column is the key")
        if layout.is_ragged or len(layout.shape) != 2 or layout.shape[1] < 2 or layout.dtype.kind not in "iu":
            raise ArgumentError("group_by_key needs records, or rows of two or more whole numbers")
        return GroupedColumns(None, layout.shape[1] - 1)
    field = names[0] if key is None else key
    _check_key_field(layout, field)
    others = [name for name in names if name != field]
    if not others:
        raise ArgumentError(f"the records have no other field than the key {field!r}")
    if len(others) == 1 and layout.dtype[others[0]].subdtype is None:
        return GroupedColumns(field, others[0])
    return GroupedColumns(field, np.dtype([(name, layout.dtype[name]) for name in others], align=True))


def _check_key_field(layout: Layout, field: str) -> None:
    names = layout.dtype.names or ()
    if field not in names:
        raise ArgumentError(f"there is no field {field!r}: the fields are {', '.join(names)}")
    if layout.dtype[field].kind not in "iub":
        raise ArgumentError(f"field {field!r} holds {layout.dtype[field]}: keys are whole numbers")


def group_program(
    node: Node, name: str, new_name: str, columns: GroupedColumns
) -> tuple[Keys, NDArray[np.int64], Layout, Bounds]:
    """Store the values of this node's keys; returns these keys, and how many values each has."""
    shard: Shard = node.store[name]
    assert isinstance(shard.rows, np.ndarray)
    keys, values = _meet(node, columns.keys(shard.rows), columns.values(shard.rows))
    groups = group_keys(keys)
    assert isinstance(values, np.ndarray)
    layout, bounds = store_rows(node, new_name, stored_groups(values[groups.order], groups.offsets))
    return groups.keys, np.diff(groups.offsets), layout, bounds


def stored_groups(rows: NDArray[Any], offsets: NDArray[np.int64]) -> Storage:
    """Return values, sorted by key, in their stored form: numbers as ragged rows, one per key."""
    return RaggedArray(rows, offsets) if rows.ndim == 1 and rows.dtype.names is None else rows


def _meet(node: Node, keys: Keys, rows: NDArray[Any]) -> tuple[Keys, NDArray[Any]]:
    """Send keys and their rows to the nodes that own the keys; received rows are in table order."""
    shares = _shares(node, keys)
    received = node.comm.alltoall([(take(keys, share), rows[share]) for share in shares])
    return concatenated([theirs for theirs, _ in received]), np.concatenate([rows for _, rows in received])


def _shares(node: Node, keys: Keys) -> list[NDArray[np.int64]]:
    """Return the positions of the keys that belong to each node."""
    holders = node_of(hash_keys(keys), node.size)
    order = np.argsort(holders, kind="stable")
    ends = np.searchsorted(holders[order], np.arange(node.size + 1))
    return [order[first:last] for first, last in pairwise(ends)]


@dataclass(frozen=True)
class JoinedFields:
    """The fields of two tables and of their join.

    Attributes
    ----------
    on
        Fields that must be equal.
    right
        Remaining fields of the right table, and their names in the join.
    joined
        Dtype of the records of the join.
    """

    on: tuple[str, ...]
    right: tuple[tuple[str, str], ...]
    joined: np.dtype[Any]

    def keys(self, records: NDArray[Any]) -> Keys:
        """Return the keys of some records; for several fields, the bytes of all."""
        columns = [records[name].astype(np.int64) for name in self.on]
        if len(columns) == 1:
            return columns[0]
        width = 8 * len(columns)
        values = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8).reshape(-1)
        return RaggedArray(values, np.arange(len(records) + 1, dtype=np.int64) * width)

    def together(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return records of both tables, joined side by side."""
        records = np.empty(len(left), self.joined)
        for name in left.dtype.names or ():
            records[name] = left[name]
        for name, new_name in self.right:
            records[new_name] = right[name]
        return records


def joined_fields(left: Layout, right: Layout, on: str | Sequence[str], suffix: str) -> JoinedFields:
    """Return the fields of a join, or raise ArgumentError."""
    names = (on,) if isinstance(on, str) else tuple(on)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"on is the name of a field, or a list of names, not {on!r:.60}")
    for layout in (left, right):
        if layout.dtype.names is None:
            raise ArgumentError("only tables of records can be joined")
        for name in names:
            _check_key_field(layout, name)
    own = left.dtype.names or ()
    others = tuple((n, f"{n}{suffix}" if n in own else n) for n in right.dtype.names or () if n not in names)
    fields = [(name, left.dtype[name]) for name in own] + [(new, right.dtype[name]) for name, new in others]
    if len({name for name, _ in fields}) < len(fields):
        raise ArgumentError(f"both tables have the fields {', '.join(n for n, _ in others)}: give another suffix")
    return JoinedFields(names, others, np.dtype(fields, align=True))


def join_at_driver(left: NDArray[Any], right: NDArray[Any], fields: JoinedFields) -> NDArray[Any]:
    """Join the records of two tables."""
    counts, found = _look_up(fields.keys(left), _index(fields.keys(right)))
    return fields.together(np.repeat(left, counts), right[found])


def _index(keys: Keys) -> tuple[HashIndex, Groups]:
    groups = group_keys(keys)
    return HashIndex.of_ordered(groups.keys, groups.hashes), groups


def _look_up(keys: Keys, right: tuple[HashIndex, Groups]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many rows match each key, and which rows, key by key."""
    index, groups = right
    rows = index.rows_of(keys)
    there = rows >= 0
    counts = np.zeros(len(rows), np.int64)
    counts[there] = np.diff(groups.offsets)[rows[there]]
    return counts, groups.order[places_of(groups.offsets, rows[there])]


def join_program(
    node: Node, left_name: str, right_name: str, new_name: str, fields: JoinedFields
) -> tuple[Layout, Bounds]:
    """Join: the right table's rows are sent to the nodes of their keys; the left table's keys are looked up there."""
    left, right = node.store[left_name].rows, node.store[right_name].rows
    keys, records = _meet(node, fields.keys(right), right)
    index = _index(keys)
    left_keys = fields.keys(left)
    shares = _shares(node, left_keys)
    asked = node.comm.alltoall([take(left_keys, share) for share in shares])
    answers = []
    for theirs in asked:
        counts, found = _look_up(theirs, index)
        answers.append((counts, records[found]))
    received = node.comm.alltoall(answers)
    return store_rows(node, new_name, _in_order(left, shares, received, fields))


def _in_order(
    left: NDArray[Any],
    shares: list[NDArray[np.int64]],
    received: list[tuple[NDArray[np.int64], NDArray[Any]]],
    fields: JoinedFields,
) -> Storage:
    """Join the answers of all nodes to the left table's rows, in its order."""
    order = np.concatenate(shares)
    place = inverse(order)
    counts = np.concatenate([counts for counts, _ in received])
    matches = np.concatenate([records for _, records in received])
    return fields.together(np.repeat(left, counts[place]), matches[places_of(offsets_of(counts), place)])
