"""The promise of `async_for`, checked: the result of a serial order, or a `StradsError` and tables as before."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import strads
from strads.rng.numbers import NumbersOfTask, RandomNumbers
from strads.schedule.details import Pools
from strads.schedule.plan import Plan


class Table(np.ndarray):  # type: ignore[type-arg]
    """An array from which `rng.near` draws the rows of one job."""

    near_pool: Any = None


class Drawing:
    """What plain Python works on, with the rows that `rng.near` draws at each place of the recorded order."""

    def __init__(self, plan: Plan, body: Callable[..., Any], plain: list[Any]):
        names = list(inspect.signature(getattr(body, "py_func", body)).parameters)[1:]
        self.near: dict[int, Pools] = {
            p: plan.details.near[name] for p, name in enumerate(names) if name in plan.details.near
        }
        self.job = np.repeat(np.arange(plan.jobs), np.diff(plan.offsets))
        self.plain = [a.view(Table) if p in self.near else a for p, a in enumerate(plain)]

    def at(self, place: int) -> list[Any]:
        """Return the arguments for a task."""
        for position, pools in self.near.items():
            own = slice(pools.low[self.job[place]], pools.high[self.job[place]])
            self.plain[position].near_pool = pools.rows[own], pools.share[own], pools.other[own]
        return self.plain


def contents(arguments: tuple[Any, ...]) -> list[Any]:
    """Copy what plain Python works on in place of the arguments; records have their fields as attributes."""
    found: list[Any] = []
    drawn = [0]
    for argument in arguments:
        if isinstance(argument, strads.dvector):
            array = copy.deepcopy(argument.to_numpy())
            found.append(array.view(np.recarray) if argument.is_records else array)
        elif isinstance(argument, RandomNumbers):
            floats = [a.dtype for a in arguments if isinstance(a, strads.dvector) and a.dtype.kind == "f"]
            found.append(
                NumbersOfTask(argument.key(len(found)), np.result_type(*floats or [np.float64]).type(1), drawn)
            )
        else:
            found.append(argument)
    return found


def assert_contents(arguments: tuple[Any, ...], expected: list[Any], what: str = "") -> None:
    """Check that the tables among the arguments hold what is expected, bit for bit."""
    for position, (argument, values) in enumerate(zip(arguments, expected, strict=True)):
        if isinstance(argument, strads.dvector):
            found = argument.to_numpy()
            if isinstance(found, list):  # ragged rows
                assert len(found) == len(values)
                found, values = np.concatenate(found), np.concatenate(values)
            np.testing.assert_array_equal(found, values, f"argument {position} {what}")


def run_or_refuse(indices: Any, body: Callable[..., Any], *arguments: Any, **options: Any) -> strads.StradsError | None:
    """Run a loop, and then its body by plain Python in the recorded order, on copies of the tables as they were.

    Returns
    -------
    None if both agree; the error if strads refused and left all tables alone.
    """
    plain = contents(arguments)
    try:
        statistics = strads.async_for(indices, body, *arguments, record_order=True, **options)
    except strads.StradsError as error:
        assert_contents(arguments, plain, f"after {error!r} of {body.__name__}")
        return error
    assert statistics.order is not None
    drawing = Drawing(statistics.plan, body, plain)
    for place, k in enumerate(statistics.order.tolist()):
        for argument in plain:
            if isinstance(argument, NumbersOfTask):
                argument.begin(k)
        try:
            body(k, *drawing.at(place))
        except Exception as error:
            raise AssertionError(f"strads gave a result where {body.__name__}({k}, …) fails in Python") from error
    assert_contents(arguments, plain, f"after {body.__name__}")
    return None


def refuse(
    expected: type[strads.StradsError], indices: Any, body: Callable[..., Any], *arguments: Any, **options: Any
) -> None:
    """Run a loop that must be refused with an error, all tables left as they are."""
    error = run_or_refuse(indices, body, *arguments, **options)
    assert isinstance(error, expected), f"{body.__name__}: {error!r}"
