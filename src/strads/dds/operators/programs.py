"""Operators as node programs: each node works on its rows and keeps the results."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.dds._layout import Bounds, Layout, take
from strads.dds._node_tables import store_rows
from strads.dds._results import Columns, like_of
from strads.dds._storage import Storage, as_storage
from strads.dds.operators.functions import Function, place_of
from strads.dds.operators.jobs import RowJob
from strads.dds.operators.mapping import choose_rows, map_rows
from strads.dds.operators.reducing import reduce_rows
from strads.dds.operators.transforming import transform_rows
from strads.dds.ragged import RaggedArray
from strads.dds.shard import Shard
from strads.errors import InputError

Made = tuple[Layout, Bounds, str | None]
"""Layout and bounds of a table that a program has stored, and the reason if a function was not compiled."""


def _job(node: Node, name: str, operator: str, function: Function, args: tuple[Any, ...]) -> RowJob:
    shard: Shard = node.store[name]
    return RowJob(operator, function, args, shard.rows, shard.low, Layout.of(shard.whole), node.team)


def map_program(
    node: Node, name: str, new_name: str, function: Function, args: tuple[Any, ...], dtype: np.dtype | None
) -> Made:
    """Store a function's result for each row."""
    job = _job(node, name, "map", function, args)
    result, reason = map_rows(job)
    return *store_rows(node, new_name, settled(job, result, dtype, node.comm.allgather)), reason


def filter_program(node: Node, name: str, new_name: str, function: Function, args: tuple[Any, ...]) -> Made:
    """Store the rows for which a function is true."""
    job = _job(node, name, "filter", function, args)
    chosen, reason = choose_rows(job)
    return *store_rows(node, new_name, take(job.rows, np.flatnonzero(chosen))), reason


def transform_program(node: Node, name: str, function: Function, args: tuple[Any, ...]) -> str | None:
    """Change rows in place."""
    node.store[name].is_complete = False
    return transform_rows(_job(node, name, "transform", function, args))


def reduce_program(node: Node, name: str, function: Function) -> tuple[list[Any], str | None]:
    """Combine this node's rows; the list of results is empty if there are none."""
    job = _job(node, name, "reduce", function, ())
    if len(job.rows) == 0:
        return [], None
    total, reason = reduce_rows(job)
    return [total], reason


def settled(
    job: RowJob,
    result: Storage | Columns | None,
    dtype: np.dtype | None,
    everyone: Callable[[Any], list[Any]],
) -> Storage:
    """Return the rows of a new table, with the kind and dtype agreed on by all nodes.

    Sequences of equal length become dense rows, unless the source table is ragged.
    """
    rows = result if not isinstance(result, Columns | None) else _of_columns(job, result, everyone)
    return rows if dtype is None else as_storage(rows, dtype, copy=False)


def _of_columns(job: RowJob, result: Columns | None, everyone: Callable[[Any], list[Any]]) -> Storage:
    found = everyone(None if result is None else (like_of([result]), job.first))
    likes = [other for other in found if other is not None]
    if not likes:
        return np.empty(0)
    (first, row), *_ = likes
    if result is not None and result.shape != first.shape:
        raise InputError(
            f"{place_of(job.function)}\n  {job.operator}: the function returned a {_kind(result)} for row {job.first}, "
            f"but a {_kind(first)} for row {row}"
        )
    like = like_of([like for like, _ in likes if like.shape == first.shape])
    rows = like.storage() if result is None else result.storage(like.dtypes)
    if not isinstance(rows, RaggedArray) or job.layout.is_ragged:
        return rows
    widths = {width for node in everyone(_widths(rows)) for width in node}
    return rows.values.reshape(len(rows), widths.pop()) if len(widths) == 1 else rows


def _widths(rows: RaggedArray) -> set[int]:
    lengths: NDArray[np.int64] = rows.lengths
    return {int(lengths.min()), int(lengths.max())} if len(lengths) else set()


def _kind(columns: Columns) -> str:
    kind, detail = columns.shape
    return f"{kind} of {detail}" if detail else kind
