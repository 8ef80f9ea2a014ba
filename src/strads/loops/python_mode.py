"""Python mode, for debugging: the interpreter runs a loop one task at a time, with every access checked.

The same tables also explain a failed reconnaissance: the task is run again on private copies, and Python's
traceback gives the line. And they show what rows a few tasks touch, in less time than a recorder takes to compile.
"""

import contextlib
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from strads.bodies.functions import plain_function
from strads.engine.views.checked import (
    CheckedMap,
    CheckedTable,
    CheckedTask,
    DrawnRows,
    NoSuchKey,
    OutOfBounds,
    UnrecordedAccess,
    row_name,
)
from strads.engine.views.roles import Role
from strads.errors import AccessPatternError, BodyError, BodyIndexError, BodyKeyError, StradsError
from strads.loops.argument_roles import ArgumentRoles
from strads.loops.arguments import AccumulatorArgument, BoundArguments, RandomArgument, TableArgument
from strads.loops.indices import LoopIndices
from strads.rng.numbers import NumbersOfTask
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords, SparseRecords
from strads.schedule.records.pools import Pools
from strads.user_code.source_location import innermost_user_line

_LOOKED_AT, _FEWEST, _MAX_LINES = 64, 8, 400_000  # tasks, and lines of Python that they execute together
_MAX_SECONDS = 0.5  # for lines that take much longer than usual


def _arguments(
    bound: BoundArguments, table_of: dict[int, int], *, private: bool
) -> tuple[list[Any], list[CheckedTable | NumbersOfTask]]:
    """Return the arguments passed to the body, and the tables and random numbers of these that each task resets."""
    tables: dict[int, CheckedTable] = {}
    result: list[Any] = []
    others: list[NumbersOfTask] = []
    drawn = [0]
    for position, argument in enumerate(bound.arguments):
        if isinstance(argument, TableArgument):
            same = bound.same[position]
            if same not in tables:
                tables[same] = CheckedTable(
                    argument.name,
                    argument.storage,
                    table_of.get(position),
                    index=argument.index,
                    is_relaxed=argument.relaxed,
                    private=private,
                )
            index = argument.index
            result.append(tables[same] if index is None else CheckedMap(argument.name, index, tables[same]))
        elif isinstance(argument, RandomArgument):
            key, one = argument.value
            others.append(NumbersOfTask(key, one, drawn))
            result.append(others[-1])
        elif isinstance(argument, AccumulatorArgument):
            result.append(argument.empty().accumulator if private else argument.accumulator)
        else:
            result.append(argument.value)
    return result, [*tables.values(), *others]


def run_checked(
    body: Callable[..., Any],
    bound: BoundArguments,
    argument_roles: ArgumentRoles,
    indices: LoopIndices,
    plan: Plan,
    records: AccessRecords | None,
    pools: Sequence[Pools],
    *,
    exact: bool,
) -> None:
    """Run a loop in the interpreter, in the order of its plan; every access is checked, if any were recorded.

    `pools`: for each group of tables, the rows that `near` draws. `exact`: whether a task makes all accesses that were
    recorded.

    Raises
    ------
    AccessPatternError
        At the first access that differs from the recorded ones; the message names task, line, table and row.
    BodyIndexError, BodyError
        If the body fails.
    """
    arguments, tables = _arguments(bound, argument_roles.table_of, private=False)
    function = plain_function(body)
    guarded = {argument_roles.table_of[position] for position in argument_roles.with_role(Role.GUARDED)}
    with np.errstate(all="ignore"):
        for job, (first, last) in enumerate(pairwise(plan.offsets.tolist())):
            own_pools = [DrawnRows(of_group, job) for of_group in pools]
            near = {
                argument_roles.table_of[position]: own_pools[group] for position, group in argument_roles.near.items()
            }
            if records is None:
                for position in plan.order[first:last].tolist():
                    _run_task(function, CheckedTask(indices[position], None, near), arguments, tables, "")
                continue
            of_tasks = [records.of_task(int(task)) for task in plan.order[first:last]]
            # As in a compiled run: rows that another task of the job touches are allowed if values select them.
            of_job = {access for own in of_tasks for access in own if access[0] in guarded}
            for position, own in zip(plan.order[first:last].tolist(), of_tasks, strict=True):
                task = CheckedTask(indices[position], own | of_job, near)
                _run_task(function, task, arguments, tables, "")
                if exact:
                    _check_complete(
                        task, {access for access in own if access[0] not in guarded}, bound, argument_roles.table_of
                    )


def _check_complete(
    task: CheckedTask, recorded: set[tuple[int, int]], bound: BoundArguments, table_of: dict[int, int]
) -> None:
    missing = sorted(recorded - task.seen)
    if missing:
        table, row = missing[0]
        argument = next(bound.tables[position] for position, number in table_of.items() if number == table)
        raise AccessPatternError(
            f"task {task.index}: {row_name(row, argument.index)} of {argument.name!r} was recorded, but the body did "
            "not touch it this time; its accesses must not depend on values that change"
        )


