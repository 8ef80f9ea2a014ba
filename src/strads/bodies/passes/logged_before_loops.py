"""Compiler pass that logs a row once, before a loop whose iterations all use elements of it, as in `W[i, f]` over f.

Logged in each iteration, such accesses took most of the time of a reconnaissance, as nothing else is left of the loop.
The records stay those of each access: only accesses are moved that happen if, and only if, the loop has iterations.
Every operand has the same value before the loop as in it: a variable that the loop does not assign, an argument itself,
or what is computed from these and read from where nothing is written.
"""

from collections.abc import Hashable, Mapping
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.ir_utils import get_definition, guard

from strads.bodies.analysis.read_only_rows import is_number
from strads.bodies.analysis.structure import is_counted, leaving
from strads.bodies.passes.inserted_calls import call_of
from strads.engine.views.rows_logged_before import item_if_it_exists, log_read, log_write, logged_item, set_logged_item


def log_before_loops(
    function_ir: Any, code: CodeType, *, body: CodeType, depths: Mapping[int, int], only_read: frozenset[int]
) -> None:
    """Move the logging of rows in a body, whose arguments are numbered from 0 without the loop index.

    Parameters
    ----------
    body
        Its code.
    depths
        Arguments whose rows are logged, with their number of axes.
    only_read
        Arguments that the loop does not write.
    """
    if code == body:
        _Logs(function_ir, depths, only_read).move()


class _Moved(NamedTuple):
    """An access that is logged before a loop."""

    loop: Any
    table: int  # number of the argument
    row: Any  # the variable that is the first index
    writes: bool


