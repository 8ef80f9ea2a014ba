"""A loop body as one function in SSA form: Numba's IR, with the functions that the body calls inlined.

So an early return of a helper is a branch like any other, and the analysis of data and control flow extends through
calls. Calls that cannot be inlined (recursion, `*args`) remain calls for which there is no rule.
"""

import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numba.core import ir, ir_utils
from numba.core.compiler import run_frontend
from numba.core.dispatcher import Dispatcher
from numba.core.ssa import reconstruct_ssa
from numba.core.unsafe.eh import mark_try_block

from strads.bodies.compile_errors import compile_error
from strads.user_code.functions import is_helper

_MAX_STATEMENTS = 20_000  # of a body with everything inlined

_STATEMENTS = (
    *(ir.Assign, ir.SetItem, ir.StaticSetItem, ir.SetAttr, ir.DelItem, ir.Del, ir.Print),
    *(ir.Jump, ir.Branch, ir.Return, ir.Raise, ir.StaticRaise),
)

# A variable of the user's source: the function, and its name in the function's own IR.
Variable = tuple[types.CodeType, str]
Branch = Variable  # the variable that holds the condition


@dataclass(frozen=True)
class Inlined:
    """A function and its callees, in SSA form.

    `branches`: block → the branch at its end, for branches in the source. `indices`: variable → that of the source, for
    variables that are used as indices. Both are empty if some function could not be inlined. `has_closures`: whether
    one has functions of its own, such as comprehensions, whose variables are then not those of their source.
    """

    ir: Any  # a `numba.core.ir.FunctionIR`
    branches: dict[int, Branch]
    indices: dict[str, Variable]
    has_closures: bool


def inlined_ssa(function: types.FunctionType) -> Inlined:
    """Return the IR of a function and all functions that it calls by name, in SSA form.

    Raises
    ------
    CompileError
        For statements that loop bodies do not support: `try`, `with`, `yield`.
    numba.core.errors.NumbaError
        If the bytecode is not supported.
    """
    function_ir = _frontend(function)
    inliner = _Inliner(function_ir)
    inliner.run(function)
    if _calls_others(function_ir.blocks):
        return Inlined(reconstruct_ssa(function_ir), {}, {}, has_closures=True)
    branches, names = inliner.branches(function), frozenset(_names(function_ir.blocks))
    function_ir = reconstruct_ssa(function_ir)
    codes = {function.__code__, *inliner.called}
    has_closures = any(isinstance(constant, types.CodeType) for code in codes for constant in code.co_consts)
    return Inlined(function_ir, branches, inliner.indices(function_ir.blocks, names, function), has_closures)


def _frontend(function: types.FunctionType) -> Any:
    function_ir = run_frontend(function, inline_closures=True)
    for block in function_ir.blocks.values():
        for statement in block.body:
            value = getattr(statement, "value", None)
            if isinstance(value, ir.Global | ir.FreeVar) and value.value is mark_try_block:
                reason = "try and with are not supported: an index error inside could go unnoticed"
                raise compile_error(statement.loc.filename, statement.loc.line, reason)
            if isinstance(value, ir.Yield) or not isinstance(statement, _STATEMENTS):
                reason = f"loop bodies have no {type(value or statement).__name__.lower()} statements"
                raise compile_error(statement.loc.filename, statement.loc.line, reason)
    return function_ir


