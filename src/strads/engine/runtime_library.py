"""Functions that LLVM expects in a compiler's runtime library, which Numba does not provide.

With fastmath, LLVM turns `x ** float(n)` into an integer power. Without these symbols the process would abort.
"""

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


def provide() -> None:
    """Register the functions with LLVM, once per process."""
    for name, signature in _NAMES.items():
        if name not in _functions:
            _functions[name] = cfunc(signature, error_model="numpy", cache=True)(_integer_power)
            llvmlite.binding.add_symbol(name, _functions[name].address)
