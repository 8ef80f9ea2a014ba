"""Abstract values of calls of functions, by the kind of function."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from strads.bodies.analysis import known_functions
from strads.bodies.analysis.evaluation import Evaluation, constant_limit, identity
from strads.bodies.analysis.known_functions import FunctionKind
from strads.bodies.analysis.values import (
    FLOAT,
    MAX_BITS,
    NOT_CONSTANT,
    NOTHING,
    ROUNDED,
    UNKNOWN,
    Magnitude,
    Part,
    Reference,
    Size,
    Sources,
    Value,
    largest,
    locals_of,
    magnitude,
    nonnegative,
)

_FEW = 4096  # elements of an array for which there is certainly memory
_OF_A_PRODUCT = 48  # from so many bits on, a number may be a product, not just a sum of a few 31-bit numbers


class FunctionCalls(Evaluation):
    """Evaluates calls of known functions over abstract values."""

    def _known(self, function: Any, kind: FunctionKind, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        memory = self._memory
        everything = arguments + list(keywords.values())
        if kind is FunctionKind.LENGTH:
            number = self._number("length", of=arguments)
            items = arguments[0].items if arguments else None
            sources = memory.length(arguments[0]) if arguments else NOTHING
            size = memory.size(arguments[0]) if arguments else None
            return Value(sources=arguments[0].sources if items is not None else sources, number=number, size=size)
        if kind is FunctionKind.SLICE:
            if len(arguments) == 3 and arguments[2].constant in (NOT_CONSTANT, 0):
                memory.may_fail(arguments[2])  # a step of 0 raises
            return Value(sources=self._all(arguments), is_slice=True, segment=memory.segment(arguments))
        if kind is FunctionKind.RANGE:
            sources = self._all(arguments)
            if len(arguments) == 3 and arguments[2].constant in (NOT_CONSTANT, 0):
                memory.may_fail(arguments[2])  # a step of 0 raises
            below, within, segment = stop_of(arguments), magnitude_in_range(arguments), memory.segment(arguments)
            element = Value(sources=sources, below=below, magnitude=within, segment=segment)
            return Value(sources=sources, elements=element)
        if kind is FunctionKind.ENUMERATE or kind is FunctionKind.ZIP:
            elements = tuple(memory.elements(value) for value in arguments)
            sources = NOTHING.union(*(memory.length(value) | value.sources for value in arguments))
            if kind is FunctionKind.ENUMERATE:
                below = memory.size(arguments[0]) if len(everything) == 1 else None
                place = magnitude_below(below) if len(everything) == 1 else None
                elements = (Value(sources=sources, below=below, magnitude=place), *elements[:1])
            return Value(sources=sources, elements=Value(items=elements), iterator=memory.place[0])
        if kind is FunctionKind.ITERATE:
            length = NOTHING.union(*(memory.length(value) | value.sources for value in arguments))
            found = memory.elements(arguments[0]) if arguments else None
            return Value(sources=length, elements=found, iterator=memory.place[0])
        if kind is FunctionKind.COLLECT:
            made = memory.new(1, is_array=False)
            for value in arguments:
                memory.put(made, memory.elements(value).with_sources(memory.length(value)), resizes=True)
            return made
        return self._computed(function, kind, arguments, keywords, everything)

    def _computed(
        self,
        function: Any,
        kind: FunctionKind,
        arguments: list[Value],
        keywords: dict[str, Value],
        everything: list[Value],
    ) -> Value:
        """Return the value of a function that computes something from all its arguments."""
        memory = self._memory
        for value in everything:
            memory.escape(value, needs_numbers=kind is not FunctionKind.ALLOCATE_LIKE)
        target = self._target(function, arguments, keywords)
        sources = self._all([value for value in everything if value is not target])
        if FLOAT in sources and function not in known_functions.KEEPS_VALUE:
            sources |= {ROUNDED}
        length = NOTHING.union(*(memory.length(value) for value in everything if value.is_memory))
        is_of_arrays = kind is not FunctionKind.NOTHING and any(value.is_memory for value in everything)
        memory.effects.computes |= is_of_arrays or function in known_functions.LONG
        refuses = function in known_functions.REFUSING
        if refuses or length or self._may_not_fit(function, kind, everything):
            memory.may_fail(Value(sources=sources if refuses else length))
        if target is not None:
            memory.overwrite(target, sources)
            return replace(target, number=None)
        if kind is FunctionKind.NOTHING:
            return Value()
        if kind is FunctionKind.VIEW:
            return self._view(arguments, everything)
        if kind is FunctionKind.ALLOCATE or kind is FunctionKind.ALLOCATE_LIKE:
            return self._allocated(function, kind, arguments, sources)
        if kind is FunctionKind.ELEMENTWISE and not keywords:
            return self._operation(function, arguments, ("call", identity(function)))
        if kind is FunctionKind.REDUCE and self._holds_memory(arguments):  # `max` of a list of rows
            return self._opaque(everything)
        depths = [memory.depth(value) for value in arguments]
        if self._is_number(kind, depths, arguments, keywords):
            if function in known_functions.PAIRS:
                return Value(items=(Value(sources=sources), Value(sources=sources)), sources=sources)
            below = constant_limit(arguments[0]) if function is int and len(everything) == 1 else None
            return Value(sources=sources, number=self._number("call", identity(function), of=everything), below=below)
        return memory.new(None, is_array=True, contents=Value(sources=sources), length=sources)

    def _may_not_fit(self, function: Any, kind: FunctionKind, values: list[Value]) -> bool:
        """Whether a function may raise because of its arguments' shapes; never if these are alike, with one axis."""
        if kind in (FunctionKind.SCALAR, FunctionKind.NOTHING, FunctionKind.ALLOCATE, FunctionKind.ALLOCATE_LIKE):
            return False
        arrays = [value for value in values if value.is_memory]
        if kind is FunctionKind.ELEMENTWISE or (
            kind is FunctionKind.REDUCE and function not in known_functions.NEEDS_VALUES
        ):
            return len(arrays) > 1 and not self._alike(arrays)
        if kind is FunctionKind.PRODUCT:
            return not self._alike(arrays)
        return True

    def _is_number(
        self, kind: FunctionKind, depths: list[int | None], arguments: list[Value], keywords: dict[str, Value]
    ) -> bool:
        """Whether a function returns a number, given the axes of its arguments."""
        if kind is FunctionKind.SCALAR:
            return True
        if kind is FunctionKind.PRODUCT:
            return depths == [1, 1]
        if kind is FunctionKind.REDUCE:
            return not keywords and (len(arguments) == 1 or all(depth == 0 for depth in depths))
        return False

    def _holds_memory(self, values: list[Value]) -> bool:
        """Whether the items of a list or tuple may themselves be memory."""
        lists = [v for v in values if v.items or any(not local.is_array for local in locals_of(v))]
        return any(self._memory.elements(value).is_memory for value in lists)

    def _target(self, function: Any, arguments: list[Value], keywords: dict[str, Value]) -> Value | None:
        position = known_functions.written_position(function, len(arguments), frozenset(keywords))
        if position is None:
            return None
        return keywords[position] if isinstance(position, str) else arguments[position]

    def _view(self, arguments: list[Value], everything: list[Value]) -> Value:
        """Return an array that may share memory with the arguments, of any shape."""
        references = {
            reference if reference is UNKNOWN else _of_any_shape(reference)
            for value in everything
            for reference in value.references
        }
        length = self._all(arguments[1:]) | (self._memory.length(arguments[0]) if arguments else NOTHING)
        return Value(frozenset(references), length, length)

    def _allocated(self, function: Any, kind: FunctionKind, arguments: list[Value], sources: Sources) -> Value:
        memory = self._memory
        shape: tuple[Size | None, ...] = ()
        if kind is FunctionKind.ALLOCATE_LIKE:
            depth = memory.depth(arguments[0]) if arguments else None
            length = memory.length(arguments[0]) if arguments else NOTHING
            inside = Value(sources=self._all(arguments[1:]))
            shape = memory.sizes(arguments[0]) if len(arguments) == 1 else ()
            return memory.new(depth, is_array=True, contents=inside, length=length, shape=shape)
        depth = None
        if function in (np.arange, np.linspace):
            depth = 1
        elif function in (np.eye, np.identity, np.tri):
            depth = 2
        elif arguments and arguments[0].items is not None:
            shape = tuple(item.size for item in arguments[0].items)
            depth = len(shape)
        elif arguments and arguments[0].is_shape:
            shape = arguments[0].sizes
            depth = len(shape) or None
        elif arguments and not arguments[0].is_memory:
            depth, shape = 1, (arguments[0].size,)
        memory.may_fail(Value(sources=sources), fits=frozenset() if _is_small(shape) else None)
        return memory.new(depth, is_array=True, contents=Value(sources=sources), length=sources, shape=shape)


