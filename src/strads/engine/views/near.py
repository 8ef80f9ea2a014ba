"""The view of a table of which `rng.near(table)` draws rows: it knows the rows that the running job owns.

A drawn row has a type of its own, so that the compiler tells it from other row numbers: a run need not check it, and
reconnaissance need not log it. Any arithmetic makes a plain number of it, which is logged and checked like others.
"""

import operator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.core.typeconv import Conversion
from numba.extending import (
    intrinsic,
    models,
    overload,
    overload_attribute,
    overload_method,
    register_jitable,
    register_model,
)

from strads.engine.compiling import INLINED, INNER, constant_item
from strads.engine.views.keyed import KeyedType
from strads.engine.views.kinds import TABLES, make_checked
from strads.engine.views.random_numbers import RandomType, next_word, next_words
from strads.engine.views.types import JOB, ViewType, define_view
from strads.rng.numbers import check_table, chosen, entry_of_pool, integer_between

EMPTY = "rng.near has no row to choose from: the job owns none"

# `drawn` is what a drawn row selects from, `inner` what any other index does. See `group_token` for `group`.
NearType, make_near = define_view("Near", "inner", "drawn", "rows", "first", "count", "share", "other", "group")
NearRecordedType, make_near_recorded = define_view("NearRecorded", "inner", "drawn", "group")
_NEAR = (NearType, NearRecordedType)


class NearRow(types.Integer):
    """A row that `near` has drawn from the tables of a group; otherwise it behaves as an int64."""

    def __init__(self, group: int):
        super().__init__(f"near_row_{group}", bitwidth=64, signed=True)
        self.group = group

    def __str__(self) -> str:
        return "int64"  # Numba derives NumPy's dtype from it

    def can_convert_to(self, typingctx: Any, other: Any) -> Any:
        """Convert like an int64."""
        found = typingctx.can_convert(types.int64, other)
        return None if found is None else max(found, Conversion.promote)

    def unify(self, typingctx: Any, other: Any) -> Any:
        """Unify like an int64."""
        return typingctx.unify_pairs(types.int64, other)


register_model(NearRow)(models.IntegerModel)


@intrinsic
def _near_row(typingctx: Any, number: Any, group: Any) -> Any:
    """Give a number the type of a drawn row."""
    signature = NearRow(len(group))(types.int64, group)
    return signature, lambda context, builder, signature, arguments: arguments[0]


@intrinsic
def _number(typingctx: Any, row: Any) -> Any:
    """Return the number of a drawn row."""
    return types.int64(row), lambda context, builder, signature, arguments: arguments[0]


def group_token(group: int) -> tuple[np.int8, ...]:
    """Return a value whose type is that of one group of tables only: a tuple of a length of its own."""
    return (np.int8(0),) * (group + 1)


class Near(NamedTuple):
    """Storage of a table from which rows are drawn in a run.

    Attributes
    ----------
    inner, data
        Storage for other indices, and the table.
    rows, low, high, share, other
        See `Pools`.
    group
        As in the view.
    """

    inner: Any
    data: Any
    rows: Any
    low: Any
    high: Any
    share: Any
    other: Any
    group: Any


class NearRecorded(NamedTuple):
    """Storage of such a table in reconnaissance."""

    inner: Any  # of the table as it is recorded
    group: Any  # see `group_token`


@cache
def near_view(constructor: Any | None, checks: bool | None) -> Any:
    """Return the constructor of the view in a run, given that of the view for other indices (None: the storage)."""

    @njit(**INLINED)
    def inner_of(storage, context):  # type: ignore[no-untyped-def]
        return storage if checks is None else make_checked((storage, checks))

    inner = inner_of if constructor is None else constructor

    @njit(**INLINED)
    def near(storage, context):  # type: ignore[no-untyped-def]
        s, job = storage, context[JOB]
        view, drawn = inner(s.inner, context), inner_of(s.data, context)
        first = constant_item(s.low, job)
        return make_near((view, drawn, s.rows, first, constant_item(s.high, job) - first, s.share, s.other, s.group))

    return near


