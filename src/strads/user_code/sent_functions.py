"""Serialization of users' functions for other processes, with the values of the globals that they use.

Pickle sends a function of an importable module by name. It would then see the module as imported by the other process,
without what the driver has since assigned to a global, such as a learning rate.
"""

import types
from typing import Any

import cloudpickle
from numba.core.dispatcher import Dispatcher

from strads.cluster import Cluster
from strads.code_names import all_names, cell_value, global_names
from strads.installed import is_installed_module
from strads.user_code.functions import Function, plain_function

_OF_A_MODULE = ("__name__", "__package__", "__file__")


def sent_to(cluster: Cluster, function: Function, *, compiled: bool = False) -> Function:
    """Return a function as the nodes of a cluster should get it.

    If the nodes are other processes, the function carries what it refers to: the user's other functions in the same
    way, and the used attributes of the user's modules. Installed packages are the same everywhere, and are imported.
    A function that refers to an unpicklable object, such as a lock, is returned unchanged, as is any other callable.

    Parameters
    ----------
    cluster
        The destination.
    function
        The user's function.
    compiled
        Whether it will be recompiled with all that it calls: then Numba functions may be replaced by plain ones.
    """
    if cluster.backend == "threads":
        return function
    carried = _Carrier(compiled).carried(function, frozenset())
    try:
        cloudpickle.dumps(carried)
    except Exception:  # objects may raise anything
        return function
    return carried


class _CarriedModule(types.ModuleType):
    """Stands in for a module, with some of its attributes; pickled with them."""

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = {name: value for name, value in vars(self).items() if not name.startswith("__")}
        return _CarriedModule, (self.__name__,), attributes  # set when the module is known: it may refer to itself


class _Carrier:
    """Copies functions and modules, each only once, as they may refer to each other."""

    def __init__(self, compiled: bool) -> None:
        self._compiled = compiled
        self._done: dict[types.FunctionType, types.FunctionType] = {}
        self._modules: dict[tuple[types.ModuleType, frozenset[str]], types.ModuleType] = {}

    def carried(self, value: Any, names: frozenset[str]) -> Any:
        """Return the replacement for a global of a function that uses these names."""
        plain = plain_function(value) if self._compiled and isinstance(value, Dispatcher) else value
        if _is_users_function(plain):
            return self._function(plain)
        if _is_users_module(value):
            return self._module(value, names)
        return value

    def _module(self, module: types.ModuleType, names: frozenset[str]) -> types.ModuleType:
        if (module, names) not in self._modules:
            carried = self._modules[module, names] = _CarriedModule(module.__name__)
            used = names & vars(module).keys()
            vars(carried).update({name: self.carried(vars(module)[name], names) for name in used})
        return self._modules[module, names]

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        if function not in self._done:
            code, globals_ = function.__code__, function.__globals__
            scope: dict[str, Any] = {name: globals_[name] for name in _OF_A_MODULE if name in globals_}
            old = function.__closure__ or ()
            cells = tuple(types.CellType() if self._replaces(cell) else cell for cell in old)
            copy = types.FunctionType(code, scope, function.__name__, function.__defaults__, cells)
            self._done[function] = copy
            for attribute in ("__module__", "__qualname__", "__doc__", "__kwdefaults__"):
                setattr(copy, attribute, getattr(function, attribute))
            names = all_names(code)
            used = sorted(global_names(code) & globals_.keys())
            scope |= {name: self.carried(globals_[name], names) for name in used}
            for new, cell in zip(cells, old, strict=True):
                if new is not cell:
                    new.cell_contents = self.carried(cell.cell_contents, names)
        return self._done[function]

    def _replaces(self, cell: types.CellType) -> bool:
        content = cell_value(cell)
        is_compiled = self._compiled and isinstance(content, Dispatcher)
        return is_compiled or _is_users_function(content) or _is_users_module(content)


def _is_users_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and not is_installed_module(value.__module__)


def _is_users_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and not is_installed_module(value.__name__)