class _Logs:
    """Moves the logging of rows out of the loops of one function."""

    def __init__(self, function_ir: Any, depths: Mapping[int, int], only_read: frozenset[int]):
        self._function, self._blocks, self._depths, self._only_read = function_ir, function_ir.blocks, depths, only_read
        self._cfg = compute_cfg_from_blocks(self._blocks)
        self._dominators = self._cfg.dominators()
        self._loops = sorted(self._cfg.loops().values(), key=lambda loop: len(loop.body))  # inner before outer ones
        self._assigned: dict[str, list[tuple[int, Any]]] = {}  # variable → block and value of each assignment
        for label, block in self._blocks.items():
            for statement in block.find_insts(ir.Assign):
                self._assigned.setdefault(statement.target.name, []).append((label, statement.value))
        self._values = {name: [value for _, value in values] for name, values in self._assigned.items()}

    def move(self) -> None:
        """Rewrite the blocks."""
        logs: dict[tuple[int, int, Hashable], _Moved] = {}  # one for the accesses to a row in a loop
        for label, block in self._blocks.items():
            statements = []
            for statement in block.body:
                found = self._movable(label, statement)
                if found is None:
                    statements.append(statement)
                    continue
                key = found.loop.header, found.table, self._name(found.row, found.loop)
                logs[key] = found._replace(writes=found.writes or (key in logs and logs[key].writes))
                statements += _unlogged(block, statement)
            block.body = statements
        for found in logs.values():
            self._log(found)

    def _log(self, found: _Moved) -> None:
        block = self._blocks[_entry(found.loop)]
        *statements, last = block.body
        table = block.scope.redefine("$strads_table", last.loc)
        name = self._function.arg_names[found.table + 1]
        statements.append(ir.Assign(ir.Arg(name, found.table + 1, last.loc), table, last.loc))
        row = self._computed(found.row, found.loop, block, statements)
        log = log_write if found.writes else log_read
        statements += call_of(log, (self._iterations(found.loop), table, row), block, last.loc)
        block.body = [*statements, last]

    def _movable(self, label: int, statement: Any) -> _Moved | None:
        """Return what is known of an access `T[i, j]` that can be logged before a loop."""
        writes = isinstance(statement, ir.SetItem)
        if writes:
            table, index = statement.target, statement.index
        elif isinstance(statement, ir.Assign) and getattr(statement.value, "op", None) == "getitem":
            table, index = statement.value.value, statement.value.index
        else:
            return None
        loop = next((loop for loop in self._loops if label in loop.body), None)
        argument, indices = (guard(get_definition, self._function, variable) for variable in (table, index))
        if loop is None or not isinstance(argument, ir.Arg) or argument.index - 1 not in self._depths:
            return None
        if not (isinstance(indices, ir.Expr) and indices.op == "build_tuple" and len(indices.items) > 1):
            return None
        row, *others = indices.items
        is_element = len(indices.items) == self._depths[argument.index - 1] and all(
            is_number(each.name, self._values) for each in others
        )
        if not (writes or is_element) or not self._runs_if_any(label, loop) or self._name(row, loop) is None:
            return None
        # Of a tuple that was built before the loop, the first item may have got another value since.
        is_built_here = any(
            value is indices and at in loop.body for values in self._assigned.values() for at, value in values
        )
        return _Moved(loop, argument.index - 1, row, writes) if is_built_here else None

    def _runs_if_any(self, label: int, loop: Any) -> bool:
        """Whether a block runs if, and only if, a loop over a range has any iterations."""
        if len(loop.entries) != 1 or self._iterations(loop) is None:
            return False
        first = self._blocks[loop.header].body[0]
        heads = {loop.header, first.target} if isinstance(first, ir.Jump) else {loop.header}
        ends = {before for before, _ in self._cfg.predecessors(loop.header) if before in loop.body}
        ends |= leaving(self._cfg, loop) - heads
        return label not in heads and all(label in self._dominators[end] for end in ends)

    def _iterations(self, loop: Any) -> Any:
        """Return the variable of the range that a loop iterates over; None if it is another kind of loop."""
        first = self._blocks[loop.header].body[0]
        head = self._blocks[first.target if isinstance(first, ir.Jump) else loop.header]
        if not is_counted(head):
            return None
        ranges = [
            statement.value.value
            for statement in self._blocks[_entry(loop)].find_insts(ir.Assign)
            if isinstance(statement.value, ir.Expr) and statement.value.op == "getiter"
        ]
        call = guard(get_definition, self._function, ranges[-1]) if len(ranges) == 1 else None
        if not (isinstance(call, ir.Expr) and call.op == "call"):
            return None
        function = guard(get_definition, self._function, call.func)
        return ranges[0] if isinstance(function, ir.Global) and function.value is range else None

    def _name(self, variable: Any, loop: Any) -> Hashable:
        """Return what identifies the value that a variable has in all iterations of a loop; None if it may change."""
        assigned = self._assigned.get(variable.name, [])
        if not any(label in loop.body for label, _ in assigned):
            return variable.name
        if len(assigned) > 1:
            return None
        value = assigned[0][1]
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return ("constant", value.value) if isinstance(value.value, int | np.integer) else None
        if isinstance(value, ir.Var):
            return self._name(value, loop)
        if not isinstance(value, ir.Expr) or not self._reads_nothing_written(value, loop):
            return None
        names = [self._name(operand, loop) for operand in value.list_vars()]
        return None if None in names else (value.op, value.attr if value.op == "getattr" else "", *names)

    def _reads_nothing_written(self, value: Any, loop: Any) -> bool:
        """Whether an expression has the same value whenever its operands have."""
        if value.op == "getattr":  # of a record that is in a variable before the loop
            record = guard(get_definition, self._function, value.value)
            if not (isinstance(record, ir.Expr) and record.op == "getitem"):
                return False
            is_before = not any(label in loop.body for label, _ in self._assigned[value.value.name])
            return is_before and self._is_only_read(record.value)
        return value.op == "build_tuple" or (value.op == "getitem" and self._is_only_read(value.value))

    def _is_only_read(self, variable: Any) -> bool:
        argument = guard(get_definition, self._function, variable)
        return isinstance(argument, ir.Arg) and argument.index - 1 in self._only_read

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
            is_field = value.op == "getattr"
            value = ir.Expr.getattr(*operands, value.attr, loc) if is_field else ir.Expr.build_tuple(operands, loc)
        target = block.scope.redefine("$strads_row_index", loc)
        statements.append(ir.Assign(value, target, loc))
        return target


def _entry(loop: Any) -> int:
    """Return the block that leads to the only entry of a loop."""
    return next(iter(loop.entries))


def _unlogged(block: Any, statement: Any) -> list[Any]:
    """Return the statements of an access that is logged elsewhere."""
    if isinstance(statement, ir.SetItem):
        changed = statement.target, statement.index, statement.value
        return call_of(set_logged_item, changed, block, statement.loc)
    item = statement.value
    return call_of(logged_item, (item.value, item.index), block, statement.loc, statement.target)
