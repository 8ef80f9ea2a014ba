"""Prepares a loop body and the functions that it calls for compilation by Numba."""

import inspect
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import IRProcessing

from strads.bodies.analysis.inlining import Variable
from strads.bodies.analysis.outcomes import Outcomes
from strads.bodies.compile_errors import check_names
from strads.bodies.passes.arrays_like_rows import ArraysLikeRows
from strads.bodies.passes.index_checks import convert_indices
from strads.bodies.passes.literals import SingleLiterals
from strads.bodies.passes.logged_before_loops import log_before_loops
from strads.bodies.passes.powers import PowersOfConstants
from strads.bodies.passes.read_only_rows import log_as_read
from strads.bodies.passes.stops_and_shapes import RecordingSafety, Safety, safety_with
from strads.bodies.passes.wrapping_integers import WrappingLowering
from strads.engine.runtime_library import provide
from strads.engine.views.types import INLINED
from strads.errors import ArgumentError
from strads.user_code.functions import Function, dispatcher_of, fingerprint, plain_function

__all__ = ["Function", "compile_function", "fingerprint", "parameter_names", "plain_function"]


def compile_function(
    function: Function,
    float_dtype: np.dtype[Any],
    *,
    records: bool = False,
    outcomes: Outcomes = MappingProxyType({}),
    tables: frozenset[int] = frozenset(),
    logged: tuple[tuple[tuple[int, int], ...], frozenset[int]] | None = None,
    unsigned: frozenset[Variable] = frozenset(),
    checked: frozenset[Variable] = frozenset(),
    **options: Any,
) -> Dispatcher:
    """Return a Numba dispatcher for a function and for the Python functions that it calls by name.

    Float literals take the floating dtype of the tables (see `literals`).

    Parameters
    ----------
    function
        The loop body.
    float_dtype
        Dtype of float literals.
    records
        Whether it is for reconnaissance, which gives up in cases where a run may continue.
    outcomes
        Outcomes of branches, chosen beforehand.
    tables
        Arguments, numbered from 0 without the loop index, of which rows that the function only reads are logged as
        read.
    logged
        Arguments of which rows are logged before the loops that use elements of them, with their number of axes, and
        arguments that the loop does not write.
    unsigned, checked
        Variables that are not negative where they are used as indices, and those that may not exist: see
        `convert_indices`.
    options
        Passed to `numba.njit`, in addition to those of functions that only compiled code calls.
    """
    provide()
    safety: type[Any] = RecordingSafety if records else Safety
    if outcomes:
        safety = safety_with(frozenset(outcomes.items()))
    passes = [safety]
    if records:
        passes.append(ArraysLikeRows)
    if tables:
        passes.append(log_as_read(plain_function(function).__code__, tables))
    if unsigned or checked:
        passes.append(convert_indices(unsigned, checked))
    if float_dtype == np.float32:
        passes.append(SingleLiterals)
    if options.get("fastmath"):
        passes.append(PowersOfConstants)
    if logged is not None:  # the last pass runs first: others insert what it does not know
        passes.append(log_before_loops(plain_function(function).__code__, *logged))
    options["pipeline_class"] = _compiler_with(tuple(passes))
    return dispatcher_of(function, check=check_names, **INLINED, **options)


def parameter_names(body: Any, first: str) -> tuple[str, ...]:
    """Return the names of a body's parameters, the first of which is described by `first`.

    Raises
    ------
    ArgumentError
        For what is no function, or one with parameters that a loop does not give, or that yields.
    """
    function = getattr(body, "py_func", body)
    if not inspect.isfunction(function):
        raise ArgumentError(f"the loop body must be a Python function, not {type(body).__name__}")
    code, name = function.__code__, function.__name__  # inspect.signature would take longer than many a loop
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise ArgumentError(f"{name} is a generator or coroutine: a loop body must not yield or await")
    has_more = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if not code.co_argcount or has_more:
        raise ArgumentError(
            f"{name} must have {first} as its first parameter and no *args, **kwargs or keyword-only parameters"
        )
    return code.co_varnames[: code.co_argcount]


@cache
def _compiler_with(passes: tuple[type[Any], ...]) -> type[CompilerBase]:
    """Return Numba's compiler with additional passes, which run as soon as the IR exists."""

    class BodyCompiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
            for added in passes:
                pipeline.add_pass_after(added, IRProcessing)
            pipeline.passes = [
                (WrappingLowering if step is NativeLowering else step, text) for step, text in pipeline.passes
            ]
            pipeline.finalize()
            return [pipeline]

    return BodyCompiler
