"""State as a tree that JSON can represent, with arrays beside it; without pickle.

What can be represented: None, bools, numbers, texts, bytes, enumerators; lists, tuples, dicts, sets; NumPy arrays and
scalars; NumPy's random generators; objects with a state of their own (`Stateful`); and instances of other classes, by
their attributes. A tree names classes, but holds no code: instances are made of the classes that the *template* has,
the same state in the restarted program. Functions, locks and the like are kept as the template has them.
"""

import collections
import copy
import enum
import functools
import sys
import types
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, runtime_checkable

import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from strads.errors import CheckpointError

Tree = Any  # of None, bool, int, str, list and dict
_HEAP_TYPE = 1 << 9  # flag of classes that a program has made, unlike those of C
_INLINE = 256  # bytes of an array that is part of the tree
_KEPT = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type, functools.partial,
    Dispatcher, np.ufunc, np.dtype,
)  # fmt: skip


@runtime_checkable
class Stateful(Protocol):
    """An object that writes and restores its state itself, such as a table or an engine."""

    def checkpoint_state(self, save: "Save") -> Tree:
        """Return the state; `save` represents its parts. It must not change until then."""

    def restore_state(self, tree: Tree, load: "Load") -> None:
        """Restore what `checkpoint_state` returned."""


def _too_large(array: NDArray[Any]) -> str:
    raise CheckpointError("too large")


def _no_file(name: str, target: NDArray[Any] | None) -> NDArray[Any]:
    raise CheckpointError(f"the journal refers to the file {name}")


class Save:
    """Turns state into trees.

    Parameters
    ----------
    keep
        Takes an array, which may change later, and returns a name for its content. By default no array may be beside
        the tree, as in the journal.
    inline
        Arrays of up to this number of bytes become part of the tree.
    """

    def __init__(self, keep: Callable[[NDArray[Any]], str] = _too_large, inline: int = _INLINE):
        self._keep, self._inline = keep, inline
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no identity occurs twice

    def apart(self, value: Any) -> Tree:
        """Return a tree that is loaded by itself: it shares nothing with the others."""
        seen, self._seen = self._seen, {}
        try:
            return self(value)
        finally:
            self._seen = seen

    def __call__(self, value: Any) -> Tree:
        """Return the tree of a value.

        Raises
        ------
        CheckpointError
            If it cannot be represented; the message names the attribute.
        """
        if value is None or value is Ellipsis or type(value) in (bool, int, str):
            return value if value is not Ellipsis else {"kept": "ellipsis"}
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is range:
            return {"range": [value.start, value.stop, value.step]}
        if type(value) in (complex, bytes):
            return {type(value).__name__: repr(value) if type(value) is complex else value.hex()}
        if isinstance(value, enum.Enum):
            return {"enum": _name(type(value)), "value": value.name}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value))}
        if id(value) in self._seen:
            return {"same": self._seen[id(value)]}
        if isinstance(value, _KEPT) or _is_lock(value):
            return {"kept": type(value).__name__}
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        return self._container(value)

    def _container(self, value: Any) -> Tree:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, Stateful):
            return {"stateful": _name(type(value)), "state": value.checkpoint_state(self)}
        if isinstance(value, np.random.Generator):
            return {"generator": self(value.bit_generator.state)}
        if isinstance(value, np.random.RandomState):
            return {"generator": self(value.get_state(legacy=False))}
        if type(value) is collections.deque:
            return {"deque": [self(item) for item in value], "longest": value.maxlen}
        if type(value) in (list, tuple, set, frozenset):
            items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
            return {type(value).__name__: [self._part(item, f"[{place}]") for place, item in enumerate(items)]}
        if type(value) is dict:
            return {"dict": [[self(key), self._part(item, f"[{key!r}]")] for key, item in value.items()]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"named": _name(type(value)), "items": [self(item) for item in value]}
        attributes = dict(attributes_of(value))
        if not is_plain(value):
            raise CheckpointError(f"a {_name(type(value))} cannot be part of a checkpoint")
        missing = set(getattr(type(value), "checkpointed", ())) - attributes.keys()
        if missing:
            raise CheckpointError(f"{_name(type(value))}.checkpointed names {min(missing)!r}, which it does not have")
        parts = [[name, self._part(item, f".{name}")] for name, item in attributes.items()]
        return {"object": _name(type(value)), "state": parts}

    def _part(self, value: Any, place: str) -> Tree:
        try:
            return self(value)
        except CheckpointError as error:
            raise CheckpointError(f"{place}{'' if str(error)[0] in '.[' else ': '}{error}") from None

    def _array(self, array: NDArray[Any]) -> Tree:
        if array.dtype.hasobject:
            if array.size > 1_000_000:
                raise CheckpointError(f"an array of {array.size:,} Python objects cannot be part of a checkpoint")
            return {"objects": [self(item) for item in array.ravel().tolist()], "shape": list(array.shape)}
        if array.flags.f_contiguous and not array.flags.c_contiguous:  # sums over it depend on the order in memory
            return {"transposed": self._array(array.T)}
        if array.nbytes <= self._inline:
            descr = np.lib.format.dtype_to_descr(array.dtype)
            return {"inline": array.tobytes().hex(), "dtype": _listed(descr), "shape": list(array.shape)}
        return {"array": self._keep(array)}


