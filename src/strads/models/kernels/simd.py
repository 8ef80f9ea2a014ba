"""Sixteen numbers in one variable, for kernels whose inner loop LLVM does not vectorize by itself.

Written with LLVM's generic vectors, so that it compiles for any processor: one AVX-512 register, two of AVX2, or four
of NEON. A `Lanes` value lives only inside a compiled function. Positions are element numbers of contiguous arrays;
there are no bounds checks. Where a function takes a float32 array, it also takes the address of one (`address`), whose
owner the caller keeps alive.
"""

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

WIDTH = 16  # lanes

_FLOAT = ir.FloatType()
_WHOLE = ir.IntType(32)
_BIT = ir.IntType(1)


class Lanes(types.Type):
    """Numba type of 16 float32 (`floats`) or 16 int32 values."""

    def __init__(self, floats: bool):
        self.floats = floats
        super().__init__(name=f"Lanes({'float32' if floats else 'int32'})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes):
        super().__init__(manager, kind, ir.VectorType(_FLOAT if kind.floats else _WHOLE, WIDTH))


floats_type = Lanes(True)
wholes_type = Lanes(False)
_FLOATS = ir.VectorType(_FLOAT, WIDTH)
_WHOLES = ir.VectorType(_WHOLE, WIDTH)
_EXPONENTIAL = [math.log(2) ** order / math.factorial(order) for order in range(7)]  # of 2ˣ


def _address(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
    if isinstance(kind, types.Integer):
        return builder.gep(builder.inttoptr(array, _FLOAT.as_pointer()), [position], source_etype=_FLOAT)
    return builder.gep(context.make_array(kind)(context, builder, array).data, [position])


def _splat(builder: Any, scalar: Any) -> Any:
    vector = ir.VectorType(scalar.type, WIDTH)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_WHOLE, 0))
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), ir.Constant(_WHOLES, [0] * WIDTH))


def _vector_function(name: str, count: int) -> Any:
    """Generate a call of one of LLVM's functions of `count` float vectors."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(_FLOATS, [_FLOATS] * count)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), list(values))

    return generate


def _element_type(kind: Any) -> Any:
    if kind in (types.float32, types.float64):
        return ir.FloatType() if kind == types.float32 else ir.DoubleType()
    return ir.IntType(kind.bitwidth)


def _dtype_of(kind: Any) -> Any:
    return types.float32 if isinstance(kind, types.Integer) else kind.dtype


def _load(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
    """Load 16 elements unconverted, from an address that is aligned for a single element."""
    dtype = _dtype_of(kind)
    vector = ir.VectorType(_element_type(dtype), WIDTH)
    address = builder.bitcast(_address(context, builder, kind, array, position), vector.as_pointer())
    return builder.load(address, align=dtype.bitwidth // 8)


@intrinsic
def address(typing: Any, array: Any, position: Any) -> Any:
    """Where an element of an array lies in memory, an intp."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.ptrtoint(place, context.get_value_type(types.intp))

    return types.intp(array, types.intp), generate


@intrinsic
def load_float(typing: Any, array: Any, position: Any) -> Any:
    """One element of a float32 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load(place, align=4)

    return types.float32(array, types.intp), generate


@intrinsic
def store_float(typing: Any, array: Any, position: Any, value: Any) -> Any:
    """Write one element of a float32 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.float32), generate


@intrinsic
def load_floats(typing: Any, array: Any, position: Any) -> Any:
    """Elements `position … position + 15` of a float32 or integer array, as float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        dtype = _dtype_of(signature.args[0])
        values = _load(context, builder, signature.args[0], arguments[0], arguments[1])
        if dtype == types.float32:
            return values
        return builder.sitofp(values, _FLOATS) if dtype.signed else builder.uitofp(values, _FLOATS)

    return floats_type(array, types.intp), generate


@intrinsic
def load_wholes(typing: Any, array: Any, position: Any) -> Any:
    """Elements `position … position + 15` of an array of 32-bit integers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _load(context, builder, signature.args[0], arguments[0], arguments[1])

    return wholes_type(array, types.intp), generate


