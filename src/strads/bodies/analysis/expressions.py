"""The rules that compute the abstract value of an expression from its operands; without a rule it is opaque."""

import operator
import random
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import ir

from strads.bodies.analysis import calls
from strads.bodies.analysis.calls import Effect
from strads.bodies.analysis.inlining import constants_of
from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.memory import Memory
from strads.bodies.analysis.numbers import Numbers
from strads.bodies.analysis.values import (
    CONSTANT,
    FLOAT,
    NOT_CONSTANT,
    NOTHING,
    OPAQUE,
    ROUNDED,
    UNKNOWN,
    Local,
    Part,
    Reference,
    Size,
    Sources,
    Value,
    is_random,
    join,
    locals_of,
    parts,
)
from strads.bodies.compile_errors import compile_error
from strads.dds.user_functions import ById, is_helper
from strads.rng.numbers import RandomNumbers

_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.is_)
_UNSAFE = {
    "flat": "`.flat` is not checked for indices out of range: use `.ravel()`",
    "ctypes": "addresses of memory are not for loop bodies",
    "data": "addresses of memory are not for loop bodies",
}
_GLOBAL_DRAW = (
    "random numbers of NumPy or Python would differ with the number of threads: pass rng = strads.random(seed) to "
    "the loop, and call rng.random(), rng.integers(n), rng.normal() or rng.choice(table)"
)
_NOT_AN_ARGUMENT = (
    "random numbers are an argument of the loop, not a global or a variable of an outer function: with "
    "rng = strads.random(seed), pass rng to the loop, and to the functions that draw"
)
_NEAR = (
    "rng.near(table) draws a row of a dvector of numbers, rows or records that is an argument of the loop; "
    "rng.near(table, weights) draws it with weights made by strads.weights, which are another argument"
)
_UNSAFE_FUNCTIONS = ("as_strided", "carray", "farray", "address_as_void_pointer")


