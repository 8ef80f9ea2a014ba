"""Numba types of table views: plain structs of values, passed in registers.

`structref` would put every view on the heap and count references to it; a struct model costs nothing once the
body is inlined.
"""

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, make_attribute_wrapper, models, register_model
from numba.np.arrayobj import populate_array

from strads.engine.compiling import UNCOUNTED


@njit(**UNCOUNTED)
def as_it_is(storage, context):  # type: ignore[no-untyped-def]
    """Construct no view: return the storage."""
    return storage


# Items of the context of a task in a run; see `live`.
PLAN_POSITION, JOB, LANE, HOLDER, INDEX, DRAWN = 0, 1, 2, 3, 4, 5
RECENT_ACCESSES = 6  # what was just fetched, in that of fetching views


class ViewType(types.Type):
    """Base of all view types; `members` are the Numba types of the fields, in order."""

    fields: tuple[str, ...] = ()

    def __init__(self, members: tuple[types.Type, ...]):
        self.members = members
        super().__init__(f"{type(self).__name__}({', '.join(map(str, members))})")

    def member(self, field: str) -> types.Type:
        """Return the Numba type of one field."""
        return self.members[self.fields.index(field)]


def define_view(name: str, *fields: str) -> tuple[type[ViewType], Any]:
    """Define a view with the given fields; returns its Numba type and a constructor for compiled code.

    The constructor takes one tuple with the values of the fields. Each field is readable as an attribute.
    """
    view_type = type(name, (ViewType,), {"fields": fields})

    class Model(models.StructModel):
        def __init__(self, manager: Any, frontend_type: ViewType):
            super().__init__(manager, frontend_type, list(zip(fields, frontend_type.members, strict=True)))

        def traverse(self, builder: Any) -> list[Any]:
            """Return no member whose references are counted: the caller of the loop keeps them alive."""
            return []

    register_model(view_type)(Model)
    for field in fields:
        make_attribute_wrapper(view_type, field, field)

    @intrinsic
    def construct(typingctx: Any, values: Any) -> Any:
        result = view_type(tuple(types.unliteral(value) for value in values.types))

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = cgutils.create_struct_proxy(result)(context, builder)
            for position, field in enumerate(fields):
                value = builder.extract_value(args[0], position)
                value = context.cast(builder, value, values.types[position], result.members[position])
                setattr(view, field, value)
            return view._getvalue()

        return result(values), codegen

    return view_type, construct


def _borrow(context: Any, builder: Any, value_type: types.Type, value: Any) -> Any:
    """Remove reference counting from every array of a value.

    The caller of the loop keeps the arrays alive. Counting references to them in each task would cost more than
    many loop bodies: Numba cannot prune the counting where an index error may leave the body.
    """
    if isinstance(value_type, types.Array):
        array = context.make_array(value_type)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(value_type, types.BaseTuple):
        items = [
            _borrow(context, builder, item_type, builder.extract_value(value, position))
            for position, item_type in enumerate(value_type)
        ]
        return context.make_tuple(builder, value_type, items)
    return value


@intrinsic
def replica_of(typingctx: Any, data: Any, lane: Any, rows: Any) -> Any:
    """Return the array of the first `rows` rows of `data[lane]`: without the clipping of a slice, which takes time."""
    replica = types.Array(data.dtype, data.ndim - 1, "C", aligned=data.aligned)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(data)(context, builder, args[0])
        shape, strides = (cgutils.unpack_tuple(builder, sizes, data.ndim) for sizes in (array.shape, array.strides))
        first = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        found = context.make_array(replica)(context, builder)
        populate_array(
            found,
            data=builder.bitcast(builder.gep(first, [builder.mul(args[1], strides[0])]), array.data.type),
            shape=[args[2], *shape[2:]],
            strides=strides[1:],
            itemsize=array.itemsize,
            meminfo=None,  # the caller of the loop keeps it alive
        )
        return found._getvalue()

    return replica(data, types.intp, types.intp), codegen


def bind_with(constructors: tuple[Any | None, ...]) -> Any:
    """Make a compiled function `bind(storages, context)` that turns a tuple of storages into one of views.

    Parameters
    ----------
    constructors
        For each argument of the body: None to pass the storage unchanged, or a compiled function
        `constructor(storage, context)` that returns the view.
    """

    @intrinsic(prefer_literal=True)  # of weak floats, too
    def bind(typingctx: Any, storages: Any, context_value: Any) -> Any:
        views = [
            storage
            if constructor is None
            else typingctx.resolve_function_type(
                types.Dispatcher(constructor), (storage, context_value), {}
            ).return_type
            for constructor, storage in zip(constructors, storages.types, strict=True)
        ]
        result = types.Tuple(views)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            task = _borrow(context, builder, context_value, args[1])
            values = []
            for position, (constructor, storage) in enumerate(zip(constructors, storages.types, strict=True)):
                value = _borrow(context, builder, storage, builder.extract_value(args[0], position))
                if constructor is not None:
                    call = views[position](storage, context_value)
                    construct = context.get_function(types.Dispatcher(constructor), call)
                    context.add_linking_libs(getattr(construct, "libs", ()))
                    value = construct(builder, [value, task])
                values.append(value)
            return context.make_tuple(builder, result, values)

        return result(storages, context_value), codegen

    return bind