@intrinsic
def store_floats(typing: Any, array: Any, position: Any, lanes: Any) -> Any:
    """Write the lanes to elements `position … position + 15` of a float32 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], builder.bitcast(address, _FLOATS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, floats_type), generate


@intrinsic
def gather(typing: Any, array: Any, positions: Any) -> Any:
    """`array[positions]`: 16 elements of a float32 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        # Signed, because that is how processors extend 32-bit positions.
        steps = builder.sext(arguments[1], ir.VectorType(ir.IntType(64), WIDTH))
        pointers = builder.gep(start, [steps], source_etype=_FLOAT)
        pointers.type = ir.VectorType(_FLOAT.as_pointer(), WIDTH)
        mask = ir.Constant(ir.VectorType(_BIT, WIDTH), [1] * WIDTH)
        kind = ir.FunctionType(_FLOATS, [pointers.type, _WHOLE, mask.type, _FLOATS])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.gather.v16f32.v16p0")
        return builder.call(function, [pointers, ir.Constant(_WHOLE, 4), mask, ir.Constant(_FLOATS, ir.Undefined)])

    return floats_type(array, wholes_type), generate


@intrinsic
def splat_float(typing: Any, scalar: Any) -> Any:
    """The same float32 in all lanes."""
    return floats_type(types.float32), lambda context, builder, signature, values: _splat(builder, values[0])


@intrinsic
def splat_whole(typing: Any, scalar: Any) -> Any:
    """The same int32 in all lanes."""
    return wholes_type(types.int32), lambda context, builder, signature, values: _splat(builder, values[0])


@intrinsic
def lane_numbers(typing: Any) -> Any:
    """0, 1, … 15."""
    numbers = ir.Constant(_WHOLES, list(range(WIDTH)))
    return wholes_type(), lambda context, builder, signature, values: numbers


def _operation(method: str, lanes: Lanes) -> Any:
    """Make a function of two values from a method of LLVM's builder."""

    def define(typing: Any, a: Any, b: Any) -> Any:
        return lanes(a, b), lambda context, builder, signature, values: getattr(builder, method)(*values)

    return intrinsic(define)


add, subtract, multiply, divide = (_operation(name, floats_type) for name in ("fadd", "fsub", "fmul", "fdiv"))
bits_and, shift_right = (_operation(name, wholes_type) for name in ("and_", "lshr"))  # of integers, as unsigned


@intrinsic
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c for floats, rounded once where the processor can."""
    return floats_type(a, b, c), _vector_function("llvm.fmuladd.v16f32", 3)


@intrinsic
def between(typing: Any, a: Any, low: Any, high: Any) -> Any:
    """min(max(a, low), high) for floats; low and high are scalars."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        low, high = _splat(builder, values[1]), _splat(builder, values[2])
        raised = builder.select(builder.fcmp_ordered(">", values[0], low), values[0], low)
        return builder.select(builder.fcmp_ordered("<", raised, high), raised, high)

    return floats_type(a, types.float32, types.float32), generate


@intrinsic
def power_of_two(typing: Any, a: Any) -> Any:
    """2ᵃ for floats from −126 to 127, to a relative error of 2⁻²²: Taylor's series for |a| ≤ ½, then the exponent."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        whole = _vector_function("llvm.rint.v16f32", 1)(context, builder, signature, values)
        rest = builder.fsub(values[0], whole)
        power = ir.Constant(_FLOATS, [_EXPONENTIAL[-1]] * WIDTH)
        for coefficient in _EXPONENTIAL[-2::-1]:
            power = builder.fadd(builder.fmul(power, rest), ir.Constant(_FLOATS, [coefficient] * WIDTH))
        exponent = builder.add(builder.fptosi(whole, _WHOLES), ir.Constant(_WHOLES, [127] * WIDTH))
        scale = builder.bitcast(builder.shl(exponent, ir.Constant(_WHOLES, [23] * WIDTH)), _FLOATS)
        return builder.fmul(power, scale)

    return floats_type(a), generate


@intrinsic
def positive_part(typing: Any, a: Any) -> Any:
    """max(a, 0) for floats."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        zero = ir.Constant(_FLOATS, [0.0] * WIDTH)
        return builder.select(builder.fcmp_ordered(">", values[0], zero), values[0], zero)

    return floats_type(a), generate


@intrinsic
def absolute(typing: Any, a: Any) -> Any:
    """|a| for floats."""
    return floats_type(a), _vector_function("llvm.fabs.v16f32", 1)


