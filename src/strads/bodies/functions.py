"""Prepares a loop body and the functions that it calls for compilation by Numba."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType, MappingProxyType
from typing import Any

import numpy as np
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.untyped_passes import IRProcessing

from strads.bodies.analysis.inlining import Variable
from strads.bodies.analysis.outcomes import Outcomes
from strads.bodies.compile_errors import check_names
from strads.bodies.passes.arrays_like_rows import make_arrays_like_rows
from strads.bodies.passes.index_checks import convert_indices
from strads.bodies.passes.literals import make_literals_weak
from strads.bodies.passes.logged_before_loops import log_before_loops
from strads.bodies.passes.powers import approximate_powers
from strads.bodies.passes.read_only_rows import log_as_read
from strads.bodies.passes.stops_and_shapes import make_safe
from strads.bodies.passes.wrapping_integers import WrappingLowering
from strads.engine.compiling import INLINED
from strads.engine.inner_functions import InnerCompiler
from strads.engine.runtime_library import provide_integer_powers
from strads.engine.stopping import IN_RECONNAISSANCE, IN_RUNS
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
    provide_integer_powers()
    body, rewrites = plain_function(function).__code__, list[Any]()
    if logged is not None:  # first, as others insert what it does not know
        rewrites.append(partial(log_before_loops, body=body, depths=dict(logged[0]), only_read=logged[1]))
    if options.get("fastmath"):
        rewrites.append(approximate_powers)
    if float_dtype == np.float32:
        rewrites.append(make_literals_weak)
    if unsigned or checked:
        rewrites.append(partial(convert_indices, unsigned=unsigned, checked=checked))
    if tables:
        rewrites.append(partial(log_as_read, body=body, tables=tables))
    if records:
        rewrites.append(make_arrays_like_rows)
    count = IN_RECONNAISSANCE if records else IN_RUNS
    rewrites.append(partial(make_safe, count=count, outcomes=outcomes))
    options["pipeline_class"] = type("BodyCompiler", (_BodyCompiler,), {"rewrites": rewrites})
    return dispatcher_of(function, check=check_names, **{**INLINED, **options})


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


@register_pass(mutates_CFG=False, analysis_only=False)
class Rewriting(FunctionPass):
    """Calls each of the compiler's `rewrites` with the IR of a function, and its code."""

    _name = "strads_rewriting"

    def __init__(self) -> None:  # abstract in the base class
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Rewrite one function's IR."""
        for rewrite in state.pipeline.rewrites:
            rewrite(state.func_ir, state.func_id.func.__code__)
        return True


class _BodyCompiler(InnerCompiler):
    """Numba's compiler with rewrites of a function, as soon as its IR exists."""

    lowering = WrappingLowering
    rewrites: Sequence[Callable[[Any, CodeType], None]]

    def define_pipelines(self) -> list[Any]:
        (pipeline,) = super().define_pipelines()
        pipeline.add_pass_after(Rewriting, IRProcessing)
        pipeline.finalize()
        return [pipeline]
