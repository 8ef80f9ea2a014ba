"""Prepares a loop body, and the functions that it calls, for compilation by Numba."""

from typing import Any

import numpy as np
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.dispatcher import Dispatcher
from numba.core.untyped_passes import IRProcessing

from strads.dds.user_functions import Function, dispatcher_of, fingerprint, plain_function
from strads.loops.compile_errors import check_names
from strads.loops.literals import SingleLiterals
from strads.loops.safety import Safety

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
    options["pipeline_class"] = SinglePrecisionCompiler if float_dtype == np.float32 else BodyCompiler
    return dispatcher_of(function, check=check_names, **options)


class BodyCompiler(CompilerBase):
    """Numba's compiler for loop bodies and their helpers, with the checks that Numba leaves out."""

    passes: tuple[type[Any], ...] = (Safety,)

    def define_pipelines(self) -> list[Any]:
        """Add the passes as soon as there is an IR."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for added in self.passes:
            pipeline.add_pass_after(added, IRProcessing)
        pipeline.finalize()
        return [pipeline]


class SinglePrecisionCompiler(BodyCompiler):
    """The same, with float literals of single precision."""

    passes = (Safety, SingleLiterals)