def explain_failure(body: Callable[..., Any], bound: BoundArguments, table_of: dict[int, int], index: int) -> None:
    """Run one task on private copies; raises any error with its line, and returns if there is none."""
    arguments, tables = _arguments(bound, table_of, private=True)
    with np.errstate(all="ignore"):
        _run_task(plain_function(body), CheckedTask(index, None), arguments, tables, "; no table was changed")


class _TooLong(Exception):
    """Tasks execute too many lines to be run in the interpreter."""


def record_few(
    body: Callable[..., Any], bound: BoundArguments, argument_roles: ArgumentRoles, indices: LoopIndices
) -> AccessRecords | None:
    """Record a few tasks from all over a loop, each on private copies of rows; a row counts as written if it changes.

    None if one of them fails, or if they take long. Integers are those of NumPy, which wrap around as compiled ones do.
    """
    arguments, beginning = _arguments(bound, argument_roles.table_of, private=True)
    function, count = _with_fixed_integers(plain_function(body)), min(_LOOKED_AT, len(indices))
    tags, rows, offsets = list[int](), list[int](), [0]
    try:
        with np.errstate(all="ignore"), _limited(_MAX_LINES, _MAX_SECONDS):
            for number in range(count):
                task = CheckedTask(indices[(2 * number + 1) * len(indices) // (2 * count)], None)
                _begin(beginning, task)
                function(np.int64(task.index), *arguments)
                changed = {
                    access for table in beginning if isinstance(table, CheckedTable) for access in table.changed()
                }
                seen = sorted(task.seen)
                tags += [2 * table | ((table, row) in changed) for table, row in seen]
                rows += [row for _, row in seen]
                offsets.append(len(rows))
    except _TooLong:
        if len(offsets) <= _FEWEST:
            return None
    except Exception:  # which the compiled body may not raise, or which its run is going to explain
        return None
    shapes = argument_roles.table_shapes(bound, by_row=True)
    return SparseRecords(shapes, np.array(offsets, np.int64), np.array(rows, np.int64), np.array(tags, np.uint8))


def _with_fixed_integers(function: types.FunctionType) -> types.FunctionType:
    """Return a function with integers of 64 bits in place of its literal ones."""
    literals = (np.int64(c) if type(c) is int and _fits(c) else c for c in function.__code__.co_consts)
    code = function.__code__.replace(co_consts=tuple(literals))
    return types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


def _fits(number: int) -> bool:
    return np.iinfo(np.int64).min <= number <= np.iinfo(np.int64).max


@contextlib.contextmanager
def _limited(lines: int, seconds: float) -> Iterator[None]:
    """Raise `_TooLong` in Python code that executes more lines: a count, unlike time, is the same everywhere.

    So is what follows from it. Only lines that take extremely long are stopped by the clock.
    """
    left, before, end = [lines], sys.gettrace(), time.perf_counter() + seconds

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename in (__file__, contextlib.__file__):  # which restores the tracer
            return None
        left[0] -= event == "line"
        if left[0] < 0 or time.perf_counter() > end:
            raise _TooLong
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _begin(beginning: list[CheckedTable | NumbersOfTask], task: CheckedTask) -> None:
    for argument in beginning:
        if isinstance(argument, NumbersOfTask):
            argument.begin(task.index)
        else:
            argument.begin(task)


def _run_task(
    function: Callable[..., Any],
    task: CheckedTask,
    arguments: list[Any],
    beginning: list[CheckedTable | NumbersOfTask],
    consequence: str,
) -> None:
    _begin(beginning, task)
    try:
        function(task.index, *arguments)
    except Exception as error:
        _translate(error, task, consequence)


def _translate(error: Exception, task: CheckedTask, consequence: str) -> NoReturn:
    where = innermost_user_line(error.__traceback__) or "the loop body"
    if isinstance(error, StradsError):
        raise error
    if isinstance(error, UnrecordedAccess):
        raise AccessPatternError(
            f"{where}\n  task {task.index}: {error}. The plan would not be safe: the rows that a body touches may "
            "depend on indices and read-only tables, not on values that the loop changes"
        ) from None
    if isinstance(error, ValueError) and "read-only" in str(error):
        raise AccessPatternError(
            f"{where}\n  task {task.index} writes a row of a table that reconnaissance took for read-only"
        ) from error
    if isinstance(error, NoSuchKey):
        raise BodyKeyError(f"{where}\n  task {task.index}: {error.args[0]}{consequence}") from error
    if isinstance(error, IndexError):
        detail = str(error) if isinstance(error, OutOfBounds) else f"within a row, {error}"
        raise BodyIndexError(f"{where}\n  task {task.index}: {detail}{consequence}") from error
    raise BodyError(f"{where}\n  task {task.index} raised {type(error).__name__}: {error}{consequence}") from error
