"""What a call does to its arguments, for functions that Numba knows: does it write them, return a view?"""

import builtins
import math
import types
from operator import contains
from typing import Any

import numpy as np

# Functions and methods whose result may share memory with their first argument.
_VIEWS = frozenset(
    [
        "asarray",
        "ascontiguousarray",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "broadcast_to",
        "expand_dims",
        "flip",
        "fliplr",
        "flipud",
        "ravel",
        "real",
        "imag",
        "reshape",
        "rollaxis",
        "squeeze",
        "swapaxes",
        "transpose",
        "view",
        "T",
        "diag",
    ]
)
_WRITING_METHODS = frozenset(["fill", "itemset", "partition", "put", "resize", "setfield", "sort", "setflags"])
_READING_METHODS = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "astype",
        "copy",
        "cumprod",
        "cumsum",
        "dot",
        "flatten",
        "item",
        "max",
        "mean",
        "min",
        "nonzero",
        "prod",
        "ptp",
        "repeat",
        "std",
        "sum",
        "take",
        "tolist",
        "tobytes",
        "trace",
        "var",
    ]
)
_ALLOCATING_FUNCTIONS = frozenset(["arange", "empty", "eye", "full", "identity", "linspace", "ones", "tri", "zeros"])
_WRITING_FUNCTIONS = frozenset(["copyto", "fill_diagonal", "place", "put", "putmask", "shuffle"])


def is_view(name: str) -> bool:
    """Whether a NumPy function, method or attribute of this name may return a view of its argument."""
    return name in _VIEWS


def allocates(function: Any) -> bool:
    """Whether a NumPy function makes an array whose size its arguments tell."""
    module = getattr(function, "__module__", None) or ""
    return module.split(".")[0] == "numpy" and getattr(function, "__name__", "") in _ALLOCATING_FUNCTIONS


def method_writes(name: str) -> bool | None:
    """Whether an array method writes its array; None when it is not known."""
    if name in _WRITING_METHODS:
        return True
    if name in _READING_METHODS or name in _VIEWS:
        return False
    return None


def is_pure(function: Any) -> bool:
    """Whether a global function's result depends on its arguments alone."""
    module = getattr(function, "__module__", None) or ""
    if function is math or module == "math":
        return True
    if isinstance(function, type):
        return issubclass(function, np.generic) or getattr(builtins, function.__name__, None) is function
    if isinstance(function, np.ufunc):
        return True
    if isinstance(function, types.BuiltinFunctionType) and module == "builtins":
        return True
    if "random" in module or getattr(function, "__self__", None) is np.random.mtrand._rand:
        return False
    return module.split(".")[0] in {"numpy", "operator", "_operator"}


def written_arguments(function: Any, count: int, keywords: frozenset[str]) -> list[int]:
    """Positions of the arguments that a pure function may write (`out=`, `np.copyto`)."""
    if isinstance(function, np.ufunc):
        return list(range(function.nin, count))
    if getattr(function, "__name__", "") in _WRITING_FUNCTIONS or "out" in keywords:
        return [0]
    return []


def reads_containers(function: Any) -> bool:
    """Whether a known function may read a local array or list that it is given."""
    module = (getattr(function, "__module__", None) or "").split(".")[0]
    return module == "numpy" or function in (
        all,
        any,
        contains,
        enumerate,
        iter,
        list,
        max,
        min,
        reversed,
        sorted,
        sum,
        tuple,
        zip,
    )


def keeps_value(function: Any) -> bool:
    """Whether a known function hands floats on as they are, without arithmetic."""
    return function in (bool, contains, enumerate, float, int, iter, len, max, min, range, reversed, zip, abs)