class _Inliner:
    """Inlines functions into one IR until no call is left that it can replace."""

    def __init__(self, function_ir: Any):
        self.ir = function_ir
        self.statements = sum(len(block.body) for block in function_ir.blocks.values())
        self.called: list[types.CodeType] = []  # the function of each inlined copy

    def branches(self, function: types.FunctionType) -> dict[int, Branch]:
        """Return the source branch of each block that ends with one."""
        found = {}
        for label, block in self.ir.blocks.items():
            if isinstance(block.body[-1], ir.Branch):
                found[label] = self._origin(block.body[-1].cond.name, function)
        return found

    def indices(
        self, blocks: Mapping[int, Any], names: frozenset[str], function: types.FunctionType
    ) -> dict[str, Variable]:
        """Return the variable of the source for each variable, of `blocks` in SSA form, that is used as an index.

        `names`: those of the IR before, where Numba has already renamed some that are assigned again, as `j.1`.
        """
        used = [each for block in blocks.values() for statement in block.body for each in indices_of(statement)]
        before = {v.name: v.name if v.name in names else v.unversioned_name for v in used}
        return {name: self._origin(earlier, function) for name, earlier in before.items()}

    def _origin(self, variable: str, function: types.FunctionType) -> Variable:
        name, _, copy = variable.partition("@")
        return self.called[int(copy) - 1] if copy else function.__code__, name

    def run(self, function: types.FunctionType) -> None:
        waiting: list[tuple[int, tuple[types.FunctionType, ...]]] = [(label, (function,)) for label in self.ir.blocks]
        while waiting:
            label, active = waiting.pop()
            definitions = ir_utils.build_definitions(self.ir.blocks)
            block = self.ir.blocks[label]
            for position, statement in enumerate(block.body):
                callee = _called(statement, definitions)
                if callee is None or callee in active or self.statements > _MAX_STATEMENTS:
                    continue
                arguments = _bind(callee, statement.value)
                if arguments is not None:
                    rest, inner = self._replace(label, position, callee, arguments)
                    waiting.append((rest, active))
                    waiting += [(new, (*active, callee)) for new in inner]
                    break

    def _replace(
        self, label: int, position: int, callee: types.FunctionType, arguments: Mapping[str, Any]
    ) -> tuple[int, list[int]]:
        """Split a block at a call and insert the function; returns the following block and the function's blocks."""
        block = self.ir.blocks[label]
        call = block.body[position]
        inner = _frontend(callee)
        self.statements += sum(len(part.body) for part in inner.blocks.values())
        self.called.append(callee.__code__)
        offset = max(self.ir.blocks) + 1
        blocks = ir_utils.add_offset_to_labels(inner.blocks, offset)
        names = {name: block.scope.define(f"{name}@{len(self.called)}", call.loc) for name in sorted(_names(blocks))}
        ir_utils.replace_vars(blocks, names)
        rest = max(blocks) + 1
        self.ir.blocks[rest] = ir.Block(block.scope, call.loc)
        self.ir.blocks[rest].body = block.body[position + 1 :]
        block.body = [*block.body[:position], ir.Jump(min(blocks), call.loc)]
        parameters = list(inspect.signature(callee).parameters)
        for part in blocks.values():
            part.scope = block.scope
            part.body = [new for old in part.body for new in _adapted(old, parameters, arguments, call.target, rest)]
        self.ir.blocks.update(blocks)
        return rest, list(blocks)


def _adapted(statement: Any, parameters: list[str], arguments: Mapping[str, Any], target: Any, rest: int) -> list[Any]:
    """Return the statements that replace one of an inlined function."""
    if isinstance(statement, ir.Return):
        return [ir.Assign(statement.value, target, statement.loc), ir.Jump(rest, statement.loc)]
    if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Arg):
        value = arguments[parameters[statement.value.index]]
        if not isinstance(value, ir.Var):
            value = ir.FreeVar(0, statement.value.name, value, statement.loc)  # a default
        return [ir.Assign(value, statement.target, statement.loc)]
    return [statement]


def indices_of(statement: Any) -> list[Any]:
    """Return the variables that a statement uses as an index, or puts into a tuple, which may be one."""
    holder, _ = indexed(statement)
    if holder is not None:
        return [holder.index]
    value = statement.value if isinstance(statement, ir.Assign) else None
    return list(value.items) if isinstance(value, ir.Expr) and value.op == "build_tuple" else []


