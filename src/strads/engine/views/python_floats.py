"""Python floats among single-precision tables: Numba's type of numbers that have the precision of what they meet.

In NumPy's promotion rules (NEP 50) a Python float never widens an array, but has all its digits beside integers. In
Numba it is a double: `0.5 * w[f]` would compute in double precision among float32 tables. As a float32 it would lose
digits where the result is a double in any case: `int(k * 0.7)` is 6 for k = 10 if 0.7 is rounded.
"""

import math
import operator
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.boxing import unbox_float
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import impl_ret_borrowed, lower_constant, lower_getattr
from numba.core.typing.builtins import Enumerate, Iter, NumberClassAttribute, Zip
from numba.core.typing.collections import GetItemSequence
from numba.core.typing.templates import AbstractTemplate, Signature, infer_getattr, infer_global, signature
from numba.extending import NativeValue, box, intrinsic, lower_builtin, lower_cast, register_model, typeof_impl, unbox

_ARITHMETIC = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow),
)
_OF_MATH = (
    *(math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.log2, math.log10, math.fabs),
    *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh),
    *(np.abs, np.sqrt, np.square, np.exp, np.expm1, np.log, np.log1p, np.log2, np.log10, np.floor, np.ceil, np.tanh),
)
_OF_TWO = (math.pow, math.hypot, math.atan2, math.copysign, np.power, np.hypot, np.arctan2, np.maximum, np.minimum)
_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


class WeakFloat(float):
    """A Python float that compiled code uses in the precision of what it meets, single or double."""


class WeakFloatType(types.Number):
    """Numba's type of a `WeakFloat`, which compiled code holds as a double.

    Operators and common functions have versions for it alone. Otherwise Numba asks for its `literal_type` instead, as
    it does with literals, and converts the double to what a function takes: a double, where the other operand is an
    integer or a double.
    """

    literal_type = types.float32
    is_internal = True  # Numba fuses array expressions of its own types alone

    def __init__(self) -> None:
        super().__init__("WeakFloat")

    def can_convert_to(self, context: Any, other: types.Type) -> Any:
        """Return how well it converts to another type: as a float32 does."""
        return context.can_convert(self.literal_type, other)

    def unify(self, context: Any, other: types.Type) -> types.Type | None:
        """Return the type of a variable that holds either: the other one, if that is a float."""
        if isinstance(other, types.Integer | types.Boolean):
            return types.float64
        return context.unify_pairs(self.literal_type, other)


weak_float = WeakFloatType()


@typeof_impl.register(WeakFloat)
def _type_of_value(value: WeakFloat, context: Any) -> types.Type:
    return weak_float


@register_model(WeakFloatType)
class _Model(PrimitiveModel):
    def __init__(self, models: Any, declared: types.Type):
        super().__init__(models, declared, ir.DoubleType())


@unbox(WeakFloatType)
def _from_python(declared: types.Type, value: Any, c: Any) -> NativeValue:
    return unbox_float(types.float64, value, c)


@box(WeakFloatType)
def _to_python(declared: types.Type, value: Any, c: Any) -> Any:
    return c.pyapi.float_from_double(value)


@lower_constant(WeakFloatType)
def _constant(context: Any, builder: Any, declared: types.Type, value: WeakFloat) -> Any:
    return context.get_constant(types.float64, value)


@lower_cast(WeakFloatType, types.Number)
@lower_cast(WeakFloatType, types.Boolean)
def _convert(context: Any, builder: Any, declared: types.Type, wanted: types.Type, value: Any) -> Any:
    return context.cast(builder, value, types.float64, wanted)


class _Asked(AbstractTemplate):
    """A version of a function that is asked before Numba's own, which would take the `literal_type`."""

    metadata: ClassVar = {"target": "cpu"}
    prefer_literal = True


@infer_global(tuple)
@infer_global(operator.add)
class _JoinedTuples(_Asked):
    """Lets tuples that are copied or joined, as in calls with `*arguments`, keep their weak floats."""

    def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        if not all(isinstance(each, types.BaseAnonymousTuple) for each in arguments):
            return None
        items = [item for each in arguments for item in each]
        return signature(types.BaseTuple.from_types(items), *arguments) if weak_float in items else None


def _keep_in(function: Any, template: Any) -> None:
    """Let a function of tuples, or its iterator, give weak floats if the tuples hold some."""

    @infer_global(function)
    class OfTuples(_Asked):
        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
            if not any(
                isinstance(each, types.BaseTuple) and getattr(each, "dtype", None) == weak_float for each in arguments
            ):
                return None
            found: Signature | None = template.generic(self, arguments, keywords)
            return found


_keep_in(operator.getitem, GetItemSequence)
_keep_in(enumerate, Enumerate)
_keep_in(zip, Zip)
_keep_in(iter, Iter)


@infer_global(isinstance)
class _IsInstance(_Asked):
    def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        return signature(types.boolean, *arguments) if arguments[0] == weak_float else None


