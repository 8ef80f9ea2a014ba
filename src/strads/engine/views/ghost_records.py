"""Ghosts of records: fields read as constants or as they are, and what is written to them is discarded."""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)
from numba.np.numpy_support import as_dtype

from strads.engine.compiling import compiled
from strads.engine.views.kinds import GhostRowType


class GhostRecordType(types.Type):
    """A ghost of a record of the given type, of which fields are read as they are if it `is_read`."""

    def __init__(self, record: types.Record, is_read: bool):
        self.record, self.is_read = record, is_read
        super().__init__(f"GhostRecord({record}, {is_read})")


@register_model(GhostRecordType)
class _GhostRecordModel(models.RecordModel):
    def __init__(self, manager: Any, frontend_type: GhostRecordType):
        super().__init__(manager, frontend_type.record)


@intrinsic
def make_ghost_record(typingctx: Any, record: Any, fill: Any) -> Any:
    """Make the ghost of a record of a table whose ghost has this `fill`."""
    ghost = GhostRecordType(record, isinstance(fill, types.Array))
    return ghost(record, fill), lambda context, builder, signature, args: args[0]


@compiled
def shown(fill, index):  # type: ignore[no-untyped-def]
    """Return what a ghost shows of an element or a row."""
    return (lambda fill, index: fill[index]) if isinstance(fill, types.Array) else (lambda fill, index: fill)


def fill_of(dtype: np.dtype[Any]) -> Any:
    """Return the value of every number of a ghost: one, or for integers zero (a valid index); 0 for records."""
    if dtype.fields is not None:
        return 0  # that of a field depends on its type
    return dtype.type(0) if dtype.kind in "iub" else dtype.type(1)


def _field(ghost: GhostRecordType, name: str) -> types.Type | None:
    """Return the type of a field of a ghost; None if there is none, or if it is no number, nor an array of numbers."""
    found = ghost.record.typeof(name) if name in ghost.record.fields else None
    if isinstance(found, types.NestedArray) and isinstance(found.dtype, types.Number | types.Boolean):
        fill = found if ghost.is_read else found.dtype
        is_row = found.ndim == 1 or not ghost.is_read
        return GhostRowType((types.UniTuple(types.int64, found.ndim), fill)) if is_row else None
    return found if isinstance(found, types.Number | types.Boolean) else None


@infer_getattr
class _Fields(AttributeTemplate):
    key = GhostRecordType

    def generic_resolve(self, ghost: GhostRecordType, name: str) -> types.Type | None:
        return _field(ghost, name)


@lower_getattr_generic(GhostRecordType)
def _read(context: Any, builder: Any, ghost: GhostRecordType, value: Any, name: str) -> Any:
    kind = _field(ghost, name)
    assert kind is not None  # it has a type
    is_row = isinstance(kind, GhostRowType)
    if ghost.is_read:
        found = context.get_getattr(ghost.record, name)(context, builder, ghost.record, value, name)
    else:
        number = kind.member("fill") if is_row else kind
        found = context.get_constant_generic(builder, number, fill_of(as_dtype(number)).item())
    if not is_row:
        return found
    row = cgutils.create_struct_proxy(kind)(context, builder)
    shape = tuple(map(np.int64, ghost.record.typeof(name).shape))
    row.shape = context.get_constant_generic(builder, kind.member("shape"), shape)
    row.fill = found
    return row._getvalue()


@lower_setattr_generic(GhostRecordType)
def _write(context: Any, builder: Any, signature: Any, args: Any, name: str) -> None:
    """Discard the value."""