def indexed(statement: Any) -> tuple[Any, Any]:
    """Return what has the index of a statement, and the container; None twice for other statements."""
    if isinstance(statement, ir.SetItem):
        return statement, statement.target
    value = statement.value if isinstance(statement, ir.Assign) else None
    return (value, value.value) if isinstance(value, ir.Expr) and value.op == "getitem" else (None, None)


def _names(blocks: Mapping[int, Any]) -> set[str]:
    return {
        variable.name for block in blocks.values() for statement in block.body for variable in statement.list_vars()
    } | {statement.target.name for block in blocks.values() for statement in block.find_insts(ir.Assign)}


def _calls_others(blocks: Mapping[int, Any]) -> bool:
    """Whether a user's function is still used other than by assigning it to another name."""
    definitions = ir_utils.build_definitions(blocks)
    functions: set[str] = set()
    before = -1
    while before < len(functions):
        before = len(functions)
        for name, values in definitions.items():
            if is_helper(resolved(name, definitions)) or any(_names_function(value, functions) for value in values):
                functions.add(name)
    used = {
        variable.name
        for block in blocks.values()
        for statement in block.body
        if not (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Var))
        for variable in statement.list_vars()
        if not (isinstance(statement, ir.Assign) and variable.name == statement.target.name)
    }
    return bool(used & functions)


def _names_function(value: Any, functions: set[str]) -> bool:
    if isinstance(value, ir.Var):
        return value.name in functions
    return isinstance(value, ir.Global | ir.FreeVar) and is_helper(value.value)


def constants_of(function: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the globals that a function, and the user's functions that it calls, use, each with its place."""
    waiting, seen = [getattr(function, "py_func", function)], set[types.CodeType]()
    while waiting:
        callee = waiting.pop()
        if callee.__code__ in seen:
            continue
        seen.add(callee.__code__)
        blocks = _frontend(callee).blocks
        definitions = ir_utils.build_definitions(blocks)
        for block in blocks.values():
            for statement in block.find_insts(ir.Assign):
                value = resolved(statement.target.name, definitions)
                if value is not None:
                    yield value, statement.loc
                plain = value.py_func if isinstance(value, Dispatcher) else value
                if isinstance(plain, types.FunctionType) and is_helper(plain):
                    waiting.append(plain)


def _called(statement: Any, definitions: Mapping[str, list[Any]]) -> types.FunctionType | None:
    """Return the user's function that a statement calls, if it is known."""
    if not isinstance(statement, ir.Assign):
        return None
    call = statement.value
    if not isinstance(call, ir.Expr) or call.op != "call":
        return None
    function = resolved(call.func.name, definitions)
    plain = function.py_func if isinstance(function, Dispatcher) else function
    return plain if isinstance(plain, types.FunctionType) and is_helper(plain) else None


def resolved(name: str, definitions: Mapping[str, list[Any]]) -> Any:
    """Return the global that a variable stands for, or None."""
    found = definitions.get(name, [])
    if len(found) != 1:
        return None
    definition = found[0]
    if isinstance(definition, ir.Global | ir.FreeVar):
        return definition.value
    if isinstance(definition, ir.Var):
        return resolved(definition.name, definitions)
    if isinstance(definition, ir.Expr) and definition.op == "getattr":
        module = resolved(definition.value.name, definitions)
        return getattr(module, definition.attr, None) if isinstance(module, types.ModuleType) else None
    return None


def _bind(callee: types.FunctionType, call: Any) -> dict[str, Any] | None:
    """Return the variable, or the default, bound to each parameter; None if that cannot be determined."""
    signature = inspect.signature(callee)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    unusual = kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    if unusual or call.vararg is not None or inspect.isgeneratorfunction(callee):
        return None
    try:
        bound = signature.bind(*call.args, **dict(call.kws))
    except TypeError:  # Numba will report the error
        return None
    bound.apply_defaults()
    return dict(bound.arguments)
