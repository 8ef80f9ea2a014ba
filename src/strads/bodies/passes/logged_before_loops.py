"""Compiler pass that logs a row once, before a loop whose iterations all use elements of it, as in `W[i, f]` over f.

Logged in each iteration, such accesses took most of the time of a reconnaissance, as nothing else is left of the loop.
A loop without iterations logs the row nevertheless: records may have more rows than tasks touch. An index that the loop
computes from what it does not change, as in `W[users[k], f]` or `W[r.user, f]`, is computed before it, too.
"""

from collections.abc import Hashable
from functools import cache
from types import CodeType
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import get_definition, guard

from strads.bodies.analysis.read_only_rows import only_read_rows
from strads.bodies.passes.inserted_calls import call_of
from strads.engine.views.rows_logged_before import item_if_it_exists, log_read, log_write, logged_item, set_logged_item


@cache
def log_before_loops(body: CodeType, tables: frozenset[int], only_read: frozenset[int]) -> type[FunctionPass]:
    """Return the pass for a body.

    Parameters
    ----------
    body
        Its code.
    tables, only_read
        Arguments whose rows are logged, and those that the loop does not write, numbered from 0 without the loop index.
    """

    class LogBeforeLoops(FunctionPass):
        _name = "strads_log_before_loops"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            return state.func_id.func.__code__ == body and _Logs(state.func_ir, tables, only_read).move()

    return register_pass(mutates_CFG=False, analysis_only=False)(LogBeforeLoops)