class Load:
    """Restores state from trees.

    Parameters
    ----------
    fetch
        Returns the array of a name, read to a target if one is given and fits. By default there are none.
    classes
        Classes whose instances the tree may have, besides those of the template.
    """

    def __init__(
        self, fetch: Callable[[str, NDArray[Any] | None], NDArray[Any]] = _no_file, classes: Iterable[type] = ()
    ):
        self.fetch = fetch
        self._made: list[Any] = []
        self._taken: dict[int, Any] = {}  # parts of the template that a value has taken over, by identity
        self._classes = {_name(kind): kind for kind in classes}

    def know(self, *classes: type) -> None:
        """Add classes whose instances the tree may have."""
        self._classes |= {_name(kind): kind for kind in classes}

    def apart(self, tree: Tree, template: Any = None) -> Any:
        """Return the value of a tree that `Save.apart` made."""
        outer = self._made, self._taken
        self._made, self._taken = [], {}
        try:
            return self(tree, template)
        finally:
            self._made, self._taken = outer

    def __call__(self, tree: Tree, template: Any = None) -> Any:
        """Return the value of a tree; arrays and objects of the template are changed in place where they fit.

        Raises
        ------
        CheckpointError
            If the template lacks what the tree needs: the program has changed.
        """
        if template is not None and not isinstance(template, np.ndarray):
            self._classes |= {_name(kind): kind for kind in _classes(template)}
        return self._value(tree, template)

    def _value(self, tree: Tree, template: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree))
        if kind == "same":
            return self._made[tree["same"]]
        simple = _SIMPLE.get(kind)
        if simple is not None:
            return simple(tree[kind])
        if kind == "kept":
            if tree[kind] == "ellipsis":
                return Ellipsis
            if template is None:
                raise CheckpointError(f"the program lacks a {tree[kind]} that the checkpoint's state refers to")
            return template
        if kind == "enum":
            return self._class(tree[kind], template)[tree["value"]]
        if kind == "scalar":
            return self._array(tree[kind], None)[()]
        return self._container(kind, tree, template)

    def _container(self, kind: str, tree: Tree, template: Any) -> Any:
        template = self._free(template)
        place = len(self._made)
        self._made.append(None)  # the number of this value, before those of its parts
        found: Any
        if kind in ("array", "inline", "objects", "transposed"):
            found = self._array(tree, template)
        elif kind == "stateful":
            found = self._template(tree[kind], template)
            self._made[place] = found
            found.restore_state(tree["state"], self)
        elif kind == "generator":
            found = template
            state = self._value(tree[kind], None)
            if isinstance(found, np.random.Generator):
                found.bit_generator.state = state
            elif isinstance(found, np.random.RandomState):
                found.set_state(state)
            else:
                raise CheckpointError("the program lacks a random generator that the checkpoint has")
        elif kind == "list":
            found = template if type(template) is list else []
            self._made[place] = found
            parts = [self._value(item, _item(template, number)) for number, item in enumerate(tree[kind])]
            found[:] = parts
        elif kind == "deque":
            found = collections.deque((self._value(item, None) for item in tree[kind]), tree["longest"])
        elif kind in ("tuple", "set", "frozenset"):
            parts = [self._value(item, _item(template, number)) for number, item in enumerate(tree[kind])]
            found = {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](parts)
        elif kind == "dict":
            found = template if type(template) is dict else {}
            self._made[place] = found
            old = dict(found)
            parts = []
            for key, item in tree[kind]:
                key = self._value(key, None)
                parts.append((key, self._value(item, old.get(key))))
            found.clear()
            found.update(parts)
        elif kind == "named":
            parts = [self._value(item, _item(template, number)) for number, item in enumerate(tree["items"])]
            found = self._class(tree[kind], template)(*parts)
        elif kind == "object":
            found = self._object(tree, template, place)
        else:
            raise CheckpointError(f"the checkpoint holds a {kind!r}, which this version of strads does not know")
        self._made[place] = found
        return found

    def _free(self, template: Any) -> Any:
        """Return a template, or another one if a value has taken it over: what was one thing may have become two."""
        if template is None or isinstance(template, Stateful | tuple):
            return template
        if id(template) in self._taken:
            if isinstance(template, np.ndarray | list | dict):
                return None
            is_generator = isinstance(template, np.random.Generator | np.random.RandomState)
            return copy.deepcopy(template) if is_generator else copy.copy(template)
        self._taken[id(template)] = template
        return template

    def _object(self, tree: Tree, template: Any, place: int) -> Any:
        kind = self._class(tree["object"], template)
        found = template if type(template) is kind else kind.__new__(kind)
        self._made[place] = found
        old = dict(attributes_of(found))
        for name, part in tree["state"]:
            value = self._value(part, old.get(name))
            if name not in old or value is not old[name]:
                object.__setattr__(found, name, value)
        return found

    def _template(self, name: str, template: Any) -> Any:
        if template is None or _name(type(template)) != name:
            raise CheckpointError(f"the program lacks the {name} that the checkpoint has")
        return template

    def _class(self, name: str, template: Any) -> Any:
        if template is not None and _name(type(template)) == name:
            return type(template)
        if name not in self._classes:
            self._classes |= {_name(kind): kind for kind in self._imported()}
        if name not in self._classes:
            raise CheckpointError(f"the checkpoint's state has a {name}, which the program's lacks at the start")
        return self._classes[name]

    def _imported(self) -> list[type]:
        """Return the classes that the modules of the known classes use: nothing is imported for a checkpoint."""
        modules = {sys.modules.get(kind.__module__) for kind in self._classes.values()} - {None}
        return [each for module in modules for each in vars(module).values() if isinstance(each, type)]

    def _array(self, tree: Tree, template: Any) -> NDArray[Any]:
        target = template if isinstance(template, np.ndarray) else None
        if "transposed" in tree:
            return self._array(tree["transposed"], None if target is None else target.T).T
        if "array" in tree:
            return _laid_out_like(target, self.fetch(tree["array"], target))
        if "objects" in tree:
            found = np.empty(len(tree["objects"]), object)
            for number, item in enumerate(tree["objects"]):
                found[number] = self._value(item, None)
            return found.reshape(tree["shape"])
        dtype = np.lib.format.descr_to_dtype(_tupled(tree["dtype"]))
        found = np.frombuffer(bytes.fromhex(tree["inline"]), dtype).reshape(tree["shape"])
        return _laid_out_like(target, found.copy())


