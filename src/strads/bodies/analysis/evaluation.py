"""Abstract values of variables, constants and elementwise operations; the base of all rules."""

import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from strads.bodies.analysis import known_functions
from strads.bodies.analysis.memory import Memory
from strads.bodies.analysis.values import (
    CONSTANT,
    FLOAT,
    NOTHING,
    OPAQUE,
    ROUNDED,
    UNKNOWN,
    Local,
    Magnitude,
    Numbers,
    Size,
    Sources,
    Value,
    locals_of,
    magnitude,
)
from strads.user_code.functions import ById

_WIDE_INTEGERS = (int, np.int64, np.uint64)  # conversions that keep every integer below `_LARGEST_MASK`
_LARGEST_MASK = 1 << 61  # constants are smaller, so that one more fits into any integer of 64 bits
COMPARISONS = (
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(operator.is_, operator.is_not),
)


class Evaluation:
    """What the rules of all expressions share: variables, constants, operations element by element.

    Parameters
    ----------
    arguments
        Values of the body's parameters.
    values
        Returns the value of a variable, given its name.
    memory
        Memory that the body works on.
    numbers
        The value numbering.
    """

    def __init__(
        self, arguments: Mapping[int, Value], values: Callable[[str], Value], memory: Memory, numbers: Numbers
    ):
        self._arguments = arguments
        self._values = values
        self._memory = memory
        self._numbers = numbers

    def variable(self, variable: Any) -> Value:
        """Return the value of a variable, if it is known."""
        return self._values(variable.name)

    def renamed(self, value: Value, name: str) -> Value:
        """Return a value whose number is that of one variable only."""
        return replace(value, number=self._numbers.of(("variable", name)))

    def _opaque(self, values: list[Value]) -> Value:
        """Return the value of an operation for which there is no rule."""
        self._memory.doubt(values)
        references = frozenset({UNKNOWN}).union(*(value.references for value in values))
        return Value(references, self._all(values) | {OPAQUE})

    def _all(self, values: list[Value]) -> Sources:
        return NOTHING.union(*(self._memory.sources(value) for value in values))

    def _number(self, *key: Hashable, of: list[Value]) -> int | None:
        """Return the value number of an operation on values that do not change in place."""
        if any(local.place != CONSTANT for value in of for local in locals_of(value)):
            return None
        numbers = tuple(value.number for value in of)
        return None if None in numbers else self._numbers.of((*key, *numbers))

    def _constant(self, value: Any) -> Value:
        number = self._numbers.of(("constant", type(value), identity(value)))
        if type(value) is tuple:
            return Value(items=tuple(map(self._constant, value)), constant=value, number=number)
        if isinstance(value, slice):
            if value.step == 0:
                self._memory.may_fail(Value())
            return Value(is_slice=True, number=number)
        if isinstance(value, np.ndarray):  # compiled into the code: immutable
            floating = frozenset({FLOAT}) if value.dtype.kind == "f" else NOTHING
            return Value(frozenset({Local(CONSTANT, value.ndim, True)}), floating, number=number)
        sources = frozenset({FLOAT}) if isinstance(value, float | np.floating) else NOTHING
        is_size = isinstance(value, int) and not isinstance(value, bool)
        return Value(sources=sources, constant=value, number=number, size=("constant", value) if is_size else None)

    def _operation(self, function: Any, operands: list[Value], key: Hashable) -> Value:
        """Apply an operator or an elementwise function: a number, or a new array."""
        sources = self._all(operands)
        if function is operator.truediv or (FLOAT in sources and not _is_exact(function)):
            sources |= {FLOAT, ROUNDED}
        for value in operands:
            self._memory.escape(value)
        depths = [self._memory.depth(value) for value in operands]
        if all(depth == 0 for depth in depths):
            number = self._number(key, of=operands)
            size = operands[1].size if function is operator.mod else None
            below = None if size is None else ("modulus", size)
            if function is operator.and_:
                below = _below_masks(operands)
            elif function in _WIDE_INTEGERS and len(operands) == 1:
                below = constant_limit(operands[0])
            return Value(
                sources=sources, number=number, below=below, magnitude=_magnitude_of_result(function, operands)
            )
        depth = None if None in depths else max(depth or 0 for depth in depths)
        length = NOTHING.union(*(self._memory.length(value) for value in operands if value.is_memory))
        arrays = [value for value in operands if value.is_memory]
        if length or (len(arrays) > 1 and not self._alike(arrays)):
            self._memory.may_fail(Value(), length)  # mismatched lengths raise
        is_array = all(local.is_array for value in operands for local in locals_of(value))
        contents = Value(sources=sources)
        if not is_array:  # lists are concatenated
            references = frozenset().union(*(value.references for value in operands))
            contents = Value(references, sources)
        made = self._memory.new(depth, is_array=is_array, contents=contents, length=length)
        return made.with_sources(NOTHING)

    def _alike(self, arrays: list[Value]) -> bool:
        sizes = {self._memory.size(value) if self._memory.depth(value) == 1 else None for value in arrays}
        return len(sizes) == 1 and None not in sizes


def constant_limit(value: Value) -> Size | None:
    """Return the constant that an integer which is not negative is below, if there is one."""
    if value.below is not None and value.below[0] == "constant":
        return value.below
    constant = value.constant
    if isinstance(constant, int | np.integer) and not isinstance(constant, bool) and 0 <= constant < _LARGEST_MASK:
        return ("constant", int(constant) + 1)
    return None


def _below_masks(operands: list[Value]) -> Size | None:
    """Return the limit of the bits that two integers share: that of either, if it is not negative."""
    limits = [limit for limit in map(constant_limit, operands) if limit is not None]
    return min(limits, key=lambda limit: limit[1], default=None)


def _magnitude_of_result(function: Any, operands: list[Value]) -> Magnitude | None:
    """Return the magnitude of the result of an operation on integers, if it is known."""
    if len(operands) != 2:
        return None
    left, right = map(magnitude, operands)
    if right is None:
        return None
    if function is operator.mod:  # which has the sign of the divisor
        return right if right.nonnegative else None
    if left is None:
        return None
    both = left | right
    if function is operator.floordiv or (function is operator.rshift and _is_shift(operands[1].constant)):
        return replace(both, bits=left.bits, nonnegative=left.nonnegative) if right.nonnegative else None
    if function is operator.add or function is operator.sub:
        is_nonnegative = both.nonnegative and function is operator.add
        return both.of_bits(both.bits + (is_nonnegative or not both.nonnegative), nonnegative=is_nonnegative)
    if function is operator.mul:
        return both.of_bits(left.bits + right.bits, nonnegative=both.nonnegative)
    return None


def _is_shift(places: Any) -> bool:
    """Whether integers can be shifted by so many places; LLVM leaves the result of others open."""
    return type(places) is int and places < 32


def _is_exact(function: Any) -> bool:
    return function in COMPARISONS or function in known_functions.KEEPS_VALUE


def identity(value: Any) -> Hashable:
    """Return a key that is equal for equal constants; by identity for types that may define their own equality."""
    if isinstance(value, bool | int | str | None) or value is Ellipsis:
        return value
    if isinstance(value, float):
        return value.hex()
    if type(value) is tuple:
        return tuple((type(item), identity(item)) for item in value)
    return ById(value)
