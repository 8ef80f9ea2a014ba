"""Random numbers as an argument of a loop: what the user passes, and what a body run by the interpreter sees."""

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload
from numpy.typing import NDArray

from strads.errors import ArgumentError, InputError
from strads.rng.philox import below, mixed_key, random_words, unit_interval

_WORD = (1 << 64) - 1
_LARGEST = (1 << 63) - 1
OUT_OF_RANGE = "rng.integers draws 64-bit integers: from -2**63 to 2**63 - 1"


class RandomNumbers:
    """Random numbers for the tasks of a loop; made by `random`.

    Attributes
    ----------
    seed : int
        The seed.
    calls : int
        How many loops have completed with these numbers. Each draws different ones; set it back to repeat a call.
    """

    def __init__(self, seed: int = 0):
        self.seed = _word("seed", seed)
        self.calls = 0

    @property
    def calls(self) -> int:
        """How many loops have completed; see above."""
        return self._calls

    @calls.setter
    def calls(self, count: int) -> None:
        self._calls = _word("calls", count)

    def key(self, position: int) -> np.uint64:
        """Return the key of the next call's numbers, for the argument at a position of the body's parameters."""
        return np.uint64(mixed_key(np.uint64(self.seed), np.uint64(position), np.uint64(self.calls)))

    def small_state(self) -> int:
        """Return the number of calls, for checkpoints."""
        return self.calls

    def restore_small_state(self, state: int) -> None:
        """Set the number of calls."""
        self.calls = state

    def __repr__(self) -> str:
        return f"strads.random({self.seed})"


