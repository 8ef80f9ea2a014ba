"""Checks of an estimator's parameters; every error names the parameter, its value, and the valid values."""

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from strads.checkpoints import Operator, perform
from strads.errors import ArgumentError

MOST = 2**63 - 1  # of whole numbers, which compiled code has in 64 bits
MAX_WORKERS = 1024  # logical ones: a schedule has a job for each pair of worker and block
_MAX_THREADS = 1 << 16  # far more than any machine has: a guard against typing errors


def check_whole_number(name: str, value: Any, *, least: int = 1, what: str = "a whole number") -> None:
    """Reject an argument that is not an integer of at least `least`, and of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ArgumentError(f"{name}={value!r}: give {what}, {least} or more")
    if int(value) > MOST:
        raise ArgumentError(f"{name}={value!r:.60}: give a number below 2**63")


def check_whole_numbers(estimator: Any, *names: str, least: int = 1, or_none: bool = False) -> None:
    """Reject parameters that are not integers of at least `least`, nor None if that is allowed."""
    for name in names:
        value = getattr(estimator, name)
        if not (or_none and value is None):
            check_whole_number(name, value, least=least)


def check_workers(estimator: Any) -> None:
    """Reject an `n_workers` that is neither None nor a possible number of logical workers."""
    check_whole_numbers(estimator, "n_workers", or_none=True)
    if (estimator.n_workers or 0) > MAX_WORKERS:
        raise ArgumentError(f"n_workers={estimator.n_workers}: at most {MAX_WORKERS} are possible")


def check_positive(estimator: Any, *names: str, or_zero: bool = False, most: float = math.inf) -> None:
    """Reject parameters that are not positive (or zero) finite numbers, or above `most`."""
    for name in names:
        value = getattr(estimator, name)
        if not is_number(value) or value < 0 or (value == 0 and not or_zero):
            raise ArgumentError(f"{name}={value!r}: give a {'non-negative' if or_zero else 'positive'} number")
        if value > most:
            raise ArgumentError(f"{name}={value!r}: give {most:g} at most")


def as_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return an argument as an array of numbers, of shape (n,), with n at least 1."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}: {error}: give numbers") from error
    if found.ndim != 1 or not len(found):
        raise ArgumentError(f"{name} has the shape {found.shape}: give one number or more in one dimension")
    return found


def check_share(name: str, value: Any, or_one: bool = False) -> None:
    """Reject an argument that is not strictly between 0 and 1, or 1 if that is allowed."""
    if not is_number(value) or not (0 < value < 1 or (or_one and value == 1)):
        raise ArgumentError(f"{name}={value!r}: give a number between 0 and 1{', or 1' if or_one else ''}")


def check_switches(estimator: Any, *names: str) -> None:
    """Reject parameters that are neither True (or 1) nor False (or 0)."""
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, numbers.Integral | np.bool_) or value not in (0, 1):
            raise ArgumentError(f"{name}={value!r}: give True or False")


def check_choice(estimator: Any, name: str, choices: Sequence[str]) -> None:
    """Reject a parameter that is not one of the choices."""
    value = getattr(estimator, name)
    if value not in choices:
        raise ArgumentError(f"{name}={value!r} is unknown; choose one of {', '.join(choices)}")


def check_n_jobs(n_jobs: Any) -> None:
    """Reject a number of threads that is neither None, -1 (all cores), nor possible."""
    if n_jobs is None:
        return
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if not whole or not (n_jobs >= 1 or n_jobs == -1):
        raise ArgumentError(f"n_jobs={n_jobs!r}: give a number of threads, 1 or more, or -1 for all cores")
    if n_jobs > _MAX_THREADS:
        raise ArgumentError(f"n_jobs={n_jobs!r:.60}: at most {_MAX_THREADS} threads are possible")


def check_verbose(estimator: Any) -> None:
    """Reject a `verbose` that is neither True, False, nor a whole number, 0 or more."""
    if not isinstance(estimator.verbose, bool):
        check_whole_numbers(estimator, "verbose", least=0)


def check_seed(estimator: Any) -> None:
    """Reject a `random_state` that is neither a whole number, 0 or more, nor None, nor a `RandomState`."""
    if estimator.random_state is None or isinstance(estimator.random_state, np.random.RandomState):
        return
    check_whole_numbers(estimator, "random_state", least=0)


def recorded_seed(random_state: Any) -> int:
    """Return the seed that a `random_state` stands for: itself, or a draw of NumPy's generator or the one given.

    A program that is restarted from a checkpoint gets the seed that NumPy's generator gave it before. It still draws,
    so that what a generator with a seed gives to the program afterwards is the same.
    """
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    drawn = int(check_random_state(random_state).randint(2**31))
    if random_state is not None:
        return drawn
    return int(perform(Operator("random_state=None", lambda: drawn, lambda: None)))


def fixed_seed(random_state: Any) -> int:
    """Return the seed of what a fitted model computes, the same every time: `random_state`, or 0 for a generator."""
    return int(random_state) if isinstance(random_state, numbers.Integral) else 0


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number, and not True or False."""
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)
