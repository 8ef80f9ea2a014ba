"""Functions that compiled code calls by symbol; if LLVM does not find one, the process aborts.

Among them are some of a compiler's runtime library that Numba does not provide: with fastmath, LLVM turns
`x ** float(n)` into an integer power.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
from numba import cfunc

_NAMES = {"__powidf2": "float64(float64, int32)", "__powisf2": "float32(float32, int32)"}
_functions: dict[str, Any] = {}  # must outlive the code that calls them


def _integer_power(base, exponent):  # type: ignore[no-untyped-def]
    """`base ** exponent` by squaring; 1 where the exponent is 0."""
    left, factor = abs(np.int64(exponent)), base
    result = type(base)(1)
    while left > 0:
        if left & 1:
            result *= factor
        factor *= factor
        left >>= 1
    return 1 / result if exponent < 0 else result


def provide(name: str, function: Callable[..., Any], signature: Any) -> None:
    """Compile a function, or load it from disk, and register it with LLVM under a name, once per process."""
    if name not in _functions:
        made = cfunc(signature, error_model="numpy", cache=True)(function)
        llvmlite.binding.add_symbol(name, made.address)
        _functions[name] = made


def provide_integer_powers() -> None:
    """Provide the powers."""
    for name, signature in _NAMES.items():
        provide(name, _integer_power, signature)
