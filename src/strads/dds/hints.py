"""Access hints for loops, used where inference is not enough (thesis §7.1.3)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from strads.dds._keyed import KeyedTable
from strads.dds.dmultimap import dmultimap
from strads.dds.dvector import dvector
from strads.errors import ArgumentError, InputError

_INT64 = np.iinfo(np.int64)


class Hint:
    """What a hint is for: the attribute `table`."""

    table: dvector | KeyedTable


@dataclass(frozen=True)
class Readonly(Hint):
    """A table that the loop body promises not to write; made by `readonly`."""

    table: dvector | KeyedTable

    def __post_init__(self) -> None:
        _check_table("readonly", self.table)


@dataclass(frozen=True)
class Relaxed(Hint):
    """A table with a replica for each thread; made by `relaxed`."""

    table: dvector | KeyedTable

    def __post_init__(self) -> None:
        _check_table("relaxed", self.table)
        is_ragged = isinstance(self.table, dmultimap) or (isinstance(self.table, dvector) and self.table.is_ragged)
        dtype = self.table.dtype
        if is_ragged or (dtype is not None and dtype.names is not None):
            kind = "ragged rows" if is_ragged else "records"
            raise ArgumentError(f"relaxed sums the changes of replicas, so it needs rows of numbers, not {kind}")


def readonly(v: dvector | KeyedTable) -> Readonly:
    """Promise that the loop body does not write `v`.

    Raises
    ------
    ArgumentError
        If `v` is not a dvector, dmap or dmultimap.
    """
    return Readonly(v)


def relaxed(v: dvector | KeyedTable) -> Relaxed:
    """Let each thread work on a replica of `v`; changes are summed at synchronization points.

    Accesses to `v` do not count as conflicts, so the result is not serializable with respect to it.

    Raises
    ------
    ArgumentError
        If `v` is not a dvector or dmap of numbers.
    """
    return Relaxed(v)


@dataclass(frozen=True)
class Snapshot(Hint):
    """A table as it is when a loop starts; made by `snapshot`."""

    table: dvector

    def __post_init__(self) -> None:
        if not isinstance(self.table, dvector) or self.table.is_ragged:
            what = "ragged rows" if isinstance(self.table, dvector) else type(self.table).__name__
            raise ArgumentError(f"snapshot takes a dvector of numbers, rows or records, not {what}")


def snapshot(v: dvector) -> Snapshot:
    """Let the body read `v` as it was when the loop started, whatever the loop writes into it.

    Such reads are of a copy, which each call of the loop makes: they conflict with nothing, so any task may read any
    row, and the result stays the same for any number of threads. The body must not write it; pass the table itself as
    another argument for that.

    Raises
    ------
    ArgumentError
        If `v` is not a dvector of numbers, rows or records.

    Examples
    --------
    >>> import strads
    >>> def smooth(k, x, old):
    ...     x[k] = 0.5 * (old[k - 1] + old[(k + 1) % len(old)])
    >>> x = strads.dvector.uniform(8, seed=0)
    >>> _ = strads.async_for(range(8), smooth, x, strads.snapshot(x))
    """
    return Snapshot(v)


def at_start(argument: Any) -> Any:
    """Return an argument of a loop that starts now: of a snapshot, the copy that the body reads."""
    return argument.table.to_numpy(copy=True) if isinstance(argument, Snapshot) else argument


class Accumulator:
    """A sum that all tasks of a loop add to but none reads; made by `accumulator`.

    Parameters
    ----------
    initial : float or int
        Initial value of the sum, restored by `reset`. A float sums in float64, an int or bool in int64.

    Raises
    ------
    ArgumentError
        If `initial` is not a real number.
    """

    def __init__(self, initial: float = 0.0) -> None:
        if isinstance(initial, bool | int | np.bool_ | np.integer):
            self._initial: float = _int64(int(initial))
        elif isinstance(initial, float | np.floating):
            self._initial = float(initial)
        else:
            raise ArgumentError(f"an accumulator starts from a float or an int, not from {initial!r:.60}")
        self._value = self._initial

    @property
    def value(self) -> float:
        """The sum so far, a Python float or int."""
        return self._value

    @property
    def dtype(self) -> np.dtype:
        """float64 or int64."""
        return np.dtype(np.int64 if isinstance(self._initial, int) else np.float64)

    def add(self, x: float) -> None:
        """Add a number.

        Raises
        ------
        ArgumentError
            If `x` is not a real number, or is fractional while the sum is an int.
        InputError
            If an int sum overflows int64.
        """
        is_integer = isinstance(x, bool | int | np.bool_ | np.integer)
        if not is_integer and not isinstance(x, float | np.floating):
            raise ArgumentError(f"an accumulator adds numbers, not {x!r:.60}")
        if isinstance(self._initial, float):
            self._value += float(x)
        elif is_integer:
            self._value = _int64(int(self._value) + int(x))
        else:
            raise ArgumentError(f"this accumulator sums ints and cannot add {x!r}: make it with accumulator(0.0)")

    def reset(self) -> None:
        """Return to the initial value."""
        self._value = self._initial

    def small_state(self) -> float:
        """Return the sum, for checkpoints."""
        return self._value

    def restore_small_state(self, state: float) -> None:
        """Set the sum."""
        self._value = state

    def __repr__(self) -> str:
        return f"accumulator({self._value!r})"


def accumulator(initial: float = 0.0) -> Accumulator:
    """Return a sum over the tasks of a loop: the body calls `loss.add(x)`; afterwards `loss.value` is the sum.

    See `Accumulator` for dtypes and errors.
    """
    return Accumulator(initial)


def _check_table(hint: str, table: object) -> None:
    if not isinstance(table, dvector | KeyedTable):
        raise ArgumentError(
            f"{hint} takes a dvector or a map, not {type(table).__name__}: make one with strads.dvector(…)"
        )


def _int64(total: int) -> int:
    if not _INT64.min <= total <= _INT64.max:
        raise InputError(f"the sum {total} does not fit into int64: use accumulator(0.0)")
    return total
