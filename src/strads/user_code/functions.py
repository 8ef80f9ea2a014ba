"""Users' functions: recognizing them, and compiling them with the functions that they call.

A function is identified by its code and by what it refers to, so that one that is redefined, or arrives at a node a
second time, is not recompiled, but one whose globals have changed is.
"""

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import xxhash
from numba import njit
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from strads.code_names import all_names, cell_value, global_names

Function = Callable[..., Any]
_OWN_MODULES = ("numpy", "numba", "math", "builtins")


def plain_function(function: Function) -> types.FunctionType:
    """Return the Python function behind a Numba dispatcher, or the function itself."""
    plain = function.py_func if isinstance(function, Dispatcher) else function
    assert isinstance(plain, types.FunctionType)
    return plain


def dispatcher_of(
    function: Function, *, check: Callable[[types.FunctionType], object] | None = None, **options: Any
) -> Dispatcher:
    """Return a Numba dispatcher for a function and for the Python functions that it calls by name.

    Parameters
    ----------
    function
        A plain function or a dispatcher, which is recompiled.
    check
        Called with each function before it is rewritten.
    options
        Passed to `numba.njit`.
    """
    return _Specializer(options, check).dispatcher(plain_function(function))


def fingerprint(function: Function) -> tuple[Any, ...]:
    """Return a key that is equal for functions that compile to the same code.

    It covers code, closure and globals, so that a body redefined in each epoch compiles once, and one whose globals
    have changed recompiles.
    """
    return _fingerprint(plain_function(function), frozenset())


def digest(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return a key that is equal for arrays of the same dtype, shape and content (XXH3, 128 bits)."""
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""
    return array.dtype, array.shape, xxhash.xxh3_128_digest(content)


def _fingerprint(function: types.FunctionType, active: frozenset[Any]) -> tuple[Any, ...]:
    if function in active:
        return ("recursion", function.__name__)
    active |= {function}
    names, scope = all_names(function.__code__), function.__globals__
    referenced = [(name, scope[name]) for name in sorted(global_names(function.__code__) & scope.keys())]
    referenced += zip(function.__code__.co_freevars, map(cell_value, function.__closure__ or ()), strict=True)
    values = tuple((name, _value_key(value, names, active)) for name, value in referenced)
    given = [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
    defaults = tuple(_value_key(value, names, active) for value in given)
    return function.__code__, defaults, values


def _value_key(value: Any, names: frozenset[str], active: frozenset[Any]) -> Any:
    """Return the key of a name's value; for a module, of its attributes with names used in the function.

    `active` holds the functions, and modules with names, that are being described: they may refer to each other.
    """
    if is_helper(value):
        return _fingerprint(plain_function(value), active)
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:  # compiled code holds a copy
        return type(value), digest(np.asarray(value)), value.strides
    if isinstance(value, tuple):
        return type(value), tuple(_value_key(item, names, active) for item in value)
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] not in _OWN_MODULES:
        if (value, names) in active:  # modules that import each other
            return "recursion", value.__name__
        active |= {(value, names)}
        members = sorted(names & vars(value).keys())
        return value.__name__, tuple((name, _value_key(vars(value)[name], names, active)) for name in members)
    if isinstance(value, types.ModuleType):
        return "module", value.__name__
    if type(value) in (bool, int, float, complex, str, type(None)):  # no subclass, whose repr may show anything
        return type(value), repr(value)
    return ById(value)


class ById:
    """A key that compares `value` by identity, and keeps it alive so that no other object gets the same identity."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def is_helper(value: Any) -> bool:
    """Whether a value is a function that must be compiled with the body."""
    if isinstance(value, Dispatcher):
        return True
    module = getattr(value, "__module__", None) or ""
    return isinstance(value, types.FunctionType) and module.split(".")[0] not in _OWN_MODULES


class _Specializer:
    """Rewrites a function and its helpers, each once."""

    def __init__(self, options: dict[str, Any], check: Callable[[types.FunctionType], object] | None):
        self.options = options
        self.check = check
        self.done: dict[types.FunctionType, Dispatcher] = {}

    def dispatcher(self, function: types.FunctionType) -> Dispatcher:
        if function not in self.done:
            if self.check is not None:
                self.check(function)
            # Numba imports the module of a function to compile it and to load it from disk. The function's own module
            # may not be registered or may have another name in this process, and the import would run it again.
            scope: dict[str, Any] = {"__builtins__": __builtins__, "__name__": "builtins"}
            cells = tuple(types.CellType(cell_value(cell)) for cell in function.__closure__ or ())
            rewritten = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
            self.done[function] = njit(**self.options)(rewritten)
            # Filled afterwards, as a helper may refer back to this function.
            names = all_names(function.__code__)
            used = sorted(global_names(function.__code__) & function.__globals__.keys())
            scope |= {name: self._replace(function.__globals__[name], names) for name in used}
            for cell in cells:
                cell.cell_contents = self._replace(cell.cell_contents, names)
        return self.done[function]

    def _replace(self, value: Any, names: frozenset[str], within: frozenset[types.ModuleType] = frozenset()) -> Any:
        """Return the replacement for a global in compiled code; of a module and those in it, only `names` are used.

        `within` are the modules in which it was found: they may refer to each other.
        """
        if is_helper(value):
            return self.dispatcher(plain_function(value))
        if not isinstance(value, types.ModuleType) or value.__name__.split(".")[0] in _OWN_MODULES or value in within:
            return value
        members = {name: vars(value)[name] for name in names & vars(value).keys()}
        replaced = {name: self._replace(member, names, within | {value}) for name, member in members.items()}
        if all(replaced[name] is member for name, member in members.items()):
            return value
        stand_in = types.ModuleType(value.__name__)
        vars(stand_in).update(vars(value) | replaced)
        return stand_in
