"""Compiler passes that add what Numba lacks: interruptible `while` loops, and shape checks for in-place writes.

Bounds checks are added by `index_checks` and, for rows of tables, by the views (`engine/views/indices.py`).

Numba's `a += b` and `np.add(x, y, out)` read and write over the length of the target, even if other operands are
shorter. In functions with a list comprehension it drops `row = W[k]` if the row is not used, and with it the check of
k.
"""

from types import CodeType
from typing import Any

import numpy as np
from numba import types
from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.ir_utils import get_definition, guard
from numba.extending import register_jitable

from strads.bodies.analysis.counting_loops import Counter, CountingLoops
from strads.bodies.analysis.outcomes import Outcomes
from strads.bodies.analysis.structure import begins_counted
from strads.bodies.passes.inserted_calls import call_of
from strads.engine.compiling import compiled
from strads.engine.stopping import WHERE_CHOSEN, IterationCheck


@compiled
def fits(target, source):  # type: ignore[no-untyped-def]
    """Raise ValueError if the source cannot be broadcast to the shape of the target, which is written."""
    if not isinstance(target, types.Array) or not isinstance(source, types.Array):
        return lambda target, source: None
    missing = target.ndim - source.ndim
    if missing < 0:

        def refuse(target, source):  # type: ignore[no-untyped-def]
            raise ValueError("an array with more axes than the one that is written")

        return refuse

    def check(target, source):  # type: ignore[no-untyped-def]
        for axis in range(source.ndim):
            size = source.shape[axis]
            if size != 1 and size != target.shape[axis + missing]:
                raise ValueError("the shapes of the arrays do not fit the one that is written")

    return check


@compiled
def use(value):  # type: ignore[no-untyped-def]
    """Do nothing; marks a value as used."""
    return lambda value: None


def make_safe(function_ir: Any, code: CodeType, *, count: IterationCheck, outcomes: Outcomes) -> None:
    """Make `while` loops test the flag of `engine.stopping`, and check shapes before in-place writes to arrays.

    Parameters
    ----------
    count
        What is done in each iteration of a `while` loop.
    outcomes
        Outcomes of branches, chosen by reconnaissance: they are fixed.
    """
    cfg = compute_cfg_from_blocks(function_ir.blocks)
    loops, counting = list(cfg.loops().values()), CountingLoops(function_ir.blocks, cfg)
    droppable = _droppable_items(function_ir)
    chosen = _choose(code, function_ir, outcomes)
    counters = {loop.header: counting.counter(loop) for loop in loops if count.check_counting is not None}
    kept = {loop.header for loop in loops if any(_keeps(function_ir.blocks, loop, *branch) for branch in chosen)}
    for block in function_ir.blocks.values():
        block.body = _with_checks(function_ir, block, droppable)
    for loop in loops:
        if loop.header in kept:
            _count(function_ir, loop, WHERE_CHOSEN)
        elif not begins_counted(loop.header, function_ir.blocks):
            _count(function_ir, loop, count, counters.get(loop.header))


def _choose(code: CodeType, function_ir: Any, outcomes: Outcomes) -> list[tuple[int, bool]]:
    """Fix branches to the outcomes chosen by reconnaissance; returns their blocks and outcomes."""
    wanted = {name: outcome for (of, name), outcome in outcomes.items() if of == code}
    chosen = []
    for label, block in function_ir.blocks.items():
        last = block.body[-1]
        if isinstance(last, ir.Branch) and last.cond.name in wanted:
            chosen.append((label, wanted.pop(last.cond.name)))
            outcome = call_of(_always if chosen[-1][1] else _never, (), block, last.loc)
            block.body[-1:] = [*outcome, ir.Branch(outcome[-1].target, last.truebr, last.falsebr, last.loc)]
    if wanted:
        raise NotImplementedError(f"no branch {sorted(wanted)} in {code.co_name}")
    return chosen


def _count(function_ir: Any, loop: Any, count: IterationCheck, counter: Counter | None = None) -> None:
    """Count down the iterations of a loop in a variable that is initialized at the start of the function.

    At the end of an iteration, so that what each one reads may be read before the loop.
    """
    entry = function_ir.blocks[min(function_ir.blocks)]
    loc = function_ir.blocks[loop.header].body[0].loc
    left = entry.scope.redefine("$strads_iterations_left", loc)
    entry.body.insert(0, ir.Assign(ir.Const(count.first, loc), left, loc))
    for label in loop.body:
        block = function_ir.blocks[label]
        if loop.header in block.terminator.get_targets():
            check, numbers = (count.check, ()) if counter is None else (count.check_counting, counter)
            call = call_of(check, (left, *numbers), block, loc)
            block.body[-1:] = [*call, ir.Assign(call[-1].target, left, loc), block.body[-1]]


def _keeps(blocks: Any, loop: Any, label: int, outcome: bool) -> bool:
    """Whether a chosen outcome keeps a task in a loop that a run may leave."""
    branch = blocks[label].body[-1]
    taken, other = (branch.truebr, branch.falsebr) if outcome else (branch.falsebr, branch.truebr)
    return label in loop.body and taken in loop.body and other not in loop.body


@register_jitable
def _always() -> bool:
    return True


@register_jitable
def _never() -> bool:
    return False


def _droppable_items(function_ir: Any) -> set[str]:
    """Names of the variables that are assigned an item, if Numba would drop the unused ones."""
    statements = [statement for block in function_ir.blocks.values() for statement in block.body]
    found = [each for each in statements if isinstance(each, ir.Assign) and isinstance(each.value, ir.Expr)]
    if not any(statement.value.op == "make_function" for statement in found):
        return set()
    return {statement.target.name for statement in found if statement.value.op in ("getitem", "static_getitem")}


def _with_checks(function_ir: Any, block: Any, droppable: set[str]) -> list[Any]:
    body: list[Any] = []
    for statement in block.body:
        value = getattr(statement, "value", None)
        if isinstance(statement, ir.Assign) and isinstance(value, ir.Expr):
            for target, source in _written_in_place(function_ir, value):
                body += call_of(fits, (target, source), block, statement.loc)
        body.append(statement)
        if isinstance(statement, ir.Assign) and statement.target.name in droppable:
            body += call_of(use, (statement.target,), block, statement.loc)
    return body


def _written_in_place(function_ir: Any, expression: Any) -> list[tuple[Any, Any]]:
    """Return pairs of an array that an expression writes and an array that it reads."""
    if expression.op == "inplace_binop":
        return [(expression.lhs, expression.rhs)]
    if expression.op != "call":
        return []
    function = _function_of(function_ir, expression.func)
    if not isinstance(function, np.ufunc) or len(expression.args) <= function.nin:
        return []
    *sources, target = expression.args
    return [(target, source) for source in sources[: function.nin]]


def _function_of(function_ir: Any, variable: Any) -> Any:
    definition = guard(get_definition, function_ir, variable)
    if isinstance(definition, ir.Global | ir.FreeVar):
        return definition.value
    if isinstance(definition, ir.Expr) and definition.op == "getattr":
        return getattr(_function_of(function_ir, definition.value), definition.attr, None)
    return None
