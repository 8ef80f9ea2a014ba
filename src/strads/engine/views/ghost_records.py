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

from strads.engine.views.kinds import GhostRowType


class GhostRecordType(types.Type):
    """A ghost of a record of the given type; it has no content."""

    def __init__(self, record: types.Record):
        self.record = record
        super().__init__(f"GhostRecord({record})")


register_model(GhostRecordType)(models.OpaqueModel)


@intrinsic
def make_ghost_record(typingctx: Any, table: Any) -> Any:
    """Make the ghost of a record of a table."""
    return GhostRecordType(table.dtype)(table), lambda context, builder, signature, args: context.get_dummy_value()


class ReadOnlyRecordType(types.Type):
    """A ghost of a record of the given type, of which fields are read as they are."""

    def __init__(self, record: types.Record):
        self.record = record
        super().__init__(f"ReadOnlyRecord({record})")


@register_model(ReadOnlyRecordType)
class _ReadOnlyRecordModel(models.RecordModel):
    def __init__(self, manager: Any, frontend_type: ReadOnlyRecordType):
        super().__init__(manager, frontend_type.record)


@intrinsic
def read_only_record(typingctx: Any, record: Any) -> Any:
    """Make the ghost of a record that is to be read as it is."""
    return ReadOnlyRecordType(record)(record), lambda context, builder, signature, args: args[0]


def fill_of(dtype: np.dtype[Any]) -> Any:
    """Return the value of every number of a ghost: one, or for integers zero (a valid index); 0 for records."""
    if dtype.fields is not None:
        return 0  # that of a field depends on its type
    return dtype.type(0) if dtype.kind in "iub" else dtype.type(1)


def _field(record: types.Record, name: str) -> types.Type | None:
    """Return the type of a field of a ghost; None if there is none, or if it is no number, nor an array of numbers."""
    found = record.typeof(name) if name in record.fields else None
    if isinstance(found, types.NestedArray) and isinstance(found.dtype, types.Number | types.Boolean):
        return GhostRowType((types.UniTuple(types.int64, found.ndim), found.dtype))
    return found if isinstance(found, types.Number | types.Boolean) else None


def _field_as_it_is(record: types.Record, name: str) -> types.Type | None:
    """The same of a ghost that is read as it is."""
    found, kind = record.typeof(name) if name in record.fields else None, _field(record, name)
    if not isinstance(kind, GhostRowType):
        return kind
    is_row = isinstance(found, types.NestedArray) and found.ndim == 1
    return GhostRowType((kind.member("shape"), found)) if is_row else None


@infer_getattr
class _Fields(AttributeTemplate):
    key = GhostRecordType

    def generic_resolve(self, ghost: GhostRecordType, name: str) -> types.Type | None:
        return _field(ghost.record, name)


@lower_getattr_generic(GhostRecordType)
def _read(context: Any, builder: Any, ghost: GhostRecordType, value: Any, name: str) -> Any:
    kind = _field(ghost.record, name)
    assert kind is not None  # it has a type
    if not isinstance(kind, GhostRowType):
        return context.get_constant_generic(builder, kind, fill_of(as_dtype(kind)).item())
    nested, number = ghost.record.typeof(name), kind.member("fill")
    row = cgutils.create_struct_proxy(kind)(context, builder)
    row.shape = context.get_constant_generic(builder, kind.member("shape"), tuple(map(np.int64, nested.shape)))
    row.fill = context.get_constant_generic(builder, number, fill_of(as_dtype(number)).item())
    return row._getvalue()


@infer_getattr
class _FieldsAsTheyAre(AttributeTemplate):
    key = ReadOnlyRecordType

    def generic_resolve(self, ghost: ReadOnlyRecordType, name: str) -> types.Type | None:
        return _field_as_it_is(ghost.record, name)


@lower_getattr_generic(ReadOnlyRecordType)
def _read_as_it_is(context: Any, builder: Any, ghost: ReadOnlyRecordType, value: Any, name: str) -> Any:
    kind = _field_as_it_is(ghost.record, name)
    found = context.get_getattr(ghost.record, name)(context, builder, ghost.record, value, name)
    if not isinstance(kind, GhostRowType):
        return found
    row = cgutils.create_struct_proxy(kind)(context, builder)
    shape = tuple(map(np.int64, ghost.record.typeof(name).shape))
    row.shape = context.get_constant_generic(builder, kind.member("shape"), shape)
    row.fill = found
    return row._getvalue()


@lower_setattr_generic(ReadOnlyRecordType)
@lower_setattr_generic(GhostRecordType)
def _write(context: Any, builder: Any, signature: Any, args: Any, name: str) -> None:
    """Discard the value."""
