"""The rules that compute the abstract value of an expression from its operands; without a rule it is opaque."""

import operator
import random
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import ir

from strads.bodies.analysis import known_functions
from strads.bodies.analysis.evaluation import COMPARISONS
from strads.bodies.analysis.inlining import constants_of
from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.memory import FIELD
from strads.bodies.analysis.method_calls import MethodCalls
from strads.bodies.analysis.values import (
    FLOAT,
    NOT_CONSTANT,
    NOTHING,
    OPAQUE,
    ROUNDED,
    UNKNOWN,
    Part,
    Value,
    content,
    join,
    locals_of,
    parts,
)
from strads.bodies.compile_errors import compile_error
from strads.rng.numbers import RandomNumbers
from strads.user_code.functions import is_helper

_UNSAFE = {
    "flat": "`.flat` is not checked for indices out of range: use `.ravel()`",
    "ctypes": "loop bodies cannot use memory addresses",
    "data": "loop bodies cannot use memory addresses",
}
_GLOBAL_DRAW = (
    "random numbers of NumPy or Python would differ with the number of threads: pass rng = strads.random(seed) to "
    "the loop, and call rng.random(), rng.integers(n), rng.normal() or rng.choice(table)"
)
_NOT_AN_ARGUMENT = (
    "random numbers are an argument of the loop, not a global or a variable of an outer function: with "
    "rng = strads.random(seed), pass rng to the loop, and to the functions that draw"
)
_UNSAFE_FUNCTIONS = ("as_strided", "carray", "farray", "address_as_void_pointer")


class Expressions(MethodCalls):
    """Evaluates the right-hand sides of assignments over abstract values; see `Evaluation`."""

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
        if function in COMPARISONS:
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
        self._memory.may_fail(Value(), length)
        self._memory.overwrite(left, sources)
        if any(not local.is_array for local in locals_of(left)):  # list += list
            self._memory.put(left, self._memory.elements(right), resizes=True)
        return left

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
            sizes = container.sizes
            size = sizes[place] if isinstance(place, int) and -len(sizes) <= place < len(sizes) else None
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
            depth = None if part.depth is None else part.depth + len(field.shape)
            chosen = replace(part, depth=depth, field=name)
            number = self._number("field", name, of=[owner])
            if depth == 0:
                value = Value(sources=owner.sources | self._memory.sources_of(chosen), number=number)
                if not part.keyed:
                    above = "above", part.argument, name
                    value = replace(value, below=above, magnitude=content(part.argument, name))
            else:
                value = Value(frozenset({chosen}), owner.sources, owner.length, number=number)
            if part.whole:
                self._memory.effects.escapes.add(part.argument)
            result = replace(join(result, value), number=number)
        assert result is not None
        return result

    def _getattr(self, node: Any) -> Value:
        owner, name = self.variable(node.value), node.attr
        if owner.constant is np.random or owner.constant is random:
            raise compile_error(node.loc.filename, node.loc.line, _GLOBAL_DRAW)
        if owner.constant is not NOT_CONSTANT:
            member = getattr(owner.constant, name, NOT_CONSTANT)
            return self._opaque([owner]) if member is NOT_CONSTANT else self._constant(member)
        self._refuse_map(owner, node, f"use .{name} of")
        if name in _UNSAFE and owner.is_memory and not any(self._kind(part).field(name) for part in parts(owner)):
            raise compile_error(node.loc.filename, node.loc.line, _UNSAFE[name])
        if any(self._kind(part).field(name) for part in parts(owner)):
            return self._field(owner, name)
        if name in known_functions.SHAPES:
            number = self._number("attribute", name, of=[owner])
            sources = self._memory.length(owner)
            sizes = self._memory.sizes(owner) if name == "shape" else ()
            return Value(sources=sources, is_shape=name in ("shape", "strides"), number=number, sizes=sizes)
        if name in known_functions.VIEWING_ATTRIBUTES:
            self._memory.escape(owner)
            seen = frozenset(replace(reference, full=False) for reference in owner.references)
            return replace(owner, number=None, references=seen)
        return Value(sources=self._memory.sources(owner), method=(name, owner))

    def set_attribute(self, statement: Any) -> None:
        """Process `record.field = value`."""
        target, value = self.variable(statement.target), self.variable(statement.value)
        self._memory.write(target, FIELD, value, statement.attr)
        if locals_of(target):
            self._memory.doubt([target])

    def _refuse_map(self, value: Value, node: Any, what: str) -> None:
        if any(part.keyed and part.whole for part in parts(value)):
            reason = f"a loop body cannot {what} a map; it can use m[key], m[key] = value, key in m, and len(m)"
            raise compile_error(node.loc.filename, node.loc.line, reason)

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
            reason = f"{callee.constant.__name__} turns any memory address into an array: loop bodies cannot use it"
            raise compile_error(node.loc.filename, node.loc.line, reason)
        kind = known_functions.kind_of(callee.constant)
        if callee.constant is NOT_CONSTANT or kind is None:
            if is_helper(callee.constant):
                _refuse_draws(callee.constant)
            if callee.constant is NOT_CONSTANT or is_helper(callee.constant):
                self._memory.touch_anything(everything)
            return self._opaque([callee, *everything])
        return self._known(callee.constant, kind, arguments, keywords)


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


def _draws_from_a_global(function: Any) -> bool:
    """Whether a function draws from a generator of NumPy's or Python's that all threads share, or makes one."""
    owner, module = getattr(function, "__self__", None), str(getattr(function, "__module__", ""))
    is_shared = isinstance(owner, np.random.RandomState | np.random.Generator | random.Random)
    return is_shared or (callable(function) and (module == "random" or module.startswith("numpy.random")))


def _refuse_draws(helper: Any) -> None:
    """Refuse a function that is not inlined if it draws random numbers that are no argument of the loop."""
    for value, loc in constants_of(helper):
        if isinstance(value, RandomNumbers) or _draws_from_a_global(value):
            raise compile_error(loc.filename, loc.line, _GLOBAL_DRAW if callable(value) else _NOT_AN_ARGUMENT)
