"""Compiler pass for reconnaissance: a row that the body binds to a variable but never writes is logged as read."""

from collections.abc import Iterator
from functools import cache
from types import CodeType
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import get_definition, guard

from strads.bodies.analysis.read_only_rows import only_read_rows
from strads.bodies.passes.inserted_calls import call_of
from strads.engine.views.recorded_rows import only_read_row_of


@cache
def log_as_read(body: CodeType, tables: frozenset[int]) -> type[FunctionPass]:
    """Return the pass for a body and some of its arguments, numbered from 0 without the loop index."""

    class LogAsRead(FunctionPass):
        _name = "strads_log_as_read"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            function_ir = state.func_ir
            if state.func_id.func.__code__ != body:
                return False
            places = only_read_rows(function_ir.blocks)
            for label, block in function_ir.blocks.items():
                found = {number for at, number in places if at == label}
                block.body = list(_with_reads(function_ir, block, found, tables))
            return bool(places)

    return register_pass(mutates_CFG=False, analysis_only=False)(LogAsRead)


def _with_reads(function_ir: Any, block: Any, places: set[int], tables: frozenset[int]) -> Iterator[Any]:
    for number, statement in enumerate(block.body):
        if number in places and statement.value.op == "getitem":
            item = statement.value
            table, index = (guard(get_definition, function_ir, each) for each in (item.value, item.index))
            is_tuple = isinstance(index, ir.Expr) and index.op == "build_tuple"
            if isinstance(table, ir.Arg) and table.index - 1 in tables and not is_tuple:
                operands = item.value, item.index
                yield from call_of(only_read_row_of, operands, block, statement.loc, statement.target)
                continue
        yield statement