def _word(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= _WORD:
        raise ArgumentError(f"{name}={value!r}: give a whole number from 0 to 2**64 - 1")
    return int(value)


def random(seed: int = 0) -> RandomNumbers:
    """Return random numbers that a loop body may draw: the same for any number of threads, nodes and every backend.

    Pass them as an argument of the loop. In the body, `rng.random()` is a number in [0, 1), `rng.integers(n)` a whole
    number from 0 to n - 1, `rng.integers(low, high)` one from low to high - 1, `rng.normal()` is drawn from the
    standard normal distribution, and `rng.choice(table)` is an index drawn with the weights of a table that
    `strads.weights` made. Each number is a function of the seed, the number of the call, the loop index, and how many
    numbers the task has drawn before (Philox2x64-10; Salmon et al. 2011).

    `rng.near(table)` or `rng.near(table, weights)` is a row of a table that the loop may write: drawn from the rows
    that no other thread uses meanwhile, such as the block that the thread works on. So the loop keeps its plan.

    Parameters
    ----------
    seed : int, default 0
        From 0 to 2⁶⁴ − 1.

    Raises
    ------
    ArgumentError
        If `seed` is not such a number.

    Examples
    --------
    >>> import strads
    >>> def scatter(k, x, rng):
    ...     x[k] = rng.normal()
    >>> x, rng = strads.dvector.zeros(4), strads.random(7)
    >>> _ = strads.async_for(range(4), scatter, x, rng)
    """
    return RandomNumbers(seed)


def weights(values: Any) -> NDArray[np.void]:
    """Return the table from which `rng.choice(table)` draws an index i with probability proportional to `values[i]`.

    Drawing takes the same time for any number of weights (alias method; Walker 1977, Vose 1991).

    Parameters
    ----------
    values : array_like of shape (n,)
        Weights, not negative, not all 0.

    Returns
    -------
    ndarray of shape (n,), of records `share` (float64) and `other` (int64)
        A draw picks an entry i uniformly, and returns i with probability `share`, else `other`.

    Raises
    ------
    InputError
        If the weights are not numbers as described; the message names the first that is not.
    """
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights are numbers, one for each index to be drawn: {error}") from error
    if found.ndim != 1 or len(found) == 0:
        raise InputError(f"weights of shape {found.shape}: give one number for each index to be drawn")
    wrong = np.flatnonzero(~np.isfinite(found) | (found < 0))
    if len(wrong):
        raise InputError(f"weight {wrong[0]} is {found[wrong[0]]}: weights are finite and not negative")
    largest = found.max()
    if largest == 0:
        raise InputError("all weights are 0: nothing can be drawn")
    scaled = found / largest  # so that the sum does not overflow
    table = np.zeros(len(found), [("share", np.float64), ("other", np.int64)])
    fill_aliases(scaled * (len(found) / scaled.sum()), table["share"], table["other"])
    return table


@njit(nogil=True, cache=True)
def fill_aliases(scaled, share, other):  # type: ignore[no-untyped-def]
    """Divide each entry between an index with less than the mean weight and one with more."""
    n = len(scaled)
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    smalls = larges = 0
    for i in range(n):
        share[i], other[i] = 1.0, i
        if scaled[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        less, more = small[smalls], large[larges - 1]
        share[less], other[less] = scaled[less], more
        scaled[more] -= 1.0 - scaled[less]
        if scaled[more] < 1.0:
            larges -= 1
            small[smalls] = more
            smalls += 1
    # What remains differs from 1 by rounding only, unless its weight is 0: that must never be drawn.
    for i in range(smalls):
        if scaled[small[i]] <= 0.0:
            share[small[i]], other[small[i]] = 0.0, large[0] if larges > 0 else np.argmax(scaled)


def given_weights(table: NDArray[np.void]) -> NDArray[np.float64]:
    """Return the weights from which `weights` made a table, scaled to a mean of 1."""
    n = len(table)
    return table["share"] + np.bincount(np.clip(table["other"], 0, n - 1), 1.0 - table["share"], n)


# What a draw makes of one or two random words; the same functions serve compiled bodies and the interpreter.


@njit(nogil=True, cache=True)
def integer_between(word, low, high):  # type: ignore[no-untyped-def]
    """A whole number from `low` to `high` - 1, up to 2⁶⁴ of them."""
    beyond = np.uint64(1 << 63)  # compared as such: Numba compares signed with unsigned integers as floats
    is_beyond = high > 0 and np.uint64(high) >= beyond
    if is_beyond and np.uint64(high) > beyond:
        raise ValueError(OUT_OF_RANGE)
    if (low > 0 and np.uint64(low) >= beyond) or (not is_beyond and np.int64(high) <= np.int64(low)):
        raise ValueError("rng.integers has no number to choose from: its range is empty")
    first = np.uint64(np.int64(low))
    count = np.uint64(high) - first
    offset = np.uint64(below(word, count)) if count > 0 else word  # 0: all 2⁶⁴ of them
    return np.int64(first + offset)


@njit(nogil=True, cache=True)
def chosen(words, table):  # type: ignore[no-untyped-def]
    """An index drawn from a table made by `weights`."""
    if len(table) == 0:
        raise ValueError("rng.choice has no index to choose from: the table is empty")
    entry = below(words[0], np.int64(len(table)))
    if unit_interval(words[1]) < table[entry].share:
        return entry
    return min(max(np.int64(table[entry].other), np.int64(0)), np.int64(len(table) - 1))


@njit(nogil=True, cache=True)
def standard_normal(words):  # type: ignore[no-untyped-def]
    """A number from the standard normal distribution (Box and Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - unit_interval(words[0])))
    return radius * np.cos(2.0 * np.pi * unit_interval(words[1]))


@njit(nogil=True, cache=True)
def entry_of_pool(words, first, count, share, other):  # type: ignore[no-untyped-def]
    """An entry of the pool `first..first + count - 1`, made of two random `words`.

    `share` and `other`, by entry, are the pool's alias table, see `Pools`.
    """
    entry = first + below(words[0], np.int64(count))
    if unit_interval(words[1]) >= share[np.uint64(entry)]:
        entry = first + other[np.uint64(entry)]
    return np.uint64(entry)


def unit_number(word: Any, one: Any) -> Any:
    """A number in [0, 1) with the precision of `one`."""
    return unit_interval(word) if one.dtype.itemsize == 8 else np.float32(int(word) >> 40) * np.float32(2.0**-24)


@overload(unit_number, jit_options={"cache": True})
def _compiled_unit_number(word, one):  # type: ignore[no-untyped-def]
    if one == types.float64:
        return lambda word, one: unit_interval(word)

    def single(word, one):  # type: ignore[no-untyped-def]
        return np.float32(np.int64(word >> np.uint64(40))) * np.float32(2.0**-24)

    return single


def check_table(table: Any, draw: str) -> None:
    """Reject at compile time what `weights` has not made; `draw` is the method that draws from it."""
    data = table.member("data") if hasattr(table, "member") else table  # a view, whose accesses are checked
    dtype = getattr(data, "dtype", None)
    if not isinstance(dtype, types.Record) or not {"share", "other"} <= dtype.fields.keys():
        raise TypingError(f"rng.{draw} takes weights made by strads.weights(w): pass that to the loop, in place of w")


class NumbersOfTask:
    """The random numbers that one task after the other draws, in the interpreter.

    Word n of a task is the first or second one, as n is even or odd, of block n // 2 of `random_words` under the key. A
    draw takes the next word; one that needs two takes the next whole block.

    Parameters
    ----------
    key : uint64
        See `RandomNumbers.key`.
    one : float32 or float64
        The number 1 in the precision of the numbers.
    drawn : list of int, optional
        How many words the task has drawn, from this argument or any other that shares the list.
    """

    def __init__(self, key: np.uint64, one: Any, drawn: list[int] | None = None):
        self._key, self._one = key, one
        self._drawn = [0] if drawn is None else drawn
        self.begin(0)

    def begin(self, index: int) -> None:
        """Start the task with a loop index."""
        self._stream = np.uint64(index & _WORD)
        self._drawn[0] = 0

    def _word(self) -> np.uint64:
        count = self._drawn[0]
        self._drawn[0] += 1
        return np.uint64(random_words(self._key, self._stream, np.uint64(count // 2))[count % 2])

    def _words(self) -> tuple[np.uint64, np.uint64]:
        block = (self._drawn[0] + 1) // 2
        self._drawn[0] = 2 * block + 2
        first, second = random_words(self._key, self._stream, np.uint64(block))
        return np.uint64(first), np.uint64(second)

    def random(self) -> Any:
        """Draw a number in [0, 1)."""
        return type(self._one)(unit_number(self._word(), self._one))

    def normal(self) -> Any:
        """Draw from the standard normal distribution."""
        return type(self._one)(standard_normal(self._words()))

    def integers(self, low: int, high: int | None = None) -> int:
        """Draw a whole number below `low`, or from `low` to `high` - 1."""
        first, end = (0, low) if high is None else (low, high)
        if not all(isinstance(bound, int | np.integer) and not isinstance(bound, bool) for bound in (first, end)):
            raise TypeError("rng.integers takes whole numbers")
        if int(first) < -(1 << 63) or int(end) > 1 << 63:
            raise ValueError(OUT_OF_RANGE)
        return integer_between(self._word(), np.int64(first), np.uint64(end) if end > _LARGEST else np.int64(end))

    def choice(self, table: Any) -> int:
        """Draw an index with the weights of a table."""
        return chosen(self._words(), np.asarray(table))

    def near(self, table: Any, weights: Any = None) -> int:
        """Draw a row from those in the attribute `near_pool` of a table, else from all rows.

        It holds the arrays `rows`, `share` and `other` of one pool, see `Pools`.
        """
        pool = getattr(table, "near_pool", None)
        if pool is None and weights is not None:
            return chosen(self._words(), np.asarray(weights))
        if pool is None:
            return integer_between(self._word(), np.int64(0), np.int64(len(table)))
        rows, share, other = pool
        if weights is None:
            return int(rows[integer_between(self._word(), np.int64(0), np.int64(len(rows)))])
        return int(rows[entry_of_pool(self._words(), np.int64(0), len(rows), share, other)])
