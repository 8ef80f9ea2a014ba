"""Prepares a loop body, and the functions that it calls, for compilation by Numba."""

from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from strads.dds.user_functions import Function, dispatcher_of, fingerprint, plain_function
from strads.loops.compile_errors import check_names
from strads.loops.literals import SinglePrecisionCompiler

__all__ = ["Function", "compile_function", "fingerprint", "plain_function"]


def compile_function(function: Function, float_dtype: np.dtype[Any], **options: Any) -> Dispatcher:
    """Return a Numba dispatcher for a function and for the Python functions that it calls by name.

    Float literals take the floating dtype of the tables (see `literals`).

    Parameters
    ----------
    function
        The loop body.
    float_dtype
        Dtype of float literals.
    options
        Passed to `numba.njit`.
    """
    if float_dtype == np.float32:
        options["pipeline_class"] = SinglePrecisionCompiler
    return dispatcher_of(function, check=check_names, **options)
