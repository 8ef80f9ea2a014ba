"""Concatenating the rows of one table that several parts, or nodes, have produced."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from strads.dds._layout import concatenated
from strads.dds._results import Columns
from strads.dds._storage import Storage


def filled_of(results: Sequence[Any]) -> list[Any]:
    """Return the results that have rows."""
    return [result for result in results if result is not None and (isinstance(result, Columns) or len(result))]


def like_of(filled: Sequence[Any]) -> Any:
    """Return an empty table of the kind and dtypes common to all results; None without any."""
    if not filled:
        return None
    return Columns.like(filled) if isinstance(filled[0], Columns) else filled[0][:0]


def common(likes: Sequence[Any]) -> Any:
    """Return an empty table of the kind and dtypes common to all nodes; None if no node has rows."""
    return like_of([like for like in likes if like is not None])


def join_rows(filled: Sequence[Any], like: Any) -> Storage:
    """Concatenate all rows, with the kind and dtypes of `like`."""
    if not isinstance(like, Columns):
        return np.concatenate(filled) if len(filled) > 1 else filled[0] if filled else like
    return concatenated([columns.storage(like.dtypes) for columns in filled] or [like.storage()])