def _is_small(shape: tuple[Size | None, ...]) -> bool:
    """Whether there is certainly memory for an array: it is hardly longer than a table, or has few elements."""
    constants = [size[1] for size in shape if size is not None and size[0] == "constant"]
    others = [size for size in shape if size is None or size[0] != "constant"]
    is_bounded = all(size is not None and size[0] in ("axis", "row") for size in others) and len(others) <= 1
    return bool(shape) and is_bounded and min(constants, default=0) >= 0 and math.prod(constants) <= _FEW


def stop_of(arguments: list[Value]) -> Size | None:
    """Return the upper bound of the numbers of a range, if they are not negative."""
    start = _start_of(arguments)
    if start is None or start.bits >= _OF_A_PRODUCT:  # whether that overflows is not looked up
        return None
    stop = arguments[min(len(arguments), 2) - 1]
    found = stop.size or largest(stop)
    # The upper bound is none if a number of its table is negative, but says nothing about other tables.
    numbers = start.given | start.limits
    others = {given for given in numbers if found is None or given[1:] != found[1:] or found[0] != "largest"}
    return None if others else found


def magnitude_below(size: Size | None) -> Magnitude:
    """Return the magnitude of a number that is not negative and below a size, if it is known."""
    found = None if size is None else nonnegative(Value(size=size))
    return Magnitude(bits=MAX_BITS) if found is None else Magnitude(bits=found.bits, limits=found.given)


def magnitude_in_range(arguments: list[Value]) -> Magnitude | None:
    """Return the magnitude of the numbers of a range, if they are certainly not negative."""
    start = _start_of(arguments)
    if start is None:
        return None
    stop = magnitude(arguments[min(len(arguments), 2) - 1])
    given = start.given | start.limits
    return Magnitude(given, MAX_BITS) if stop is None else Magnitude(given, stop.bits, limits=stop.given | stop.limits)


def _start_of(arguments: list[Value]) -> Magnitude | None:
    """Return the magnitude of the first number of a range that rises from a number that is not negative."""
    if len(arguments) == 1:
        return Magnitude(bits=0)
    if len(arguments) == 3 and not (type(arguments[2].constant) is int and arguments[2].constant > 0):
        return None
    return nonnegative(arguments[0]) if arguments else None


def _of_any_shape(reference: Reference) -> Reference:
    """Return a view of an array with unknown shape: a table that is no longer read by row may be written anywhere."""
    if isinstance(reference, Part):
        return replace(reference, depth=None, whole=False)
    return replace(reference, depth=None)