class Expressions:
    """Evaluates expressions over abstract values.

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

    def index_of(self, node: Any) -> Value:
        """Return the index of a `getitem` or `setitem`."""
        if isinstance(node, ir.StaticSetItem) or getattr(node, "op", "") == "static_getitem":
            return self._constant(node.index)
        return self.variable(node.index)

    def value_of(self, node: Any, name: str) -> Value:
        """Return the value of the right-hand side of an assignment to a variable."""
        if isinstance(node, ir.Var):
            return self.variable(node)
        if isinstance(node, ir.Global | ir.FreeVar) and isinstance(node.value, RandomNumbers):
            raise compile_error(node.loc.filename, node.loc.line, _NOT_AN_ARGUMENT)
        if isinstance(node, ir.Const | ir.Global | ir.FreeVar):
            return self._constant(node.value)
        if isinstance(node, ir.Arg):
            return self._arguments[node.index]
        if not isinstance(node, ir.Expr):
            return Value(frozenset({UNKNOWN}), frozenset({OPAQUE}))
        rule = _RULES.get(node.op)
        value: Value = self._opaque(list(map(self.variable, node.list_vars()))) if rule is None else rule(self, node)
        return value if value.number is not None else self.renamed(value, name)

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

    # -- constants -----------------------------------------------------------------------------------------

    def _constant(self, value: Any) -> Value:
        number = self._numbers.of(("constant", type(value), _identity(value)))
        if isinstance(value, tuple) and type(value) is tuple:
            return Value(items=tuple(map(self._constant, value)), constant=value, number=number)
        if isinstance(value, slice):
            return Value(is_slice=True, number=number)
        if isinstance(value, np.ndarray):  # compiled into the code: immutable
            floating = frozenset({FLOAT}) if value.dtype.kind == "f" else NOTHING
            return Value(frozenset({Local(CONSTANT, value.ndim, True)}), floating, number=number)
        sources = frozenset({FLOAT}) if isinstance(value, float | np.floating) else NOTHING
        is_size = isinstance(value, int) and not isinstance(value, bool)
        return Value(sources=sources, constant=value, number=number, size=("constant", value) if is_size else None)

    # -- operators -----------------------------------------------------------------------------------------

    def _operation(self, function: Any, operands: list[Value], key: Hashable) -> Value:
        """Apply an operator or an elementwise function: a number, or a new array."""
        sources = self._all(operands)
        if function is operator.truediv or (FLOAT in sources and not _is_exact(function)):
            sources |= {FLOAT, ROUNDED}
        for value in operands:
            self._memory.escape(value)
        depths = [self._memory.depth(value) for value in operands]
        if all(depth == 0 for depth in depths):
            return Value(sources=sources, number=self._number(key, of=operands))
        depth = None if None in depths else max(depth or 0 for depth in depths)
        length = NOTHING.union(*(self._memory.length(value) for value in operands if value.is_memory))
        arrays = [value for value in operands if value.is_memory]
        if length or (len(arrays) > 1 and not self._alike(arrays)):
            self._memory.decide(Value(), length)  # mismatched lengths raise
        is_array = all(local.is_array for value in operands for local in locals_of(value))
        contents = Value(sources=sources)
        if not is_array:  # lists are concatenated
            references = frozenset().union(*(value.references for value in operands))
            contents = Value(references, sources)
        made = self._memory.new(depth, is_array=is_array, contents=contents, length=length)
        return made.with_sources(NOTHING)

    def _binop(self, node: Any) -> Value:
        left, right = self.variable(node.lhs), self.variable(node.rhs)
        if node.fn is operator.contains and any(part.keyed and part.whole for part in parts(left)):
            number = self._number("contains", of=[left, right])
            return Value(sources=self._memory.sources(right), number=number)  # no loop changes the set of keys
        if node.fn is operator.contains:
            return Value(sources=self._all([left, right]))
        if left.items is not None or right.items is not None:
            return self._tuples(node.fn, left, right)
        return self._operation(node.fn, [left, right], ("operator", node.fn))

    def _tuples(self, function: Any, left: Value, right: Value) -> Value:
        if function is operator.add and left.items is not None and right.items is not None:
            return Value(items=left.items + right.items, sources=left.sources | right.sources)
        if function in _COMPARISONS or function is operator.ne:
            return Value(sources=self._all([left, right]))
        return self._opaque([left, right])

    def _unary(self, node: Any) -> Value:
        return self._operation(node.fn, [self.variable(node.value)], ("operator", node.fn))

    def _inplace_binop(self, node: Any) -> Value:
        left, right = self.variable(node.lhs), self.variable(node.rhs)
        if left.items is not None:
            return self._tuples(node.immutable_fn, left, right)
        if not left.is_memory:
            return self._operation(node.immutable_fn, [left, right], ("operator", node.immutable_fn))
        sources = self._all([left, right])
        if FLOAT in sources:
            sources |= {ROUNDED}
        length = self._memory.length(left) | (self._memory.length(right) if right.is_memory else NOTHING)
        self._memory.decide(Value(), length)
        self._memory.overwrite(left, sources)
        if any(not local.is_array for local in locals_of(left)):  # list += list
            self._memory.put(left, self._memory.elements(right), resizes=True)
        return left

    # -- containers ----------------------------------------------------------------------------------------

    def _build_tuple(self, node: Any) -> Value:
        items = [self.variable(item) for item in node.items]
        numbers = [item.number for item in items]
        number = None if None in numbers else self._numbers.of(("tuple", *numbers))
        return Value(items=tuple(items), number=number)

    def _build_list(self, node: Any) -> Value:
        made = self._memory.new(1, is_array=False)
        for variable in node.list_vars():
            self._memory.put(made, self.variable(variable), resizes=False)
        return made

    def _build_map(self, node: Any) -> Value:
        made = self._memory.new(1, is_array=False)
        for pair in node.items:
            for variable in pair:
                self._memory.put(made, self.variable(variable), resizes=True)
        return made

    def _getitem(self, node: Any) -> Value:
        container, index = self.variable(node.value), self.index_of(node)
        if isinstance(getattr(node, "index", None), str):
            return self._field(container, node.index)
        items, place = container.items, index.constant
        if items is not None and isinstance(place, int) and -len(items) <= place < len(items):
            return items[place].with_sources(container.sources)
        if container.is_shape and index.is_slice:
            return Value(sources=container.sources | index.sources, is_shape=True)
        if container.is_shape:
            size = container.size
            if size is not None and (not isinstance(place, int) or place < 0):
                size = None
            elif size is not None and place > 0:
                size = ("axis", size[1], size[2] + place) if size[0] == "axis" else None
            return Value(sources=container.sources, number=self._number("item", of=[container, index]), size=size)
        number = self._number("item", of=[container, index])
        found = self._memory.read(container, index)
        return replace(found, number=number)

    def _iterate(self, node: Any) -> Value:
        return self.variable(node.value)

    def _getiter(self, node: Any) -> Value:
        iterated = self.variable(node.value)
        self._refuse_map(iterated, node, "iterate over")
        if iterated.elements is not None:
            elements = self._memory.elements(iterated)
            return replace(iterated, elements=elements, sources=iterated.sources | elements.sources, iterator=None)
        return iterated

    def _pair_first(self, node: Any) -> Value:
        return self._memory.elements(self.variable(node.value))

    def _pair_second(self, node: Any) -> Value:
        iterated = self.variable(node.value)
        if iterated.elements is None:
            return Value(sources=self._memory.length(iterated))
        return Value(sources=iterated.sources | iterated.length)

    # -- attributes ----------------------------------------------------------------------------------------

    def _kind(self, part: Part) -> TableKind:
        return self._memory.kinds[part.argument]

    def _field(self, owner: Value, name: str) -> Value:
        """Return a field of records."""
        found = [part for part in parts(owner) if part.field is None and self._kind(part).field(name) is not None]
        if not found or len(found) < len(owner.references):
            return self._opaque([owner])
        result: Value | None = None
        for part in found:
            field = self._kind(part).field(name)
            assert field is not None
            depth = None if part.depth is None else part.depth + field.depth
            chosen = replace(part, depth=depth, field=name)
            number = self._number("field", name, of=[owner])
            if depth == 0:
                floating = frozenset({FLOAT}) if field.floating else NOTHING
                value = Value(sources=owner.sources | {part.argument} | floating, number=number)
            else:
                value = Value(frozenset({chosen}), owner.sources, owner.length, number=number)
            if part.whole:
                self._memory.effects.escapes.add(part.argument)
            result = replace(join(result, value), number=number)
        assert result is not None
        return result

    def _getattr(self, node: Any) -> Value:
        owner, name = self.variable(node.value), node.attr
        if owner.constant is not NOT_CONSTANT:
            member = getattr(owner.constant, name, NOT_CONSTANT)
            return self._opaque([owner]) if member is NOT_CONSTANT else self._constant(member)
        self._refuse_map(owner, node, f"use .{name} of")
        if name in _UNSAFE and owner.is_memory and not any(self._kind(part).field(name) for part in parts(owner)):
            raise compile_error(node.loc.filename, node.loc.line, _UNSAFE[name])
        if any(self._kind(part).field(name) for part in parts(owner)):
            return self._field(owner, name)
        if name in calls.SHAPES:
            number = self._number("attribute", name, of=[owner])
            sources = self._memory.length(owner)
            size = self._memory.size(owner) if name == "shape" else None
            return Value(sources=sources, is_shape=name in ("shape", "strides"), number=number, size=size)
        if name in calls.VIEWING_ATTRIBUTES:
            self._memory.escape(owner)
            seen = frozenset(replace(reference, full=False) for reference in owner.references)
            return replace(owner, number=None, references=seen)
        return Value(sources=self._memory.sources(owner), method=(name, owner))

    def set_attribute(self, statement: Any) -> None:
        """Process `record.field = value`."""
        target, value = self.variable(statement.target), self.variable(statement.value)
        self._memory.write(target, Value(is_slice=True), value)
        if locals_of(target):
            self._memory.doubt([target])

    def _refuse_map(self, value: Value, node: Any, what: str) -> None:
        if any(part.keyed and part.whole for part in parts(value)):
            reason = f"a loop body cannot {what} a map; it can use m[key], m[key] = value, key in m, and len(m)"
            raise compile_error(node.loc.filename, node.loc.line, reason)

    # -- calls ---------------------------------------------------------------------------------------------

    def _call(self, node: Any) -> Value:
        callee = self.variable(node.func)
        arguments = [self.variable(argument) for argument in node.args]
        keywords = {name: self.variable(variable) for name, variable in node.kws}
        everything = arguments + list(keywords.values())
        if node.vararg is not None:
            return self._opaque([callee, *everything, self.variable(node.vararg)])
        if callee.method is not None:
            return self._method(*callee.method, arguments, keywords, node)
        if _draws_from_a_global(callee.constant):
            raise compile_error(node.loc.filename, node.loc.line, _GLOBAL_DRAW)
        if getattr(callee.constant, "__name__", "") in _UNSAFE_FUNCTIONS:
            reason = f"{callee.constant.__name__} makes arrays of any memory: loop bodies cannot use it"
            raise compile_error(node.loc.filename, node.loc.line, reason)
        effect = calls.effect_of(callee.constant)
        if callee.constant is NOT_CONSTANT or effect is None:
            if is_helper(callee.constant):
                _refuse_draws(callee.constant)
            if callee.constant is NOT_CONSTANT or is_helper(callee.constant):
                self._memory.touch_anything(everything)
            return self._opaque([callee, *everything])
        return self._known(callee.constant, effect, arguments, keywords)

    def _known(self, function: Any, effect: Effect, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        memory = self._memory
        everything = arguments + list(keywords.values())
        if effect is Effect.LENGTH:
            number = self._number("length", of=arguments)
            items = arguments[0].items if arguments else None
            sources = memory.length(arguments[0]) if arguments else NOTHING
            size = memory.size(arguments[0]) if arguments else None
            return Value(sources=arguments[0].sources if items is not None else sources, number=number, size=size)
        if effect is Effect.SLICE:
            return Value(sources=self._all(arguments), is_slice=True, segment=memory.segment(arguments))
        if effect is Effect.RANGE:
            sources = self._all(arguments)
            if len(arguments) == 3 and arguments[2].constant in (NOT_CONSTANT, 0):
                memory.decide(arguments[2])  # a step of 0 raises
            element = Value(sources=sources, below=_stop_of(arguments), segment=memory.segment(arguments))
            return Value(sources=sources, elements=element)
        if effect is Effect.ENUMERATE or effect is Effect.ZIP:
            elements = tuple(memory.elements(value) for value in arguments)
            sources = NOTHING.union(*(memory.length(value) | value.sources for value in arguments))
            if effect is Effect.ENUMERATE:
                below = memory.size(arguments[0]) if len(everything) == 1 else None
                elements = (Value(sources=sources, below=below), *elements[:1])
            return Value(sources=sources, elements=Value(items=elements), iterator=memory.place[0])
        if effect is Effect.ITERATE:
            length = NOTHING.union(*(memory.length(value) | value.sources for value in arguments))
            found = memory.elements(arguments[0]) if arguments else None
            return Value(sources=length, elements=found, iterator=memory.place[0])
        if effect is Effect.COLLECT:
            made = memory.new(1, is_array=False)
            for value in arguments:
                memory.put(made, memory.elements(value).with_sources(memory.length(value)), resizes=True)
            return made
        return self._computed(function, effect, arguments, keywords, everything)

    def _computed(
        self, function: Any, effect: Effect, arguments: list[Value], keywords: dict[str, Value], everything: list[Value]
    ) -> Value:
        """Return the value of a function that computes something from all its arguments."""
        memory = self._memory
        for value in everything:
            memory.escape(value)
        target = self._target(function, arguments, keywords)
        sources = self._all([value for value in everything if value is not target])
        if FLOAT in sources and not calls.keeps_value(function):
            sources |= {ROUNDED}
        length = NOTHING.union(*(memory.length(value) for value in everything if value.is_memory))
        refuses = calls.refuses_values(function)
        if refuses or length or self._may_not_fit(function, effect, everything):
            memory.decide(Value(sources=sources if refuses else length))
        if target is not None:
            memory.overwrite(target, sources)
            return replace(target, number=None)
        if effect is Effect.NOTHING:
            return Value()
        if effect is Effect.VIEW:
            return self._view(arguments, everything)
        if effect is Effect.ALLOCATE or effect is Effect.ALLOCATE_LIKE:
            return self._allocated(function, effect, arguments, sources)
        if effect is Effect.ELEMENTWISE and not keywords:
            return self._operation(function, arguments, ("call", _identity(function)))
        if effect is Effect.REDUCE and self._holds_memory(arguments):  # `max` of a list of rows
            return self._opaque(everything)
        depths = [memory.depth(value) for value in arguments]
        if self._is_number(effect, depths, arguments, keywords):
            return Value(sources=sources, number=self._number("call", _identity(function), of=everything))
        return memory.new(None, is_array=True, contents=Value(sources=sources), length=sources)

    def _may_not_fit(self, function: Any, effect: Effect, values: list[Value]) -> bool:
        """Whether a function may raise because of its arguments' shapes; never if these are alike, with one axis."""
        if effect in (Effect.SCALAR, Effect.NOTHING, Effect.ALLOCATE, Effect.ALLOCATE_LIKE):
            return False
        arrays = [value for value in values if value.is_memory]
        if effect is Effect.ELEMENTWISE or (effect is Effect.REDUCE and not calls.needs_values(function)):
            return len(arrays) > 1 and not self._alike(arrays)
        if effect is Effect.PRODUCT:
            return not self._alike(arrays)
        return True

    def _alike(self, arrays: list[Value]) -> bool:
        sizes = {self._memory.size(value) if self._memory.depth(value) == 1 else None for value in arrays}
        return len(sizes) == 1 and None not in sizes

    def _is_number(
        self, effect: Effect, depths: list[int | None], arguments: list[Value], keywords: dict[str, Value]
    ) -> bool:
        """Whether a function returns a number, given the axes of its arguments."""
        if effect is Effect.SCALAR:
            return True
        if effect is Effect.PRODUCT:
            return depths == [1, 1]
        if effect is Effect.REDUCE:
            return not keywords and (len(arguments) == 1 or all(depth == 0 for depth in depths))
        return False

    def _holds_memory(self, values: list[Value]) -> bool:
        """Whether the items of a list or tuple may themselves be memory."""
        lists = [v for v in values if v.items or any(not local.is_array for local in locals_of(v))]
        return any(self._memory.elements(value).is_memory for value in lists)

    def _target(self, function: Any, arguments: list[Value], keywords: dict[str, Value]) -> Value | None:
        position = calls.written_position(function, len(arguments), frozenset(keywords))
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

    def _allocated(self, function: Any, effect: Effect, arguments: list[Value], sources: Sources) -> Value:
        memory = self._memory
        if effect is Effect.ALLOCATE_LIKE:
            depth = memory.depth(arguments[0]) if arguments else None
            length = memory.length(arguments[0]) if arguments else NOTHING
            inside = Value(sources=self._all(arguments[1:]))
            size = memory.size(arguments[0]) if len(arguments) == 1 and depth == 1 else None
            return memory.new(depth, is_array=True, contents=inside, length=length, size=size)
        memory.decide(Value(sources=sources))
        depth, size = None, None
        if function in (np.arange, np.linspace):
            depth = 1
        elif function in (np.eye, np.identity, np.tri):
            depth = 2
        elif arguments and arguments[0].items is not None:
            depth = len(arguments[0].items)
        elif arguments and not arguments[0].is_shape and not arguments[0].is_memory:
            depth, size = 1, arguments[0].size
        return memory.new(depth, is_array=True, contents=Value(sources=sources), length=sources, size=size)

    def _method(self, name: str, owner: Value, arguments: list[Value], keywords: dict[str, Value], node: Any) -> Value:
        memory = self._memory
        everything = arguments + list(keywords.values())
        if any(is_random(local) for local in locals_of(owner)):
            if name == "near":
                return self._draw_near(owner, arguments, keywords, node)
            return self._draw(name, owner, arguments, keywords)
        if not owner.is_memory:
            return self._scalar_method(name, owner, everything)
        if UNKNOWN in owner.references:
            return self._opaque([owner, *everything])
        is_array = bool(parts(owner)) or any(local.is_array for local in locals_of(owner))
        sources = self._all([owner, *everything])
        if FLOAT in sources:
            sources |= {ROUNDED}
        memory.escape(owner)
        if is_array and name in calls.WRITING_METHODS:
            memory.overwrite(owner, sources)
            return Value()
        if is_array and name in calls.VIEWING_METHODS:
            memory.decide(Value(sources=self._all(everything)), memory.length(owner))
            return self._view([owner, *arguments], [owner])
        if is_array and name in calls.READING_METHODS:
            if name in ("dot", "take", "repeat", "min", "max", "argmin", "argmax"):
                memory.decide(Value(sources=self._all(everything)), memory.length(owner))
            if name in calls.SCALAR_METHODS and not everything:
                return Value(sources=sources)
            if name in ("copy", "astype"):
                inside = Value(sources=memory.sources(owner))
                return memory.new(memory.depth(owner), is_array=True, contents=inside, length=memory.length(owner))
            return memory.new(None, is_array=True, contents=Value(sources=sources), length=sources)
        if not is_array and name in calls.CHANGING_METHODS:
            return self._change(name, owner, everything, sources)
        if not is_array and name in calls.LOOKING_METHODS:
            return self._look(name, owner, everything, sources)
        return self._opaque([owner, *everything])

    def _draw(self, name: str, owner: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Process a method of random numbers."""
        memory, operands = self._memory, arguments + list(keywords.values())
        if keywords or not all(isinstance(r, Local) and is_random(r) for r in owner.references):
            return self._opaque([owner, *operands])
        for value in operands:
            memory.escape(value)
        sources = memory.draw(owner) | self._all(operands)
        if name == "random":
            return Value(sources=sources | {FLOAT})
        if name == "normal":
            return Value(sources=sources | {FLOAT, ROUNDED})
        if name == "integers" and arguments:
            memory.decide(Value(sources=self._all(operands)))  # of an empty range it raises
            return Value(sources=sources - {FLOAT, ROUNDED}, below=_stop_of(arguments))
        if name == "choice" and len(arguments) == 1:
            memory.decide(Value(), memory.length(arguments[0]))
            return Value(sources=sources - {FLOAT, ROUNDED}, below=memory.size(arguments[0]))
        return self._opaque([owner, *operands])

    def _draw_near(self, owner: Value, arguments: list[Value], keywords: dict[str, Value], node: Any) -> Value:
        """Process `rng.near(table, weights)`: which row it is, is known only when a job runs."""
        memory, operands = self._memory, arguments + list(keywords.values())
        tables = [_table_of(value) for value in operands]
        if not arguments or len(operands) > 2 or set(keywords) - {"weights"} or None in tables:
            raise compile_error(node.loc.filename, node.loc.line, _NEAR)
        table, weights = tables[0], tables[1] if len(tables) > 1 else None
        assert table is not None
        if memory.kinds[table].keyed or memory.kinds[table].ragged:
            raise compile_error(node.loc.filename, node.loc.line, _NEAR)
        memory.effects.near.add((table, weights))
        for value in operands:
            memory.decide(Value(), memory.length(value))  # of an empty table it raises
        for value in operands[1:]:
            memory.escape(value)
        sources = memory.draw(owner) | {OPAQUE}
        return Value(sources=sources, below=memory.size(arguments[0]), near=table)

    def _change(self, name: str, owner: Value, everything: list[Value], sources: Sources) -> Value:
        """Process a method that modifies a list, set or dictionary."""
        memory = self._memory
        memory.decide(Value(sources=sources))  # `pop` of an empty list raises, and so does `remove`
        for value in everything:
            inside = memory.elements(value) if name in ("extend", "update") else value
            memory.put(owner, inside.with_sources(memory.sources(value)), resizes=True)
        memory.put(owner, Value(), resizes=True)
        if name in ("pop", "popitem", "setdefault"):
            return replace(memory.elements(owner), number=None).with_sources(sources)
        return Value()

    def _look(self, name: str, owner: Value, everything: list[Value], sources: Sources) -> Value:
        memory = self._memory
        memory.decide(Value(sources=sources))
        if name in ("count", "index", "issubset", "issuperset"):
            return Value(sources=sources)
        if name == "get":
            found = memory.elements(owner).with_sources(sources)
            return replace(found, number=None)
        made = memory.new(1, is_array=False, length=sources)
        memory.put(made, memory.elements(owner).with_sources(sources), resizes=False)
        if name == "items":
            pair = memory.elements(owner).with_sources(sources)
            return Value(sources=sources, elements=Value(items=(pair, pair)))
        return made

    def _scalar_method(self, name: str, owner: Value, everything: list[Value]) -> Value:
        if name == "add":  # of an accumulator
            return Value()
        if owner.constant is not NOT_CONSTANT or owner.items is not None:
            return self._opaque([owner, *everything])
        return Value(sources=self._all([owner, *everything]) | {OPAQUE})


_RULES: dict[str, Any] = {
    "binop": Expressions._binop,
    "inplace_binop": Expressions._inplace_binop,
    "unary": Expressions._unary,
    "build_tuple": Expressions._build_tuple,
    "build_list": Expressions._build_list,
    "build_set": Expressions._build_list,
    "build_map": Expressions._build_map,
    "getitem": Expressions._getitem,
    "static_getitem": Expressions._getitem,
    "getiter": Expressions._getiter,
    "iternext": Expressions._iterate,
    "pair_first": Expressions._pair_first,
    "pair_second": Expressions._pair_second,
    "exhaust_iter": Expressions._iterate,
    "cast": Expressions._iterate,
    "getattr": Expressions._getattr,
    "call": Expressions._call,
}


def _table_of(value: Value) -> int | None:
    """Return the table that a value is, as a whole; None if it may be anything else."""
    found = parts(value)
    return found[0].argument if len(value.references) == 1 and found and found[0].whole else None


def _draws_from_a_global(function: Any) -> bool:
    """Whether a function draws from a generator of NumPy's or Python's that all threads share."""
    owner = getattr(function, "__self__", None)
    return isinstance(owner, np.random.RandomState | np.random.Generator | random.Random)


def _refuse_draws(helper: Any) -> None:
    """Refuse a function that is not inlined if it draws random numbers that are no argument of the loop."""
    for value, loc in constants_of(helper):
        if isinstance(value, RandomNumbers) or _draws_from_a_global(value):
            raise compile_error(loc.filename, loc.line, _GLOBAL_DRAW if callable(value) else _NOT_AN_ARGUMENT)


def _stop_of(arguments: list[Value]) -> Size | None:
    """Return the upper bound of the numbers of a range, if they are not negative."""
    if len(arguments) == 1:
        return arguments[0].size
    start = arguments[0].constant if arguments else None
    rises = len(arguments) == 2 or (type(arguments[2].constant) is int and arguments[2].constant > 0)
    return arguments[1].size if type(start) is int and start >= 0 and rises else None


def _of_any_shape(reference: Reference) -> Reference:
    """Return a view of an array with unknown shape: a table that is no longer read by row may be written anywhere."""
    if isinstance(reference, Part):
        return replace(reference, depth=None, whole=False)
    return replace(reference, depth=None)


def _is_exact(function: Any) -> bool:
    return function in _COMPARISONS or function is operator.ne or calls.keeps_value(function)


def _identity(value: Any) -> Hashable:
    """Return a key that is equal for equal constants; by identity for types that may define their own equality."""
    if isinstance(value, bool | int | str | None.__class__) or value is Ellipsis:
        return value
    if isinstance(value, float):
        return value.hex()
    if type(value) is tuple:
        return tuple((type(item), _identity(item)) for item in value)
    return ById(value)
