"""Compiler pass for reconnaissance: a row that the body binds to a variable but never writes is logged as read."""

from collections.abc import Iterator
from types import CodeType
from typing import Any

from numba.core import ir
from numba.core.ir_utils import get_definition, guard

from strads.bodies.analysis.read_only_rows import only_read_rows
from strads.bodies.passes.inserted_calls import call_of
from strads.engine.views.recorded_rows import read_row_of


def log_as_read(function_ir: Any, code: CodeType, *, body: CodeType, tables: frozenset[int]) -> None:
    """Rewrite a body, given some of its arguments, numbered from 0 without the loop index."""
    if code == body:
        places = only_read_rows(function_ir.blocks)
        for label, block in function_ir.blocks.items():
            found = {number for at, number in places if at == label}
            block.body = list(_with_reads(function_ir, block, found, tables))


def _with_reads(function_ir: Any, block: Any, places: set[int], tables: frozenset[int]) -> Iterator[Any]:
    for number, statement in enumerate(block.body):
        if number in places and statement.value.op == "getitem":
            item = statement.value
            table, index = (guard(get_definition, function_ir, each) for each in (item.value, item.index))
            is_tuple = isinstance(index, ir.Expr) and index.op == "build_tuple"
            if isinstance(table, ir.Arg) and table.index - 1 in tables and not is_tuple:
                operands = item.value, item.index
                yield from call_of(read_row_of, operands, block, statement.loc, statement.target)
                continue
        yield statement