@lower_builtin(isinstance, WeakFloatType, types.Any)
def _is_instance(context: Any, builder: Any, declared: Signature, values: Any) -> Any:
    classes = declared.args[1] if isinstance(declared.args[1], types.BaseTuple) else declared.args[1:]
    found = any(isinstance(each, types.Function) and each.typing_key is float for each in classes)
    return context.get_constant(types.boolean, found)


def _with_doubles(declared: types.Type) -> types.Type:
    if isinstance(declared, types.Tuple | types.UniTuple):
        return types.BaseTuple.from_types([_with_doubles(item) for item in declared])
    return types.float64 if declared == weak_float else types.unliteral(declared)


@intrinsic(prefer_literal=True)
def plain(context: Any, x: types.Type) -> tuple[Signature, Any]:
    """Return a weak float, or a tuple of them, as the doubles that they are, and all else as it is."""
    result = _with_doubles(x)

    def compute(context: Any, builder: Any, declared: Signature, values: Any) -> Any:
        return impl_ret_borrowed(context, builder, result, context.cast(builder, values[0], x, result))

    return signature(result, x), compute


@lower_getattr(WeakFloatType, "real")
def _real(context: Any, builder: Any, declared: types.Type, value: Any) -> Any:
    return value


@lower_getattr(WeakFloatType, "imag")
def _imaginary(context: Any, builder: Any, declared: types.Type, value: Any) -> Any:
    return context.get_constant(types.float64, 0)


def _define(function: Any, result: types.Type, *declared: types.Type) -> None:
    """Let a function take weak floats, and maybe integers, as `declared`, and compute in double precision."""

    @infer_global(function)
    class OfWeakFloats(_Asked):
        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
            wanted = [types.int64 if isinstance(each, types.Integer) else each for each in arguments]
            return signature(result, *declared) if tuple(wanted) == declared else None

    doubles = [types.float64 if each == weak_float else each for each in declared]

    @lower_builtin(function, *declared)
    def compute(context: Any, builder: Any, given: Signature, values: Any) -> Any:
        of_doubles = signature(types.float64 if result == weak_float else result, *doubles)
        return context.get_function(function, of_doubles)(builder, values)


for _functions, _result, _declared in (
    ((*_ARITHMETIC, pow, *_OF_TWO), weak_float, (weak_float, weak_float)),
    ((operator.pow, operator.ipow, pow), weak_float, (weak_float, types.int64)),
    ((operator.neg, operator.pos, abs, *_OF_MATH), weak_float, (weak_float,)),
    (_COMPARISONS, types.boolean, (weak_float, weak_float)),
    ((round, math.floor, math.ceil, math.trunc), types.int64, (weak_float,)),
    ((round,), weak_float, (weak_float, types.int64)),
):
    for _function in _functions:
        _define(_function, _result, *_declared)


@infer_global(int)
class _Truncated(_Asked):
    def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        return signature(types.int64, *arguments) if arguments == (weak_float,) else None


@lower_builtin(int, WeakFloatType)
def _truncate(context: Any, builder: Any, declared: Signature, values: Any) -> Any:
    return context.cast(builder, values[0], types.float64, types.int64)


@infer_global(float)
class _AsItIs(_Asked):
    def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        return signature(weak_float, weak_float) if arguments == (weak_float,) else None


@lower_builtin(float, WeakFloatType)
@lower_builtin("complex.conjugate", WeakFloatType)
def _as_it_is(context: Any, builder: Any, declared: Signature, values: Any) -> Any:
    return values[0]


@infer_getattr
class _NumberClasses(NumberClassAttribute):
    """Lets `np.float64(x)` and others take the double."""

    metadata: ClassVar = {"target": "cpu"}

    def resolve___call__(self, number_class: types.NumberClass) -> types.Function:
        class OfWeakFloats(_Asked):
            key = number_class.instance_type

            def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
                return signature(self.key, *arguments) if arguments == (weak_float,) else None

        return types.Function((OfWeakFloats, *super().resolve___call__(number_class).templates))


@infer_global(min)
@infer_global(max)
class _Extreme(_Asked):
    """The smallest or largest of weak floats, and maybe integers."""

    def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        others = [each for each in arguments if each != weak_float]
        if len(others) == len(arguments) or not all(isinstance(each, types.Integer) for each in others):
            return None
        return signature(types.float64 if others else weak_float, *arguments)


def _define_extreme(function: Any, better: str) -> None:
    @lower_builtin(function, types.VarArg(types.Any))
    def compute(context: Any, builder: Any, declared: Signature, values: Any) -> Any:
        pairs = zip(values, declared.args, strict=True)
        best, *others = [context.cast(builder, value, given, types.float64) for value, given in pairs]
        for value in others:
            best = builder.select(builder.fcmp_ordered(better, value, best), value, best)
        return best


_define_extreme(min, "<")
_define_extreme(max, ">")
