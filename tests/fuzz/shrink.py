"""Makes a failing case small: fewer calls, tasks, statements, arguments, while it fails the same way."""

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .runner import EQUAL, Outcome
from .scenario import Case, Step

Fails = Callable[[Case], bool]


def shrink(case: Case, run: Callable[[Case], list[Outcome]], seconds: float = 90.0) -> tuple[Case, Outcome]:
    """The smallest case found in that time, and how it fails."""
    outcome = _last(run(case))
    kind, deadline = outcome.kind, time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for candidates in CANDIDATES:
            position = 0  # of the next candidate: after a success those of the smaller case, from the same place
            while time.monotonic() < deadline:
                candidate = next((c for n, c in enumerate(candidates(case)) if n == position), None)
                if candidate is None:
                    break
                found = _last(run(candidate))
                if found.kind == kind:
                    case, outcome, changed = candidate, found, True
                else:
                    position += 1
    return case, outcome


def _last(outcomes: list[Outcome]) -> Outcome:
    return outcomes[-1] if outcomes else Outcome(EQUAL)  # a case without a call


def _fewer_steps(case: Case) -> Iterator[Case]:
    for n in reversed(range(len(case.steps))):
        yield replace(case, steps=[*case.steps[:n], *case.steps[n + 1 :]])


def _simpler_place(case: Case) -> Iterator[Case]:
    if case.options:
        yield replace(case, options={})
    for nodes, threads in ((1, 1), (1, 2), (2, 1)):
        if (nodes, threads) < (case.nodes, case.threads):
            yield replace(case, nodes=nodes, threads=threads)


def _fewer_tasks(case: Case) -> Iterator[Case]:
    for n, step in enumerate(case.steps):
        if step.what != "call":
            continue
        tasks = list(range(step.value)) if isinstance(step.value, int) else [int(k) for k in step.value]
        size = len(tasks)
        smaller = []
        if size > 1:
            smaller += [tasks[: size // 2], tasks[size // 2 :]]
            if size <= 6:
                smaller += [tasks[:i] + tasks[i + 1 :] for i in range(size)]
        elif not isinstance(step.value, int) and tasks == [0]:
            yield _with_step(case, n, 1)
        for chosen in smaller:
            yield _with_step(case, n, np.array(chosen))
        if not isinstance(step.value, int) and tasks == list(range(size)):
            yield _with_step(case, n, size)


def _with_step(case: Case, n: int, value: object) -> Case:
    return replace(case, steps=[*case.steps[:n], Step("call", value=value), *case.steps[n + 1 :]])


# -- source --------------------------------------------------------------------------------------------------


def _less_source(case: Case) -> Iterator[Case]:
    tree = ast.parse(case.source)
    for edit in _edits(tree):
        smaller = copy.deepcopy(tree)
        edit(smaller)
        text = ast.unparse(ast.fix_missing_locations(smaller)) + "\n"
        if len(text) < len(case.source):
            yield replace(case, source=text)


def _edits(tree: ast.Module) -> Iterator[Callable[[ast.Module], None]]:
    """Edits of a copy of the tree, large ones first; nodes are found by their position in the walk."""
    nodes = list(ast.walk(tree))
    for number, node in enumerate(nodes):
        for block in ("body", "orelse"):
            statements = getattr(node, block, None)
            if not isinstance(statements, list):
                continue
            for n in reversed(range(len(statements))):
                if _is_needed(statements[n]):
                    continue
                yield lambda copied, at=number, block=block, n=n: _remove(list(ast.walk(copied))[at], block, n)
                if hasattr(statements[n], "body") and not isinstance(statements[n], ast.FunctionDef):
                    yield lambda copied, at=number, block=block, n=n: _unwrap(list(ast.walk(copied))[at], block, n)
    for number, node in enumerate(nodes):
        for name, child in ast.iter_fields(node):
            if name == "func" or (isinstance(node, (ast.Subscript, ast.Attribute)) and name == "value"):
                continue
            if not isinstance(child, ast.expr) or isinstance(getattr(child, "ctx", None), ast.Store):
                continue
            for n in range(len(_parts(child))):
                yield lambda copied, at=number, name=name, n=n: _simplify(list(ast.walk(copied))[at], name, n)


def _is_needed(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Import, ast.Pass)) or (
        isinstance(statement, ast.FunctionDef) and statement.name in ("body", "make")
    )


def _remove(node: ast.AST, block: str, n: int) -> None:
    statements = getattr(node, block)
    del statements[n]
    if not statements and block == "body" and not isinstance(node, ast.Module):
        statements.append(ast.Pass())


def _unwrap(node: ast.AST, block: str, n: int) -> None:
    statements = getattr(node, block)
    statements[n : n + 1] = statements[n].body


def _parts(expression: ast.expr) -> list[ast.expr]:
    """What may stand in place of an expression."""
    match expression:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=values):
            return values
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Call(args=args):
            return [*args, ast.Constant(1)]
        case ast.Subscript() | ast.Name() | ast.Attribute():
            return [ast.Constant(1)]
        case ast.Compare():
            return [ast.Constant(True), ast.Constant(False)]
    return []


def _simplify(node: ast.AST, name: str, part: int) -> None:
    setattr(node, name, _parts(getattr(node, name))[part])


# -- arguments and contents ----------------------------------------------------------------------------------


def _fewer_arguments(case: Case) -> Iterator[Case]:
    tree = ast.parse(case.source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for unused in [a for a in case.args if a.name not in used]:
        smaller = copy.deepcopy(tree)
        for function in ast.walk(smaller):
            if isinstance(function, ast.FunctionDef) and function.name == "body":
                function.args.args = [p for p in function.args.args if p.arg != unused.name]
        args = [a for a in case.args if a is not unused]
        steps = [step for step in case.steps if step.name != unused.name]
        values = {name: value for name, value in case.values.items() if name != unused.name}
        yield replace(case, source=ast.unparse(smaller) + "\n", args=args, values=values, steps=steps)


def _simpler_values(case: Case) -> Iterator[Case]:
    """Shorter tables, and zeros in them."""
    for a in case.args:
        value = case.values[a.name]
        smaller = []
        if a.kind in ("vec", "mat", "cube", "array", "array2", "rec", "ragged") and len(value) > 1:
            smaller += [value[: len(value) // 2], value[:-1]]
        if a.is_map and len(value) > 1:
            smaller.append(dict(list(value.items())[:-1]))
        if isinstance(value, np.ndarray) and not value.dtype.names and value.any():
            smaller.append(np.zeros_like(value))
        for chosen in smaller:
            yield replace(case, values={**case.values, a.name: chosen})


CANDIDATES = (_fewer_steps, _simpler_place, _fewer_tasks, _less_source, _fewer_arguments, _simpler_values)
