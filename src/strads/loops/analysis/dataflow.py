"""Data flow through a loop body's Numba IR: every access to a table, and what decides its index.

The analysis runs on bytecode, so it needs no source text. It is flow-insensitive within a function (a variable
has one abstract value) and follows calls to other Python functions with the values of the actual arguments.
"""

import operator
import types as python_types
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import run_frontend
from numba.core.unsafe.eh import mark_try_block

from strads.loops.analysis import calls
from strads.loops.analysis.effects import LOCAL, Access, Condition, Effects
from strads.loops.analysis.kinds import TableKind
from strads.loops.analysis.structure import controlling_branches, count_assignments
from strads.loops.analysis.values import (
    FLOAT,
    NOT_CONSTANT,
    OPAQUE,
    ROUNDED,
    Alias,
    Value,
    all_aliases,
    all_sources,
    derived,
    join,
)
from strads.loops.compile_errors import compile_error

_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.is_)
_SHAPE_ATTRIBUTES = frozenset({"shape", "size", "ndim", "dtype", "itemsize", "nbytes", "strides"})
_LOCAL_ALIAS = Alias(LOCAL, 1, whole=False)


class FunctionAnalysis:
    """Analyses one call of one function."""

    def __init__(
        self,
        function: Any,
        arguments: Mapping[int, Value],
        control: frozenset[int],
        conditions: frozenset[Condition] = frozenset(),
        caller: "FunctionAnalysis | None" = None,
    ):
        self.ir = run_frontend(function)
        self.arguments = arguments
        self.outer_control = control
        self.outer_conditions = conditions
        self.function = function
        self.caller = caller
        # The call sites that lead here.
        self.call: tuple[object, ...] = () if caller is None else (*caller.call, caller.place)
        # Calls analysed so far, for the next pass of the caller.
        self.called: dict[Hashable, tuple[Value, Effects]] = {} if caller is None else caller.called
        # What local arrays and lists of the whole body hold: which of them a variable means is not followed.
        self.heap: set[int] = set() if caller is None else caller.heap
        self.kinds: Sequence[TableKind | None] = () if caller is None else caller.kinds
        self.effects = Effects.empty()
        self.values: dict[str, Value] = {}
        self.returned: Value | None = None
        self.cfg = compute_cfg_from_blocks(self.ir.blocks)
        self.branches = controlling_branches(self.cfg)
        self.control: dict[int, frozenset[int]] = dict.fromkeys(self.ir.blocks, control)
        self.assignments = count_assignments(self.ir)
        self.place: tuple[int, int] = (0, 0)  # block and statement at work
        self.line = 0

    def run(self) -> Value:
        """Iterate to the fixed point; returns the function's value."""
        while True:
            before = (dict(self.values), self.returned, dict(self.control), frozenset(self.heap))
            self.effects = Effects.empty()  # only the last pass sees the final values
            for label, block in self.ir.blocks.items():
                for number, statement in enumerate(block.body):
                    self.place = (label, number)
                    self.line = statement.loc.line
                    self._statement(statement, label)
            self._update_control()
            if before == (self.values, self.returned, self.control, self.heap):
                break
        self._collect_loop_sources()
        return self.returned or Value()

    # -- control -------------------------------------------------------------------------------------------

    def _condition(self, label: int) -> frozenset[int]:
        last = self.ir.blocks[label].body[-1]
        if not isinstance(last, ir.Branch):
            return frozenset()
        return all_sources(self._value(last.cond))

    def _update_control(self) -> None:
        for label in self.ir.blocks:
            sources = self.outer_control
            for branch, _ in self.branches[label]:
                sources |= self._condition(branch) | self.control[branch]
            self.control[label] = sources

    def _conditions(self) -> frozenset[Condition]:
        """Every branch that must be taken for the statement at work to run."""
        taken: set[tuple[int, int]] = set()
        blocks = [self.place[0]]
        while blocks:
            new = self.branches[blocks.pop()] - taken
            taken |= new
            blocks += [branch for branch, _ in new]
        return self.outer_conditions | {(self.call, branch, target) for branch, target in taken}

    def _collect_loop_sources(self) -> None:
        for loop in self.cfg.loops().values():
            for label in loop.body:
                leaves = any(target not in loop.body for target, _ in self.cfg.successors(label))
                if leaves:
                    self.effects.loop_sources |= self._condition(label)

    # -- statements ----------------------------------------------------------------------------------------

    def _value(self, variable: Any) -> Value:
        return self.values.get(variable.name, Value())

    def _assign(self, name: str, value: Value) -> None:
        self.values[name] = join(self.values.get(name), value)

    def _statement(self, statement: Any, label: int) -> None:
        control = self.control[label]
        if isinstance(statement, ir.Assign):
            value = self._expression(statement.value, control)
            if control and self.assignments[statement.target.name] > 1:
                value = value.with_sources(control)  # which assignment holds depends on the branch taken
            self._assign(statement.target.name, value)
        elif isinstance(statement, ir.SetItem | ir.StaticSetItem):
            index = self._index_of(statement)
            self._store(statement.target, index, self._value(statement.value), control)
        elif isinstance(statement, ir.SetAttr):
            self._store(statement.target, Value(), self._value(statement.value), control)
        elif isinstance(statement, ir.Return):
            self.returned = join(self.returned, self._value(statement.value))

    def _index_of(self, node: Any) -> Value:
        if isinstance(node, ir.StaticSetItem) or getattr(node, "op", "") == "static_getitem":
            return _constant_index(node.index)
        return self._value(node.index)

    def _store(self, target: Any, index: Value, value: Value, control: frozenset[int]) -> None:
        container = self._value(target)
        aliases = all_aliases(container)
        for alias in aliases:
            self._write(alias.argument)
            self._access(alias, container, index, control, write=True)
        if not aliases:
            self._access(_LOCAL_ALIAS, container, index, control, write=True)
            self.heap |= all_sources(value) | all_sources(index) | control

    def _write(self, argument: int) -> None:
        self.effects.writes.setdefault(argument, self.line)

    def _access(self, alias: Alias, container: Value, index: Value, control: frozenset[int], *, write: bool) -> None:
        known = container.expression is not None and index.expression is not None
        self.effects.accesses.add(
            Access(
                alias.argument,
                alias.whole,
                index.is_index and not alias.keyed,
                write,
                all_sources(index),
                control,
                self._conditions(),
                (container.expression, index.expression) if known else None,
                self.line,
            )
        )

    # -- expressions ---------------------------------------------------------------------------------------

    def _expression(self, node: Any, control: frozenset[int]) -> Value:
        if isinstance(node, ir.Arg):
            return self.arguments.get(node.index, Value())
        if isinstance(node, ir.Global | ir.FreeVar) and node.value is mark_try_block:
            reason = "try and with are not supported: an index error inside could go unnoticed"
            raise compile_error(node.loc.filename, node.loc.line, reason)
        if isinstance(node, ir.Const | ir.Global | ir.FreeVar):
            floating = frozenset({FLOAT}) if isinstance(node.value, float | np.floating) else frozenset()
            return Value(sources=floating, constant=node.value, expression=("constant", repr(node.value)))
        if isinstance(node, ir.Var):
            return self._value(node)
        if isinstance(node, ir.Expr):
            handler = getattr(self, f"_{node.op}", None)
            if handler is not None:
                value: Value = handler(node, control)
                return value
            return derived(self._value(variable) for variable in node.list_vars())
        return Value(sources=frozenset({OPAQUE}))

    def _cast(self, node: Any, control: frozenset[int]) -> Value:
        return self._value(node.value)

    _exhaust_iter = _iternext = _cast

    def _getiter(self, node: Any, control: frozenset[int]) -> Value:
        iterated = self._value(node.value)
        self._refuse_of_map(iterated, node, "iterate over")
        return iterated

    def _pair_first(self, node: Any, control: frozenset[int]) -> Value:
        iterated = self._value(node.value)
        self._escape(iterated)
        return self._element(iterated, Value(), control, expression=None)

    def _pair_second(self, node: Any, control: frozenset[int]) -> Value:
        iterated = self._value(node.value)
        # How many elements a table or row has is no question of their contents.
        return Value() if iterated.aliases else derived([iterated])

    def _getitem(self, node: Any, control: frozenset[int]) -> Value:
        index = self._index_of(node)
        expression = None
        container = self._value(node.value)
        if container.expression is not None and index.expression is not None:
            expression = ("item", container.expression, index.expression)
        if not container.aliases and container.items is None and not container.is_shape:
            self._access(_LOCAL_ALIAS, container, index, control, write=False)
        return self._element(container, index, control, expression=expression)

    def _static_getitem(self, node: Any, control: frozenset[int]) -> Value:
        items = self._value(node.value).items
        if items is not None and isinstance(node.index, int) and -len(items) <= node.index < len(items):
            return items[node.index]
        return self._getitem(node, control)

    def _element(self, container: Value, index: Value, control: frozenset[int], *, expression: Any) -> Value:
        parts: set[Alias] = set()
        sources = all_sources(container) | all_sources(index)
        for alias in container.aliases:
            part = _row_index(index) if alias.whole else index
            self._access(alias, container, part, control, write=False)
            sources |= {alias.argument} | self._float_of(alias)
            if alias.whole and (index.is_slice or _has_slice(index)):
                self._escape(Value(frozenset({alias})))
            depth = alias.depth - _indices(index)
            if depth > 0 or (depth == 0 and alias.record):
                still_whole = alias.whole and index.is_slice
                parts.add(Alias(alias.argument, depth, still_whole, alias.record, alias.keyed and still_whole))
        if not container.aliases and not container.is_shape:
            sources |= self.heap
        self._doubt(list(container.items or ()))  # which item it is, and what becomes of it, is not followed
        items_aliases = {alias for item in container.items or () for alias in all_aliases(item)}
        return Value(frozenset(parts | items_aliases), sources, expression=expression)

    def _getattr(self, node: Any, control: frozenset[int]) -> Value:
        owner = self._value(node.value)
        if owner.constant is not NOT_CONSTANT:
            constant = owner.constant
            member = getattr(constant, node.attr, NOT_CONSTANT)
            return Value(constant=member, expression=("constant", repr(member)))
        self._refuse_of_map(owner, node, f"use .{node.attr} of")
        if owner.aliases and node.attr in _SHAPE_ATTRIBUTES:
            expression = (node.attr, owner.expression) if owner.expression is not None else None
            return Value(expression=expression, is_shape=True)
        expression = (node.attr, owner.expression) if owner.expression is not None else None
        kept = frozenset(
            alias for alias in owner.aliases if not (alias.record and alias.depth == 0 and not alias.whole)
        )
        method = node.attr if kept else None
        sources = all_sources(owner)
        if any(node.attr in self._kind(alias).float_fields for alias in owner.aliases):
            sources |= {FLOAT}
        return Value(kept, sources, method=method, expression=expression)

    def _inplace_binop(self, node: Any, control: frozenset[int]) -> Value:
        left, right = self._value(node.lhs), self._value(node.rhs)
        for alias in left.aliases:
            self._write(alias.argument)
            self._access(alias, left, Value(is_slice=True), control, write=True)
        return Value(left.aliases, _rounded(derived([left, right]), node.immutable_fn).sources)

    def _binop(self, node: Any, control: frozenset[int]) -> Value:
        left, right = self._value(node.lhs), self._value(node.rhs)
        if node.fn is operator.contains and left.items is None:
            return self._contains(left, right, control)
        expression = None
        if left.expression is not None and right.expression is not None:
            expression = (repr(node.fn), left.expression, right.expression)
        return _rounded(derived([left, right], expression), node.fn)

    def _contains(self, container: Value, item: Value, control: frozenset[int]) -> Value:
        if not any(alias.keyed for alias in container.aliases):
            return self._call_known(operator.contains, [container, item], {}, control)
        known = container.expression is not None and item.expression is not None
        expression = ("contains", container.expression, item.expression) if known else None
        return derived([item], expression)  # no loop changes which keys there are

    def _build_tuple(self, node: Any, control: frozenset[int]) -> Value:
        items = tuple(self._value(item) for item in node.items)
        expressions = tuple(item.expression for item in items)
        return Value(items=items, expression=None if None in expressions else ("tuple", expressions))

    def _build_list(self, node: Any, control: frozenset[int]) -> Value:
        values = [self._value(variable) for variable in node.list_vars()]
        self._doubt(values)  # what becomes of the items is not followed
        aliases = frozenset(alias for value in values for alias in all_aliases(value))
        sources = derived(values).sources
        self.heap |= sources
        return Value(aliases, sources)

    _build_map = _build_set = _build_list

    def _make_function(self, node: Any, control: frozenset[int]) -> Value:
        captured = self._value(node.closure) if isinstance(node.closure, ir.Var) else Value()
        return Value(all_aliases(captured), all_sources(captured) | {OPAQUE}, method="<lambda>")

    # -- calls ---------------------------------------------------------------------------------------------

    def _call(self, node: Any, control: frozenset[int]) -> Value:
        callee = self._value(node.func)
        arguments = [self._value(argument) for argument in node.args]
        keywords = {name: self._value(variable) for name, variable in node.kws}
        if node.vararg is not None:
            arguments.append(self._value(node.vararg))
        everything = arguments + list(keywords.values())
        function = callee.constant
        if function is NOT_CONSTANT:
            return self._call_method(callee, everything, control)
        if function is slice:
            return Value(sources=derived(everything).sources, is_slice=True)
        if function is len:
            return Value() if arguments and all_aliases(arguments[0]) else derived(everything)
        if function is range:
            return Value(sources=derived(everything).sources, is_shape=True)
        python_function = getattr(function, "py_func", function)
        if isinstance(python_function, python_types.FunctionType) and not calls.is_pure(function):
            return self._call_python(python_function, node, arguments, keywords, control)
        return self._call_known(function, arguments, keywords, control)

    def _call_known(
        self, function: Any, arguments: list[Value], keywords: dict[str, Value], control: frozenset[int]
    ) -> Value:
        everything = arguments + list(keywords.values())
        for value in everything:
            self._escape(value)
        if not calls.is_pure(function):
            self._doubt(everything)
            return Value(sources=derived(everything).sources | {OPAQUE})
        for position in calls.written_arguments(function, len(arguments), frozenset(keywords)):
            for alias in all_aliases(arguments[position]) if position < len(arguments) else ():
                self._write(alias.argument)
        for alias in all_aliases(keywords["out"]) if "out" in keywords else ():
            self._write(alias.argument)
        result = derived(everything)
        if calls.allocates(function):  # how much decides which of its indices exist
            self._access(_LOCAL_ALIAS, Value(), result, control, write=False)
        aliases = frozenset(alias for value in everything for alias in all_aliases(value))
        sources = result.sources | {alias.argument for alias in aliases}
        for alias in aliases:
            sources |= self._float_of(alias)
        if calls.reads_containers(function):
            sources |= self.heap
        if calls.written_arguments(function, len(arguments), frozenset(keywords)) or "out" in keywords:
            self.heap |= sources
        if FLOAT in sources and not calls.keeps_value(function):
            sources |= {ROUNDED}
        if function in (enumerate, zip, reversed, iter):
            # What becomes of the elements is not followed: rows of a table, or items of a tuple.
            self._doubt([Value(frozenset(alias for alias in aliases if alias.depth > 1 or alias.record))])
            self._doubt([item for value in everything for item in value.items or ()])
        if function in (enumerate, zip, reversed, iter) or calls.is_view(getattr(function, "__name__", "")):
            return Value(aliases, sources)
        expressions = tuple(value.expression for value in arguments)
        known = not keywords and None not in expressions
        return Value(sources=sources, expression=(repr(function), expressions) if known else None)

    def _call_method(self, callee: Value, arguments: list[Value], control: frozenset[int]) -> Value:
        sources = derived(arguments).sources | callee.sources | {a.argument for a in callee.aliases}
        sources |= self.heap
        for alias in callee.aliases:
            sources |= self._float_of(alias)
        if FLOAT in sources:
            sources |= {ROUNDED}
        self.heap |= sources | control
        if not callee.aliases or callee.method is None:
            self._doubt([callee, *arguments])
            return Value(sources=sources | {OPAQUE})
        self._escape(callee)
        writes = calls.method_writes(callee.method)
        if writes is None:
            self._doubt([callee, *arguments])
            sources |= {OPAQUE}
        elif writes:
            for alias in callee.aliases:
                self._write(alias.argument)
        return Value(callee.aliases if calls.is_view(callee.method) else frozenset(), sources)

    def _call_python(
        self,
        function: Any,
        node: Any,
        arguments: list[Value],
        keywords: dict[str, Value],
        control: frozenset[int],
    ) -> Value:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        unknown = set(keywords) - set(names) or len(arguments) > len(names) or node.vararg is not None
        if unknown or self._is_active(function):
            everything = arguments + list(keywords.values())
            self._doubt(everything)
            return Value(sources=derived(everything).sources | {OPAQUE})
        bound = dict(enumerate(arguments))
        bound |= {names.index(name): value for name, value in keywords.items()}
        conditions = self._conditions()
        key = (function, self.call, self.place, frozenset(bound.items()), control, conditions, frozenset(self.heap))
        if key not in self.called:
            inner = FunctionAnalysis(function, bound, control, conditions, self)
            self.called[key] = inner.run(), inner.effects
        value, effects = self.called[key]
        self.effects.add(effects)
        return value

    def _is_active(self, function: Any) -> bool:
        """Whether this is an analysis of the function, or one on behalf of it: a recursion."""
        return function is self.function or (self.caller is not None and self.caller._is_active(function))

    def _refuse_of_map(self, value: Value, node: Any, what: str) -> None:
        if any(alias.keyed for alias in value.aliases):
            reason = f"a loop body cannot {what} a map; it can use m[key], m[key] = value, key in m, and len(m)"
            raise compile_error(node.loc.filename, node.loc.line, reason)

    def _kind(self, alias: Alias) -> TableKind:
        kind = self.kinds[alias.argument] if 0 <= alias.argument < len(self.kinds) else None
        return kind or TableKind(alias.depth)

    def _float_of(self, alias: Alias) -> frozenset[int]:
        return frozenset({FLOAT}) if self._kind(alias).floating else frozenset()

    def _doubt(self, values: list[Value]) -> None:
        for value in values:
            self.effects.doubtful |= {alias.argument for alias in all_aliases(value)}

    def _escape(self, value: Value) -> None:
        self.effects.escapes |= {alias.argument for alias in all_aliases(value) if alias.whole}


def _rounded(value: Value, function: Any) -> Value:
    """Mark the result of float arithmetic: compiled with and without fast mathematics it may differ."""
    if function is operator.truediv or (FLOAT in value.sources and function not in _COMPARISONS):
        return value.with_sources({FLOAT, ROUNDED})
    return value


def _constant_index(index: Any) -> Value:
    if isinstance(index, tuple):
        return Value(items=tuple(map(_constant_index, index)), expression=("constant", repr(index)))
    return Value(is_slice=isinstance(index, slice), expression=("constant", repr(index)))


def _indices(index: Value) -> int:
    """Number of dimensions that an index takes away."""
    if index.is_slice:
        return 0
    if index.items is not None:
        return sum(not item.is_slice for item in index.items)
    return 1


def _has_slice(index: Value) -> bool:
    return any(item.is_slice for item in (index.items or ())[:1])


def _row_index(index: Value) -> Value:
    """Return the part of an index that chooses the row."""
    return index.items[0] if index.items else index