@intrinsic
def sign(typing: Any, a: Any) -> Any:
    """1 for positive floats, −1 for negative ones, 0 for zero."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        zero, one, minus = (ir.Constant(_FLOATS, [number] * WIDTH) for number in (0.0, 1.0, -1.0))
        negative = builder.select(builder.fcmp_ordered("<", values[0], zero), minus, zero)
        return builder.select(builder.fcmp_ordered(">", values[0], zero), one, negative)

    return floats_type(a), generate


@intrinsic
def as_floats(typing: Any, a: Any) -> Any:
    """Convert integers, interpreted as unsigned, to floats; exact below 2²⁴."""
    return floats_type(a), lambda context, builder, signature, values: builder.uitofp(values[0], _FLOATS)


@intrinsic
def where_equal(typing: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """`then` in the lanes where the integers a and b are equal, `otherwise` in the rest (floats)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.select(builder.icmp_signed("==", values[0], values[1]), values[2], values[3])

    return floats_type(a, b, then, otherwise), generate


def _bits(builder: Any, mask: Any) -> Any:
    return builder.zext(builder.bitcast(mask, ir.IntType(WIDTH)), ir.IntType(64))


@intrinsic
def mask_equal(typing: Any, a: Any, b: Any) -> Any:
    """The lanes where the integers a and b are equal, as the bits of an int64."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _bits(builder, builder.icmp_signed("==", values[0], values[1]))

    return types.int64(a, b), generate


@intrinsic
def first_bit(typing: Any, mask: Any) -> Any:
    """Number of the lowest bit set in a mask that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(_BIT, 1))

    return types.int64(types.int64), generate


@intrinsic
def count_at_most(typing: Any, a: Any, limit: Any) -> Any:
    """Number of lanes in which the float a is ≤ limit."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        bits = _bits(builder, builder.fcmp_ordered("<=", values[0], _splat(builder, values[1])))
        return builder.ctpop(bits)

    return types.int64(a, types.float32), generate


@intrinsic
def lane(typing: Any, a: Any, number: Any) -> Any:
    """The float in one lane."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.extract_element(values[0], builder.trunc(values[1], _WHOLE))

    return types.float32(a, types.int64), generate


@intrinsic
def prefix_sums(typing: Any, a: Any) -> Any:
    """Sums of the floats of lanes 0 … l, in each lane l."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        sums, zero = values[0], ir.Constant(_FLOATS, [0.0] * WIDTH)
        for distance in (1, 2, 4, 8):
            # Positions from 16 on refer to lanes of the second vector, the zeros.
            lanes = [WIDTH + i if i < distance else i - distance for i in range(WIDTH)]
            sums = builder.fadd(sums, builder.shuffle_vector(sums, zero, ir.Constant(_WHOLES, lanes)))
        return sums

    return floats_type(a), generate


@intrinsic
def total(typing: Any, a: Any) -> Any:
    """Sum of the 16 floats."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        sums = values[0]
        for distance in (8, 4, 2, 1):
            lanes = [(i + distance) % WIDTH for i in range(WIDTH)]
            sums = builder.fadd(sums, builder.shuffle_vector(sums, sums, ir.Constant(_WHOLES, lanes)))
        return builder.extract_element(sums, ir.Constant(_WHOLE, 0))

    return types.float32(a), generate


@intrinsic
def row_totals(typing: Any, array: Any, position: Any) -> Any:
    """Sums of 16 rows of 16 floats stored one after the other from `position` on: row l's in lane l."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        starts = [builder.add(values[1], ir.Constant(values[1].type, WIDTH * row)) for row in range(WIDTH)]
        rows = [_load(context, builder, signature.args[0], values[0], start) for start in starts]
        half = WIDTH // 2
        while half:  # folds rows r and r + half into one vector, of which each takes every second run of `half` lanes
            runs = range(0, WIDTH, 2 * half)
            left = [start + i for run in runs for start in (run, WIDTH + run) for i in range(half)]
            right = [i + half for i in left]
            rows = [_folded(builder, rows[row], rows[row + half], left, right) for row in range(half)]
            half //= 2
        return rows[0]

    return floats_type(array, types.intp), generate


def _folded(builder: Any, a: Any, b: Any, left: list[int], right: list[int]) -> Any:
    parts = [builder.shuffle_vector(a, b, ir.Constant(_WHOLES, lanes)) for lanes in (left, right)]
    return builder.fadd(*parts)


@intrinsic
def prefetch(typing: Any, array: Any, position: Any) -> Any:
    """Prefetch the cache line of an element that will soon be read and written."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], values[0], values[1])
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), _WHOLE, _WHOLE, _WHOLE])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        options = [ir.Constant(_WHOLE, option) for option in (1, 3, 1)]  # for writing, keep in cache, data
        builder.call(function, [builder.bitcast(address, ir.IntType(8).as_pointer()), *options])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
