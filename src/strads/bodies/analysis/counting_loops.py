"""`while` loops that count up or down to a bound, and so end as `for` loops do.

They need no checks of whether they are to stop, which would keep a loop of few instructions from being vectorized.
"""

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba.core import ir

# Comparisons with which a loop goes on, as (whether the left side is the lower one).
_LEFT_IS_LOWER = {operator.lt: True, operator.le: True, operator.gt: False, operator.ge: False}
_STEPS = {operator.add: 1, operator.iadd: 1, operator.sub: -1, operator.isub: -1}
_COMPUTING = (*_STEPS, operator.mul, operator.floordiv)
_READING = ("getitem", "static_getitem", "getattr")
_MOST = 1 << 16  # with longer steps a number might wrap around


class Counter(NamedTuple):
    """What a loop counts: it ends if number and limit are integers, and what has a length is nothing that can grow."""

    number: Any  # variable that each iteration moves towards the limit, by a constant
    limit: Any  # variable with the same value in all iterations
    sized: Any  # variable from whose length the limit is computed; the limit itself if there is none


class CountingLoops:
    """Finds the counters of a function's `while` loops.

    Parameters
    ----------
    blocks
        Those of the function, not in SSA form.
    cfg
        Their control flow.
    """

    def __init__(self, blocks: Mapping[int, Any], cfg: Any):
        self._blocks, self._cfg, self._dominators = blocks, cfg, cfg.dominators()
        self._assigned: dict[str, list[tuple[int, Any]]] = {}  # variable → block and value of each assignment
        for label, block in blocks.items():
            for statement in block.find_insts(ir.Assign):
                self._assigned.setdefault(statement.target.name, []).append((label, statement.value))

    def counter(self, loop: Any) -> Counter | None:
        """Return what a loop counts, if each iteration moves it by a constant step and then compares it."""
        ends = {label for label, _ in self._cfg.predecessors(loop.header) if label in loop.body}
        always = set.intersection(*(self._dominators[end] for end in ends)) & loop.body
        for label in always:
            found = self._compared(label, loop)
            if found is not None and self._moves(*found, loop, always):
                return found[0]
        return None

    def _compared(self, label: int, loop: Any) -> tuple[Counter, int] | None:
        """Return what a block compares before it leaves a loop, and the sign of steps towards the limit."""
        branch = self._blocks[label].body[-1]
        if not isinstance(branch, ir.Branch) or branch.truebr not in loop.body or branch.falsebr in loop.body:
            return None
        condition = self._value_in(label, branch.cond)  # computed before, it might be outdated
        if isinstance(condition, ir.Expr) and condition.op == "call" and self._callee(condition) is bool:
            condition = self._value_in(label, condition.args[0])
        if not (isinstance(condition, ir.Expr) and condition.op == "binop" and condition.fn in _LEFT_IS_LOWER):
            return None
        lower, upper = condition.lhs, condition.rhs
        if not _LEFT_IS_LOWER[condition.fn]:
            lower, upper = upper, lower
        for number, limit, sign in ((lower, upper, 1), (upper, lower, -1)):
            sized = list[Any]()
            is_fixed = self._is_fixed(limit, loop, number.name, sized)
            if is_fixed and len(sized) <= 1 and all(self._is_set(each, label, loop) for each in (limit, *sized)):
                return Counter(number, limit, sized[0] if sized else limit), sign
        return None

    def _is_set(self, variable: Any, label: int, loop: Any) -> bool:
        """Whether a variable has a value after a block of a loop, if it has one there."""
        inside = {at for at, _ in self._assigned.get(variable.name, ()) if at in loop.body}
        return inside <= {label}

    def _moves(self, counter: Counter, sign: int, loop: Any, always: set[int]) -> bool:
        """Whether each assignment in a loop moves a counter towards its limit, and one of them in each iteration."""
        inside = [(label, value) for label, value in self._assigned.get(counter.number.name, ()) if label in loop.body]
        return any(label in always for label, _ in inside) and all(
            0 < self._step(label, value, counter.number.name) * sign <= _MOST for label, value in inside
        )

    def _step(self, label: int, value: Any, name: str) -> int:
        """Return the constant that a block adds to a variable; 0 if its new value is anything else."""
        if isinstance(value, ir.Var):
            value = self._value_in(label, value)
        if not (isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop") and value.fn in _STEPS):
            return 0
        constant = self._value(value.rhs)
        if value.lhs.name != name or not isinstance(constant, ir.Const | ir.Global | ir.FreeVar):
            return 0
        return _STEPS[value.fn] * int(constant.value) if isinstance(constant.value, int | np.integer) else 0

    def _is_fixed(self, variable: Any, loop: Any, number: str, sized: list[Any]) -> bool:
        """Whether a variable has the same value in all iterations, if `number` is one and nothing in `sized` grows.

        Lengths that it is computed from are those of variables that are appended to `sized`.
        """
        assigned = self._assigned.get(variable.name, ())
        if not any(label in loop.body for label, _ in assigned):
            return True
        value = self._value(variable)
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return True
        if not isinstance(value, ir.Expr):
            return False
        if value.op == "call" and self._callee(value) is len:
            sized.append(value.args[0])
            return self._is_fixed(value.args[0], loop, number, sized)
        if not all(self._is_fixed(each, loop, number, sized) for each in value.list_vars()):
            return False
        if value.op == "binop":
            return value.fn in _COMPUTING
        return self._is_shape(value) or (value.op in _READING and self._only_reads(loop, number))

    def _is_shape(self, value: Any) -> bool:
        """Whether an expression is `a.shape`, or an item of it."""
        if value.op in ("getitem", "static_getitem"):
            value = self._value(value.value)
        return isinstance(value, ir.Expr) and value.op == "getattr" and value.attr == "shape"

    def _only_reads(self, loop: Any, number: str) -> bool:
        """Whether a loop writes no items, and calls nothing that could, if `number` is one."""
        return not any(self._may_write(each, number) for label in loop.body for each in self._blocks[label].body)

    def _may_write(self, statement: Any, number: str) -> bool:
        value = getattr(statement, "value", None)
        if not isinstance(statement, ir.Assign) or not isinstance(value, ir.Expr):
            return isinstance(statement, ir.SetItem | ir.StaticSetItem | ir.SetAttr)
        if value.op == "inplace_binop":
            return not self._is_computed(value.lhs, {number})
        callee = self._callee(value) if value.op == "call" else len
        return not (isinstance(callee, type(len)) or callee in (bool, int, float))

    def _is_computed(self, variable: Any, seen: set[str]) -> bool:
        """Whether a variable holds only results of operators, which are part of nothing else."""
        if variable.name in seen:
            return True
        seen.add(variable.name)
        values = [value for _, value in self._assigned.get(variable.name, ())]
        return bool(values) and all(
            isinstance(value, ir.Const)
            or (isinstance(value, ir.Var) and self._is_computed(value, seen))
            or (isinstance(value, ir.Expr) and value.op in ("binop", "unary"))
            or (isinstance(value, ir.Expr) and value.op == "inplace_binop" and self._is_computed(value.lhs, seen))
            for value in values
        )

    def _callee(self, call: Any) -> Any:
        function = self._value(call.func)
        return function.value if isinstance(function, ir.Global | ir.FreeVar) else None

    def _value(self, variable: Any) -> Any:
        """Return what a variable is assigned, if that happens in one place."""
        assigned = self._assigned.get(variable.name, ())
        return assigned[0][1] if len(assigned) == 1 else None

    def _value_in(self, label: int, variable: Any) -> Any:
        """Return the same if that place is in a certain block."""
        assigned = self._assigned.get(variable.name, ())
        return self._value(variable) if any(at == label for at, _ in assigned) else None