class _Logs:
    """Moves the logging of rows out of the loops of one function."""

    def __init__(self, function_ir: Any, tables: frozenset[int], only_read: frozenset[int]):
        self._function, self._blocks, self._tables, self._only_read = function_ir, function_ir.blocks, tables, only_read
        self._cfg = compute_cfg_from_blocks(self._blocks)
        self._dominators = self._cfg.dominators()
        self._only_read_rows = only_read_rows(self._blocks)
        self._loops = sorted(self._cfg.loops().values(), key=lambda loop: len(loop.body))  # inner before outer ones
        self._assigned: dict[str, list[tuple[int, Any]]] = {}  # variable → block and value of each assignment
        for label, block in self._blocks.items():
            for statement in block.find_insts(ir.Assign):
                self._assigned.setdefault(statement.target.name, []).append((label, statement.value))

    def move(self) -> bool:
        """Rewrite the blocks; returns whether anything has changed."""
        # Block before the loop, table and row → table, index and loop of one access, and whether any of them writes.
        moved: dict[tuple[int, str, Hashable], tuple[Any, Any, Any, bool]] = {}
        for label, block in self._blocks.items():
            statements = []
            for number, statement in enumerate(block.body):
                found = self._movable(label, statement)
                if found is None:
                    statements.append(statement)
                    continue
                table, index, loop = found
                key = next(iter(loop.entries)), table.name, self._name(index, loop)
                writes = isinstance(statement, ir.SetItem) or self._holds_written_row(statement, label, number)
                moved[key] = table, index, loop, writes or (key in moved and moved[key][-1])
                statements += _unlogged(block, statement)
            block.body = statements
        for (before, _, _), (table, index, loop, writes) in moved.items():
            self._log(self._blocks[before], table, index, loop, writes=writes)
        return bool(moved)

    def _log(self, block: Any, table: Any, index: Any, loop: Any, *, writes: bool) -> None:
        *statements, last = block.body
        index = self._computed(index, loop, block, statements)
        statements += call_of(log_write if writes else log_read, (table, index), block, last.loc)
        block.body = [*statements, last]

    def _movable(self, label: int, statement: Any) -> tuple[Any, Any, Any] | None:
        """Return table, row index and loop of an access `T[i, j]` or `T[i]` that can be logged before that loop."""
        if isinstance(statement, ir.SetItem):
            table, index = statement.target, statement.index
        elif isinstance(statement, ir.Assign) and getattr(statement.value, "op", None) == "getitem":
            table, index = statement.value.value, statement.value.index
        else:
            return None
        if not self._is_argument(table, self._tables):
            return None
        indices = self._indices(index)
        if len(indices) == 1 and isinstance(statement, ir.SetItem):
            return None
        loop = self._outermost_loop(label, indices[0])
        return None if loop is None else (table, indices[0], loop)

    def _indices(self, index: Any) -> list[Any]:
        """Return the variables of an index: several for `T[i, j]`."""
        indices = guard(get_definition, self._function, index)
        is_tuple = isinstance(indices, ir.Expr) and indices.op == "build_tuple" and len(indices.items) > 0
        return indices.items if is_tuple else [index]

    def _holds_written_row(self, statement: Any, label: int, number: int) -> bool:
        """Whether an access is `row = T[i]`, and the row is written, maybe by another name."""
        return len(self._indices(statement.value.index)) == 1 and (label, number) not in self._only_read_rows

    def _outermost_loop(self, label: int, index: Any) -> Any:
        """Return the outermost loop with a block that all its iterations run, and with one value of an index."""
        found = None
        for loop in self._loops:
            if label not in loop.body:
                continue
            ends = [before for before, _ in self._cfg.predecessors(loop.header) if before in loop.body]
            runs_always = all(label in self._dominators[end] for end in ends)
            if len(loop.entries) != 1 or not runs_always or self._name(index, loop) is None:
                break
            found, label = loop, next(iter(loop.entries))
        return found

    def _name(self, variable: Any, loop: Any) -> Hashable:
        """Return what identifies the value that a variable has in all iterations of a loop; None if it changes."""
        assigned = self._assigned.get(variable.name, [])
        if not any(label in loop.body for label, _ in assigned):
            return variable.name
        if len(assigned) > 1:
            return None
        value = assigned[0][1]
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return type(value).__name__, value.value
        if isinstance(value, ir.Var):
            return self._name(value, loop)
        if not isinstance(value, ir.Expr) or not self._is_fixed(value, loop):
            return None
        names = [self._name(operand, loop) for operand in value.list_vars()]
        return None if None in names else (value.op, value.attr if value.op == "getattr" else "", *names)

    def _is_fixed(self, value: Any, loop: Any) -> bool:
        """Whether an expression has the same value whenever its operands have: it reads nothing that is written."""
        if value.op == "getattr":  # of a record that is in a variable before the loop
            record = guard(get_definition, self._function, value.value)
            if not (isinstance(record, ir.Expr) and record.op == "getitem"):
                return False
            is_before = not any(label in loop.body for label, _ in self._assigned[value.value.name])
            return is_before and self._is_argument(record.value, self._only_read)
        return value.op == "build_tuple" or (value.op == "getitem" and self._is_argument(value.value, self._only_read))

    def _is_argument(self, variable: Any, chosen: frozenset[int]) -> bool:
        argument = guard(get_definition, self._function, variable)
        return isinstance(argument, ir.Arg) and argument.index - 1 in chosen

    def _computed(self, variable: Any, loop: Any, block: Any, statements: list[Any]) -> Any:
        """Append statements that compute a variable before a loop; returns the variable that has its value there."""
        assigned = self._assigned.get(variable.name, [])
        if not any(label in loop.body for label, _ in assigned):
            return variable
        value, loc = assigned[0][1], assigned[0][1].loc
        if isinstance(value, ir.Var):
            return self._computed(value, loop, block, statements)
        if isinstance(value, ir.Expr):
            operands = [self._computed(operand, loop, block, statements) for operand in value.list_vars()]
            if value.op == "getitem":
                statements += call_of(item_if_it_exists, tuple(operands), block, loc)
                return statements[-1].target
            value = (
                ir.Expr.getattr(*operands, value.attr, loc)
                if value.op == "getattr"
                else ir.Expr.build_tuple(operands, loc)
            )
        target = block.scope.redefine("$strads_row_index", loc)
        statements.append(ir.Assign(value, target, loc))
        return target


def _unlogged(block: Any, statement: Any) -> list[Any]:
    """Return the statements of an access that is logged elsewhere."""
    if isinstance(statement, ir.SetItem):
        changed = statement.target, statement.index, statement.value
        return call_of(set_logged_item, changed, block, statement.loc)
    item = statement.value
    return call_of(logged_item, (item.value, item.index), block, statement.loc, statement.target)
