"""Checking of row numbers, with errors that name the wrong one."""

import operator
from typing import SupportsIndex

from strads.errors import StradsError


class RowIndexError(StradsError, IndexError):
    """A row number out of a table's range."""


def row_number(index: SupportsIndex, length: int) -> int:
    """Return `index` as a row number in 0 … length - 1; negative indices count from the end.

    Raises
    ------
    RowIndexError
        If there is no such row.
    """
    row = operator.index(index)
    if not -length <= row < length:
        allowed = f"use {-length} … {length - 1}" if length else "it is empty"
        raise RowIndexError(f"index {row} is out of range for {length} rows: {allowed}")
    return row + length if row < 0 else row
