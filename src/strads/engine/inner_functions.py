"""Functions that only compiled code calls are optimized with their callers, and have no machine code of their own.

Numba optimizes each function and makes it machine code before it links it into its callers, where the same code is
optimized again. Bodies and the views of their arguments are small functions in great number, all of which end up in
one: what is made of each alone is thrown away.

Those that may reorder sums are optimized alone: callers of several kinds (threads, nodes, lists of indices) add in the
same order then.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering

_ENVIRONMENT = "@_ZN08NumbaEnv"  # of what a function boxes: each declares its own


class _NoEnvironments:
    """Where Numba notes the environments of functions that use theirs."""

    def set_env(self, name: str, environment: Any) -> None:
        """Ignore the environment of a function that does not use it."""


class _InnerLibrary(JITCodeLibrary):
    """The code of one function, to be linked into its callers; compiled as usual if it uses its environment."""

    _is_linked_only = False

    def finalize(self) -> None:
        """Link in what the function calls."""
        if str(self._final_module).count(_ENVIRONMENT) > 1:  # it is declared, and used
            super().finalize()
            return
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = self._is_linked_only = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of machine code: 0, as Numba does, where there is none."""
        self._ensure_finalized()
        return 0 if self._is_linked_only else super().get_pointer_to_function(name)

    @property
    def codegen(self) -> Any:
        """What holds the environments."""
        self._ensure_finalized()
        return _NoEnvironments() if self._is_linked_only else super().codegen


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(BaseNativeLowering):
    """Replaces Numba's lowering of one function."""

    _name = "strads_inner_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """The class that lowers the function."""
        return Lower

    def run_pass(self, state: Any) -> bool:
        """Lower one function."""
        if not state.flags.fastmath:
            state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        return bool(super().run_pass(state))


class InnerCompiler(CompilerBase):
    """Numba's compiler for functions that only compiled code calls."""

    lowering: type[BaseNativeLowering] = InnerLowering

    def define_pipelines(self) -> list[Any]:
        """Return Numba's pipeline with another lowering."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [(self.lowering if step is NativeLowering else step, text) for step, text in pipeline.passes]
        pipeline.finalize()
        return [pipeline]
