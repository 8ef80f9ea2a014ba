"""The view of a map: it finds the row of a key, and delegates to the view of the table of values.

Thus a map supports every role that its table supports, and access records contain row numbers, which planning and
nodes understand.
"""

import operator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload, register_jitable

from strads.dds import find_number
from strads.engine.compiling import INNER, UNCOUNTED, compiled
from strads.engine.views.indices import item_of, rest_of, set_item_of
from strads.engine.views.types import as_it_is, define_view

NO_SUCH_KEY = "a key is not in the map"

KeyedType, make_keyed = define_view("Keyed", "inner", "keys", "starts", "shift")

_LARGEST_KEY = np.uint64(np.iinfo(np.int64).max)


class Keyed(NamedTuple):
    """Storage of a map: that of its table of values (`inner`), and the arrays of its `HashIndex`."""

    inner: Any
    keys: Any  # (keys,), int64: the key of each row
    starts: Any  # (buckets + 1,), int32 or int64: the first row of each bucket
    shift: Any  # uint64: the bucket of a hash h is h >> shift


@cache
def keyed_view(constructor: Any | None) -> Any:
    """Return the constructor of the view of a map, given that of the view of its values (None: the storage itself)."""
    values_of = constructor or as_it_is

    @njit(**UNCOUNTED)
    def view(storage, context):  # type: ignore[no-untyped-def]
        return make_keyed((values_of(storage.inner, context), storage.keys, storage.starts, storage.shift))

    return view


@compiled
def _find(view, key):  # type: ignore[no-untyped-def]
    """Return the row of a key, or -1."""
    if key.signed:
        return lambda view, key: find_number(view.keys, view.starts, view.shift, np.int64(key))

    def unsigned(view, key):  # type: ignore[no-untyped-def]
        if np.uint64(key) > _LARGEST_KEY:  # would be negative as a signed number
            return np.int64(-1)
        return find_number(view.keys, view.starts, view.shift, np.int64(key))

    return unsigned


@register_jitable
def _existing(view, key):  # type: ignore[no-untyped-def]
    row = _find(view, key)
    if row < 0:
        raise KeyError(NO_SUCH_KEY)
    return row


def _check_key(key: Any) -> None:
    if not isinstance(key, types.Integer):
        kind = "a slice" if isinstance(key, types.SliceType) else f"{key}"
        raise TypingError(f"the keys of a map are whole numbers, this one is {kind}")


@overload(operator.getitem, jit_options=INNER)
def _keyed_getitem(view, index):  # type: ignore[no-untyped-def]
    if not isinstance(view, KeyedType):
        return None
    if isinstance(index, types.BaseTuple):
        return lambda view, index: item_of(view[index[0]], rest_of(index))
    _check_key(index)
    return lambda view, index: view.inner[_existing(view, index)]


@overload(operator.setitem, jit_options=INNER)
def _keyed_setitem(view, index, value):  # type: ignore[no-untyped-def]
    if not isinstance(view, KeyedType):
        return None
    if isinstance(index, types.BaseTuple):

        def nested(view, index, value):  # type: ignore[no-untyped-def]
            set_item_of(view[index[0]], rest_of(index), value)

        return nested
    _check_key(index)

    def keyed(view, index, value):  # type: ignore[no-untyped-def]
        view.inner[_existing(view, index)] = value

    return keyed


@overload(operator.contains, jit_options=INNER)
def _keyed_contains(view, key):  # type: ignore[no-untyped-def]
    if not isinstance(view, KeyedType):
        return None
    _check_key(key)
    return lambda view, key: _find(view, key) >= 0


@overload(len, jit_options=INNER)
def _keyed_len(view):  # type: ignore[no-untyped-def]
    return (lambda view: len(view.keys)) if isinstance(view, KeyedType) else None


@overload(operator.delitem, jit_options=INNER)
def _keyed_delitem(view, key):  # type: ignore[no-untyped-def]
    if isinstance(view, KeyedType):
        raise TypingError("a loop body cannot remove keys from a map: do so between loops")
