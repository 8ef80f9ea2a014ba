"""Python mode, for debugging: the interpreter runs a loop one task at a time, with every access checked.

The same tables also explain a failed reconnaissance: the task is run again on private copies, and Python's
traceback gives the line.
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from strads.bodies.functions import plain_function
from strads.bodies.source_location import innermost_user_line
from strads.dds import NOT_FOUND
from strads.engine.views.roles import Role
from strads.errors import AccessPatternError, BodyError, BodyIndexError, BodyKeyError, StradsError
from strads.loops.arguments import BoundArguments, RandomArgument, TableArgument
from strads.loops.casting import Cast
from strads.loops.indices import LoopIndices
from strads.rng.numbers import NumbersOfTask
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.pools import Pools

_INT64 = np.iinfo(np.int64)


class _OutOfBounds(IndexError):
    pass


class _NoSuchKey(KeyError):
    pass


class _Unrecorded(Exception):
    pass


class _Record(np.record):  # type: ignore[misc]
    """A record whose fields take precedence over its methods: `r.item` is a field if there is one of this name."""

    def __getattribute__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "dtype").fields or {}
        return self[name] if name in fields else super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in (object.__getattribute__(self, "dtype").fields or {}):  # there may be a field `dtype`
            self[name] = value
        else:
            super().__setattr__(name, value)


class _Pool:
    """The rows of a table that the tasks of a job draw."""

    def __init__(self, pools: Pools, job: int):
        own = slice(pools.low[job], pools.high[job])
        self.arrays = pools.rows[own], pools.share[own], pools.other[own]
        self.members = frozenset(self.arrays[0].tolist())


@dataclass
class _Task:
    """The accesses allowed to the current task, and those that it has made."""

    index: int
    recorded: set[tuple[int, int]] | None  # pairs (table, row); None: everything is allowed
    near: dict[int, _Pool] = field(default_factory=dict)  # by table
    seen: set[tuple[int, int]] = field(default_factory=set)


class CheckedTable(NDArrayOperatorsMixin):
    """A table as a body sees it in Python mode.

    Parameters
    ----------
    argument
        The table.
    number
        Its number in the access records, or None for a table that is only read.
    private
        Whether rows are copies that are discarded after the task.
    """

    def __init__(self, argument: TableArgument, number: int | None, *, private: bool):
        self._argument = argument
        self._number = number
        self._private = private
        self._copies: dict[int, Any] = {}
        self._task = _Task(0, None)
        storage = argument.storage
        self._data: Any = storage
        if argument.record:
            self._data = argument.dense.view((_Record, argument.dense.dtype))

    def begin(self, task: _Task) -> None:
        """Start a task: private copies are discarded."""
        self._task = task
        self._copies.clear()

    def __len__(self) -> int:
        return len(self._data)

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, …); (rows,) for ragged rows."""
        return (len(self),) if self._argument.ragged else self._argument.dense.shape

    @property
    def near_pool(self) -> Any:
        """The rows that the running job draws; see `NumbersOfTask.near`."""
        pool = None if self._number is None else self._task.near.get(self._number)
        return None if pool is None else pool.arrays

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; of rows, if they are ragged."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        return self._argument.storage.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._require_readonly("as a whole")
        return np.array(self._data, dtype=dtype)

    def __iter__(self) -> Iterator[Any]:
        self._require_readonly("as a whole")
        return iter(self._frozen(self._data))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        arrays = [np.asarray(item) if isinstance(item, CheckedTable) else item for item in inputs]
        return getattr(ufunc, method)(*arrays, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._require_readonly(f"as a whole (.{name})")
        return getattr(self._frozen(self._data), name)

    def _require_readonly(self, how: str) -> None:
        if self._number is not None:
            name = self._argument.name
            raise _Unrecorded(f"{name} is used {how}, but the loop writes it: index it row by row")

    def _row(self, index: Any) -> int:
        position = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= position < len(self):
            raise _OutOfBounds(
                f"index {int(index)} is out of range for table {self._argument.name!r} with {len(self)} rows"
            )
        if self._number is not None:
            access = (self._number, position)
            self._task.seen.add(access)
            pool = self._task.near.get(self._number)
            drawn = pool is not None and position in pool.members
            if self._task.recorded is not None and access not in self._task.recorded and not drawn:
                rows = sorted(row for table, row in self._task.recorded if table == self._number)
                raise _Unrecorded(
                    f"it touches {self._argument.row_name(position)} of {self._argument.name!r}; "
                    f"recorded for this task were {self._argument.row_names(rows)}"
                )
        return position

    @staticmethod
    def _frozen(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        return value

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            row = self[index[0]]
            rest = index[1:]
            return row[rest if len(rest) > 1 else rest[0]] if rest else row
        if not hasattr(index, "__index__"):
            self._require_readonly(f"with the index {index!r}")
            return self._frozen(self._data[index])
        position = self._row(index)
        if self._private and self._writable:
            if position not in self._copies:
                value = self._data[position]
                self._copies[position] = value.copy() if hasattr(value, "copy") else value
            return self._copies[position]
        value = self._data[position]
        return value if self._writable else self._frozen(value)

    @property
    def _writable(self) -> bool:
        return self._number is not None or self._argument.relaxed

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, tuple):
            row = self[index[0]]
            row[index[1:] if len(index) > 2 else index[1]] = value
            return
        if not self._writable:
            raise _Unrecorded(f"it writes {self._argument.name!r}, which reconnaissance took for read-only")
        if not hasattr(index, "__index__"):
            self._require_readonly(f"with the index {index!r}")
        position = self._row(index)
        if not self._private:
            self._data[position] = value
            return
        current = self[index]
        if isinstance(current, np.ndarray):
            current[...] = value
        else:
            self._copies[position] = self.dtype.type(value)


class CheckedMap:
    """A map as a body sees it in Python mode: the table of its values, found by key."""

    def __init__(self, argument: TableArgument, table: CheckedTable):
        assert argument.index is not None
        self._name = argument.name
        self._index = argument.index
        self._table = table

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: Any) -> bool:
        return self._find(key) != NOT_FOUND

    def __getitem__(self, index: Any) -> Any:
        return self._table[self._with_row(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._table[self._with_row(index)] = value

    def _with_row(self, index: Any) -> Any:
        """Return an index of the table, with the key replaced by its row."""
        key, *rest = index if isinstance(index, tuple) else (index,)
        row = self._find(key)
        if row == NOT_FOUND:
            raise _NoSuchKey(
                f"key {key} is not in map {self._name!r} with {len(self)} keys; a loop body cannot add keys: "
                "add them before the loop"
            )
        return (row, *rest) if rest else row

    def _find(self, key: Any) -> int:
        number = operator.index(key)
        return self._index.find(number) if _INT64.min <= number <= _INT64.max else NOT_FOUND


class _Ignored:
    """An accumulator whose sum is not needed."""

    def add(self, amount: Any) -> None:
        """Add nothing."""


def _arguments(
    bound: BoundArguments, table_of: dict[int, int], *, private: bool
) -> tuple[list[Any], list[CheckedTable | NumbersOfTask]]:
    """Return the arguments passed to the body, and those among or behind them that a task begins anew."""
    tables: dict[int, CheckedTable] = {}
    result: list[Any] = []
    others: list[NumbersOfTask] = []
    drawn = [0]
    for position, argument in enumerate(bound.arguments):
        if isinstance(argument, TableArgument):
            same = bound.same[position]
            if same not in tables:
                tables[same] = CheckedTable(argument, table_of.get(position), private=private)
            result.append(CheckedMap(argument, tables[same]) if argument.keyed else tables[same])
        elif isinstance(argument, RandomArgument):
            key, one = argument.value
            numbers = NumbersOfTask(key, one, drawn)
            result.append(numbers)
            others.append(numbers)
        elif hasattr(argument, "accumulator"):
            result.append(_Ignored() if private else argument.accumulator)
        else:
            result.append(argument.value)
    return result, [*tables.values(), *others]


def run_checked(
    body: Callable[..., Any],
    bound: BoundArguments,
    cast: Cast,
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
    arguments, tables = _arguments(bound, cast.table_of, private=False)
    function = plain_function(body)
    guarded = {cast.table_of[position] for position in cast.with_role(Role.GUARDED)}
    with np.errstate(all="ignore"):
        for job, (first, last) in enumerate(pairwise(plan.offsets.tolist())):
            own_pools = [_Pool(of_group, job) for of_group in pools]
            near = {cast.table_of[position]: own_pools[group] for position, group in cast.near.items()}
            if records is None:
                for position in plan.order[first:last].tolist():
                    _run_task(function, _Task(indices[position], None, near), arguments, tables, "")
                continue
            of_tasks = [records.of_task(int(task)) for task in plan.order[first:last]]
            # As in a compiled run: rows that another task of the job touches are allowed if values select them.
            of_job = {access for own in of_tasks for access in own if access[0] in guarded}
            for position, own in zip(plan.order[first:last].tolist(), of_tasks, strict=True):
                task = _Task(indices[position], own | of_job, near)
                _run_task(function, task, arguments, tables, "")
                if exact:
                    _check_complete(task, {access for access in own if access[0] not in guarded}, bound, cast.table_of)


def _check_complete(
    task: _Task, recorded: set[tuple[int, int]], bound: BoundArguments, table_of: dict[int, int]
) -> None:
    missing = sorted(recorded - task.seen)
    if missing:
        table, row = missing[0]
        argument = next(bound.tables()[position] for position, number in table_of.items() if number == table)
        raise AccessPatternError(
            f"task {task.index}: {argument.row_name(row)} of {argument.name!r} was recorded, but the body did not "
            "touch it this time; its accesses must not depend on values that change"
        )


def explain_failure(body: Callable[..., Any], bound: BoundArguments, table_of: dict[int, int], index: int) -> None:
    """Run one task on private copies; raises any error with its line, and returns if there is none."""
    arguments, tables = _arguments(bound, table_of, private=True)
    with np.errstate(all="ignore"):
        _run_task(plain_function(body), _Task(index, None), arguments, tables, "; no table was changed")


def _run_task(
    function: Callable[..., Any],
    task: _Task,
    arguments: list[Any],
    beginning: list[CheckedTable | NumbersOfTask],
    consequence: str,
) -> None:
    for argument in beginning:
        if isinstance(argument, NumbersOfTask):
            argument.begin(task.index)
        else:
            argument.begin(task)
    try:
        function(task.index, *arguments)
    except Exception as error:
        _translate(error, task, consequence)


def _translate(error: Exception, task: _Task, consequence: str) -> NoReturn:
    where = innermost_user_line(error.__traceback__)
    if isinstance(error, StradsError):
        raise error
    if isinstance(error, _Unrecorded):
        raise AccessPatternError(
            f"{where}\n  task {task.index}: {error}. The plan would not be safe: the rows that a body touches may "
            "depend on indices and read-only tables, not on values that the loop changes"
        ) from None
    if isinstance(error, ValueError) and "read-only" in str(error):
        raise AccessPatternError(
            f"{where}\n  task {task.index} writes a row of a table that reconnaissance took for read-only"
        ) from error
    if isinstance(error, _NoSuchKey):
        raise BodyKeyError(f"{where}\n  task {task.index}: {error.args[0]}{consequence}") from error
    if isinstance(error, IndexError):
        detail = str(error) if isinstance(error, _OutOfBounds) else f"within a row, {error}"
        raise BodyIndexError(f"{where}\n  task {task.index}: {detail}{consequence}") from error
    raise BodyError(f"{where}\n  task {task.index} raised {type(error).__name__}: {error}{consequence}") from error
