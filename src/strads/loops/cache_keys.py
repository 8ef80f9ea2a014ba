"""The key of a prepared loop: everything that its records, checks and plan depend on.

It has two halves. What the arguments *are* (types, shapes, which tables, how many keys a map has) determines what is
compiled and checked; what they *hold* matters only for arguments whose content determines which rows are touched, or
whether an index exists. Threads, nodes and `sync_for` all build their keys here.
"""

import weakref
from collections.abc import Collection, Hashable
from itertools import count
from typing import Any

import numpy as np
from numba import typeof

from strads.dds import Accumulator, HashIndex, dvector
from strads.dds.arguments import map_of, table_of
from strads.rng.numbers import RandomNumbers
from strads.user_code.functions import digest

_numbers: "weakref.WeakKeyDictionary[dvector | HashIndex, int]" = weakref.WeakKeyDictionary()
_next_number = count()


def _number_of(thing: dvector | HashIndex) -> int:
    """Return a number that no other object has or has had: an address may be reused."""
    return _numbers.setdefault(thing, next(_next_number))


def identity_key(argument: Any) -> int | None:
    """Return a key of a table that no other table has; None for other arguments."""
    table = table_of(argument)
    return None if table is None else _number_of(table)


def kind_key(argument: Any) -> Any:
    """Return a key of what an argument is, apart from its content."""
    table, keyed = table_of(argument), map_of(argument)
    if table is not None:
        index = None if keyed is None else _number_of(keyed.index)  # a map with other keys has another index
        return type(argument), _number_of(table), table.shape, table.dtype, table.is_ragged, index
    if isinstance(argument, Accumulator):
        return Accumulator, argument.dtype
    if isinstance(argument, np.ndarray):
        return np.ndarray, argument.dtype, argument.shape, argument.strides
    if isinstance(argument, RandomNumbers):
        return RandomNumbers
    try:
        return type(argument), typeof(argument)
    except Exception:  # binding will report the error
        return type(argument)


def form_key(argument: Any) -> Any:
    """Return a key of what an argument is that other tables or arrays share, whatever their size."""
    table = table_of(argument)
    if table is None and not isinstance(argument, np.ndarray):
        return kind_key(argument)
    values = argument if table is None else table
    return type(argument), values.dtype, len(values.shape)


def content_key(argument: Any, beside: Collection[str | int] | None = None) -> Hashable:
    """Return a key of what an argument holds: the digest of an array, the version of a table, `beside` some columns."""
    table = table_of(argument)
    if table is not None:
        return _number_of(table), table.version if beside is None else table.version_beside(beside)
    if isinstance(argument, np.ndarray):
        return digest(argument)
    if isinstance(argument, Accumulator):
        return None
    if isinstance(argument, RandomNumbers):
        return argument.seed, argument.calls
    return repr(argument)  # distinguishes equal numbers of different types, and zeros of different signs
