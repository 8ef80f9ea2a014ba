"""The functions and methods whose effects the analysis knows; for all others it assumes the worst."""

import math
import operator
import types
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import numba
import numpy as np


class FunctionKind(Enum):
    """What a known function does; none of them retains its arguments."""

    SCALAR = auto()  # returns a number that depends on all arguments
    ELEMENTWISE = auto()  # returns a number, or a new array with as many axes as the deepest argument
    REDUCE = auto()  # returns a number for an array alone, a new array for an array and an axis
    PRODUCT = auto()  # a scalar product, or a new array
    FRESH = auto()  # returns a new array
    ALLOCATE = auto()  # returns a new array whose size, and possibly values, depend on the arguments
    ALLOCATE_LIKE = auto()  # returns a new array of the size of the first argument
    VIEW = auto()  # returns an array that may share memory with the first argument
    LENGTH = auto()
    RANGE = auto()
    SLICE = auto()
    ENUMERATE = auto()
    ZIP = auto()
    ITERATE = auto()  # returns an iterator over its argument, or a list, set or tuple of its elements
    COLLECT = auto()
    NOTHING = auto()  # `print`, exceptions


_SCALARS: list[Any] = [
    *(getattr(math, name) for name in dir(math) if isinstance(getattr(math, name), types.BuiltinFunctionType)),
    *(bool, int, float, complex, abs, round, divmod, pow, hash, str, chr, ord, isinstance),
]
_PRODUCTS: list[Any] = [np.dot, np.vdot, np.inner]
_REDUCTIONS: list[Any] = [
    *(np.sum, np.prod, np.mean, np.min, np.max, np.amin, np.amax, np.argmin, np.argmax, np.std, np.var, np.median),
    *(np.any, np.all, np.nansum, np.nanprod, np.nanmean, np.nanmin, np.nanmax, np.nanstd, np.nanvar, np.nanmedian),
    *(np.count_nonzero, np.ptp, np.trace, np.allclose, np.array_equal, np.linalg.norm, np.linalg.det),
]
_ELEMENTWISE: list[Any] = [np.clip, np.round, np.around, np.real, np.imag, np.angle, np.nan_to_num, np.sinc]
_FRESH: list[Any] = [
    *(np.cumsum, np.cumprod, np.nancumsum, np.nancumprod, np.diff, np.sort, np.argsort, np.unique, np.where),
    *(np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.append, np.array, np.outer),
    *(np.kron, np.cross, np.flatnonzero, np.nonzero, np.argwhere, np.bincount, np.histogram, np.searchsorted),
    *(np.digitize, np.interp, np.take, np.delete, np.roll, np.repeat, np.tile, np.copy, np.convolve, np.correlate),
    *(np.percentile, np.quantile, np.triu, np.tril, np.rot90, np.vander, np.linalg.solve, np.linalg.inv),
    *(np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.qr, np.linalg.svd, np.linalg.lstsq),
    *(np.linalg.pinv, np.partition, np.argpartition, np.intersect1d, np.union1d, np.setdiff1d, np.isin, np.cov),
    *(np.corrcoef, np.ediff1d, np.meshgrid, np.indices, np.diagflat, np.ascontiguousarray),
]
_ALLOCATIONS: list[Any] = [np.zeros, np.ones, np.empty, np.full, np.arange, np.linspace, np.eye, np.identity, np.tri]
_ALLOCATIONS_LIKE: list[Any] = [np.zeros_like, np.ones_like, np.empty_like, np.full_like]
_VIEWS: list[Any] = [
    *(np.asarray, np.asfortranarray, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.expand_dims),
    *(np.flip, np.fliplr, np.flipud, np.ravel, np.reshape, np.squeeze, np.swapaxes, np.transpose, np.split),
    *(np.array_split, np.diag, np.broadcast_to),
]

_OPERATORS: list[Any] = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.neg, operator.pos),
    *(operator.not_, operator.invert, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(operator.is_, operator.is_not, operator.matmul, operator.abs, operator.truth, operator.contains),
]