def _laid_out_like(target: NDArray[Any] | None, found: NDArray[Any]) -> NDArray[Any]:
    """Return an array with the content found: the target if it fits, else one with its strides if they fit."""
    if target is None or target is found or target.dtype != found.dtype or target.shape != found.shape:
        return found
    fitting = target if target.flags.writeable else np.empty_like(target)
    fitting[...] = found
    return fitting


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "float": float.fromhex,
    "complex": complex,
    "bytes": bytes.fromhex,
    "range": lambda limits: range(*limits),
}


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def attributes_of(value: Any, *, saved_only: bool = True) -> Iterator[tuple[str, Any]]:
    """Return the attributes of an instance, except cached properties: all, or those in `checkpointed`."""
    chosen = getattr(type(value), "checkpointed", None) if saved_only else None
    slots = (name for kind in type(value).__mro__ for name in _listed_slots(kind))
    names = [*getattr(value, "__dict__", {}), *(name for name in slots if name not in ("__dict__", "__weakref__"))]
    for name in names if chosen is None else chosen:
        if hasattr(value, name) and not isinstance(getattr(type(value), name, None), functools.cached_property):
            yield name, getattr(value, name)


def _listed_slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def is_plain(value: Any) -> bool:
    """Whether the attributes of an instance are all of its state: its class is written in Python."""
    own = [kind for kind in type(value).__mro__ if kind not in (object, Generic, Protocol, ABC)]
    return all((kind.__flags__ & _HEAP_TYPE and "__dict__" in dir(kind)) or _listed_slots(kind) for kind in own)


def _is_lock(value: Any) -> bool:
    return hasattr(value, "acquire") and hasattr(value, "release")


def _classes(value: Any) -> Iterator[type]:
    """Return the classes of all instances that a value is made of."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, (*_KEPT, np.ndarray, np.generic, str, bytes, int, float)):
            if isinstance(found, enum.Enum):
                yield type(found)
            continue
        seen.add(id(found))
        yield type(found)
        if isinstance(found, list | tuple | set | frozenset):
            waiting += found
        elif isinstance(found, dict):
            waiting += found.values()
        else:
            waiting += [item for _, item in attributes_of(found)]


def _item(template: Any, place: int) -> Any:
    return template[place] if isinstance(template, list | tuple) and place < len(template) else None


def _listed(descr: Any) -> Any:
    return [_listed(item) for item in descr] if isinstance(descr, list | tuple) else descr


def _tupled(descr: Any) -> Any:
    """Undo `_listed`: fields are a list of tuples, whose last item may be a shape."""
    if not isinstance(descr, list):
        return descr
    fields = []
    for field in descr:
        name = tuple(field[0]) if isinstance(field[0], list) else field[0]
        kind = _tupled(field[1])
        fields.append((name, kind) if len(field) == 2 else (name, kind, tuple(field[2])))
    return fields