@cache
def near_recorded_view(constructor: Any, silent: Any) -> Any:
    """Return the constructor of the view in reconnaissance, given those of views that log accesses, and do not."""

    @njit(**INLINED)
    def near(storage, context):  # type: ignore[no-untyped-def]
        return make_near_recorded((constructor(storage.inner, context), silent(storage.inner, context), storage.group))

    return near


@overload_method(RandomType, "near", jit_options=INNER)
def _near(view, table, weights=None):  # type: ignore[no-untyped-def]
    unweighted = weights is None or isinstance(weights, types.NoneType | types.Omitted)
    if not unweighted:
        check_table(weights, "near")
    if isinstance(table, KeyedType) or not isinstance(table, (*_NEAR, *TABLES, types.Array)):
        raise TypingError("rng.near draws a row of a dvector: rng.near(table) or rng.near(table, weights)")
    if isinstance(table, NearType):

        def owned(view, table, weights=None):  # type: ignore[no-untyped-def]
            if table.count == 0:
                raise ValueError(EMPTY)
            entry = entry_of_pool(next_words(view), table.first, table.count, table.share, table.other)
            return _near_row(np.int64(table.rows[entry]), table.group)

        def any_owned(view, table, weights=None):  # type: ignore[no-untyped-def]
            if table.count == 0:
                raise ValueError(EMPTY)
            entry = table.first + integer_between(next_word(view), np.int64(0), np.int64(table.count))
            return _near_row(np.int64(table.rows[np.uint64(entry)]), table.group)

        return any_owned if unweighted else owned
    if isinstance(table, NearRecordedType):
        if unweighted:
            return lambda view, table, weights=None: _near_row(
                integer_between(next_word(view), np.int64(0), len(table)), table.group
            )

        def recorded(view, table, weights=None):  # type: ignore[no-untyped-def]
            row = chosen(next_words(view), weights)
            return _near_row(min(row, np.int64(len(table) - 1)), table.group)

        return recorded
    if unweighted:
        return lambda view, table, weights=None: integer_between(next_word(view), np.int64(0), len(table))
    return lambda view, table, weights=None: min(chosen(next_words(view), weights), np.int64(len(table) - 1))


def _is_drawn(view: ViewType, index: Any) -> bool:
    """Whether an index is a row that was drawn from the view's group of tables."""
    return isinstance(index, NearRow) and index.group == len(view.member("group"))


@register_jitable
def _plain(index):  # type: ignore[no-untyped-def]
    """Return a tuple of indices with the number of the drawn row."""
    return (_number(index[0]), *index[1:])


@overload(len, jit_options=INNER)
def _near_len(view):  # type: ignore[no-untyped-def]
    return (lambda view: len(view.inner)) if isinstance(view, _NEAR) else None


@overload(operator.getitem, jit_options=INNER)
def _near_getitem(view, index):  # type: ignore[no-untyped-def]
    if not isinstance(view, _NEAR):
        return None
    if _is_drawn(view, index):
        return lambda view, index: view.drawn[_number(index)]
    if isinstance(index, types.BaseTuple) and len(index) > 0 and _is_drawn(view, index[0]):
        return lambda view, index: view.drawn[_plain(index)]
    return lambda view, index: view.inner[index]


@overload(operator.setitem, jit_options=INNER)
def _near_setitem(view, index, value):  # type: ignore[no-untyped-def]
    if not isinstance(view, _NEAR):
        return None

    def drawn(view, index, value):  # type: ignore[no-untyped-def]
        view.drawn[_number(index)] = value

    def drawn_part(view, index, value):  # type: ignore[no-untyped-def]
        view.drawn[_plain(index)] = value

    def other(view, index, value):  # type: ignore[no-untyped-def]
        view.inner[index] = value

    if _is_drawn(view, index):
        return drawn
    is_part = isinstance(index, types.BaseTuple) and len(index) > 0 and _is_drawn(view, index[0])
    return drawn_part if is_part else other


for _type in _NEAR:
    overload_attribute(_type, "shape")(lambda view: lambda view: view.inner.shape)
    overload_attribute(_type, "size")(lambda view: lambda view: view.inner.size)
    overload_attribute(_type, "ndim")(lambda view: lambda view: view.inner.ndim)
    overload_attribute(_type, "dtype")(lambda view: lambda view: view.inner.dtype)