_KINDS: dict[Any, FunctionKind] = {
    **dict.fromkeys(_SCALARS, FunctionKind.SCALAR),
    **dict.fromkeys(_PRODUCTS, FunctionKind.PRODUCT),
    **dict.fromkeys(_REDUCTIONS, FunctionKind.REDUCE),
    **dict.fromkeys(_OPERATORS, FunctionKind.ELEMENTWISE),
    **dict.fromkeys(_ELEMENTWISE, FunctionKind.ELEMENTWISE),
    **dict.fromkeys(_FRESH, FunctionKind.FRESH),
    **dict.fromkeys(_ALLOCATIONS, FunctionKind.ALLOCATE),
    **dict.fromkeys(_ALLOCATIONS_LIKE, FunctionKind.ALLOCATE_LIKE),
    **dict.fromkeys(_VIEWS, FunctionKind.VIEW),
    **dict.fromkeys([min, max, sum, all, any], FunctionKind.REDUCE),
    **dict.fromkeys([enumerate], FunctionKind.ENUMERATE),
    **dict.fromkeys([zip], FunctionKind.ZIP),
    **dict.fromkeys([iter, reversed], FunctionKind.ITERATE),
    **dict.fromkeys([list, tuple, set, sorted], FunctionKind.COLLECT),
    **dict.fromkeys([range, numba.prange], FunctionKind.RANGE),
    len: FunctionKind.LENGTH,
    slice: FunctionKind.SLICE,
    print: FunctionKind.NOTHING,
}

# Functions with an output argument: the position of the parameter `out`.
_OUT = {np.dot: 2, np.round: 2, np.around: 2, np.clip: 3, np.take: 3, np.nan_to_num: None}
# Functions that raise for some values, or whose values determine how far they read.
REFUSING = frozenset(
    [
        *(np.bincount, np.linalg.solve, np.linalg.inv, np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh),
        *(np.linalg.qr, np.linalg.svd, np.linalg.lstsq, np.linalg.pinv, np.linalg.det, np.linalg.norm, np.take),
        *(np.histogram, np.digitize, np.interp, np.percentile, np.quantile, np.delete, chr, math.gcd, np.searchsorted),
    ]
)
NEEDS_VALUES = frozenset(  # functions that raise for an empty array
    [*(np.min, np.max, np.amin, np.amax, np.argmin, np.argmax, np.nanmin, np.nanmax, np.ptp, np.median, np.nanmedian)]
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


PAIRS = (divmod, math.frexp, math.modf)  # functions of numbers that return two
# Functions of a number that take as long as ten operators or more.
LONG = frozenset(
    getattr(module, name)
    for module in (math, np)
    for name in _names(
        "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh cbrt cos cosh erf "
        "erfc exp exp2 expm1 float_power gamma hypot lgamma log log10 log1p log2 pow power sin sinh tan tanh"
    )
    if hasattr(module, name)
)
# Functions that pass floats on unchanged, without arithmetic.
KEEPS_VALUE = frozenset(
    [bool, int, float, abs, min, max, len, range, enumerate, zip, iter, reversed, list, tuple, set, sorted, np.array]
)


# Methods of arrays.
READING_METHODS = _names(
    "all any argmax argmin argsort astype conj copy cumprod cumsum dot flatten item max mean min nonzero prod ptp "
    "repeat std sum take tobytes trace var"
)
VIEWING_METHODS = _names("ravel reshape swapaxes transpose view")
WRITING_METHODS = _names("fill sort")
SCALAR_METHODS = _names("all any argmax argmin item max mean min prod ptp std sum trace var")
# Methods of lists, sets and dictionaries: those that read, and those that modify.
LOOKING_METHODS = _names("copy count difference get index intersection issubset issuperset items keys union values")
CHANGING_METHODS = _names("add append clear discard extend insert pop popitem remove reverse setdefault sort update")
# Attributes of arrays.
SHAPES = frozenset({"shape", "size", "ndim", "itemsize", "nbytes", "strides", "dtype"})
VIEWING_ATTRIBUTES = frozenset({"T", "real", "imag"})


def kind_of(function: Any) -> FunctionKind | None:
    """Return what a global function does; None if there is no rule for it."""
    try:
        known = _KINDS.get(function)
    except TypeError:  # not hashable
        return None
    if known is not None:
        return known
    if isinstance(function, np.ufunc):
        return FunctionKind.ELEMENTWISE if getattr(np, function.__name__, None) is function else None
    if isinstance(function, type) and issubclass(function, np.generic):
        return FunctionKind.ELEMENTWISE
    if isinstance(function, type) and issubclass(function, BaseException):
        return FunctionKind.NOTHING
    return None


def written_position(function: Any, arguments: int, keywords: frozenset[str]) -> int | str | None:
    """Return the argument that a known function writes: its position or keyword; None if it writes none.

    `np.nan_to_num(x, copy=False)` writes x.
    """
    if "out" in keywords:
        return "out"
    if isinstance(function, np.ufunc):
        return function.nin if arguments > function.nin else None
    if function is np.nan_to_num:
        return 0 if arguments > 1 or "copy" in keywords else None
    position = _OUT.get(function) if isinstance(function, Callable) else None  # type: ignore[arg-type]
    return position if position is not None and arguments > position else None
