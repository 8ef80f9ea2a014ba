"""The error for arrays that do not fit where they are assigned, as in `w[:] = …`.

Numba puts both shapes into its text, and takes one to two seconds to compile that for each kind of assignment: more
than for the rest of a body. Users see NumPy's text in any case, as the interpreter runs what fails once more. Functions
of the program that Numba compiles while strads is imported have the short text as well.
"""

from numba.np import arrayobj

from strads.engine.compiling import compiled


@compiled
def _refuse(source, target):  # type: ignore[no-untyped-def]
    def refuse(source, target):  # type: ignore[no-untyped-def]
        raise ValueError("cannot assign an array of another shape")

    return refuse


arrayobj.raise_with_shape_context = _refuse  # which Numba asks targets to specialize
