"""Machine code of loop bodies on disk, where later processes find it instead of compiling anew.

Numba's own cache knows a function by its source file and by its closure, and does not look at the globals and helpers
that the code was made from. Here everything that decides the machine code is in the name of a file.
"""

import contextlib
import hashlib
import os
import secrets
import sys
import types
from collections.abc import Mapping, Set
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numba import types as numba_types
from numba.core import config
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import IndexDataCacheFile, _Cache
from numba.core.compiler import CompileResult
from numba.misc.appdirs import AppDirs

from strads.dds.user_functions import ById
from strads.engine.roles import Role

_MOST_FILES = 1_000
_PUT_IN_LATER = ".numba.unresolved$"  # how such names begin
_PACKAGES = ("numba", "llvmlite", "numpy")
_STABLE_MODULES = ("numpy", "numba", "math", "builtins")  # their versions are part of every key
_SOURCES = ("dds", "engine", "loops")  # folders of strads with what compiled code is made from

# Numba numbers functions from 1 in each process and has the numbers in the names of symbols. Code of two processes in a
# third one must not define a symbol twice: LLVM would take the first for both.
FunctionIdentity._unique_ids = count(1 + secrets.randbits(60))


def keep_on_disk(dispatcher: Any, *inputs: Any) -> None:
    """Have a function loaded from disk, or saved there once it is compiled, if it can be known again.

    Parameters
    ----------
    dispatcher
        Numba's, of the function; not yet compiled.
    inputs
        All that its code is made from, but for the types of its arguments: numbers, strings, dtypes, enumerators, code,
        fingerprints of functions, and containers of these.
    """
    encoded = hashlib.sha256()
    with contextlib.suppress(_UnknownError):
        _encode(inputs, encoded)
        dispatcher._cache = _CodeCache(encoded.hexdigest())


def is_on_disk(dispatcher: Any, argument_types: tuple[Any, ...]) -> bool:
    """Whether a function lies on disk, compiled for these types."""
    kept = dispatcher._cache
    return isinstance(kept, _CodeCache) and kept.has(argument_types, dispatcher.targetctx)


class _UnknownError(Exception):
    """Something in a key has no name that it has in every process."""


class _CodeCache(_Cache):
    """What Numba asks before it compiles a function, and tells afterwards."""

    def __init__(self, inputs: str):
        self._inputs = inputs

    @property
    def cache_path(self) -> str | None:
        """The folder."""
        folder = code_folder()
        return None if folder is None else str(folder)

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether the compiled function of these argument types lies there."""
        target_context.refresh()
        folder = code_folder()
        return folder is not None and (folder / self._name(sig, target_context.codegen())).exists()

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the compiled function of these argument types, if it lies there."""
        target_context.refresh()
        folder, name = code_folder(), self._name(sig, target_context.codegen())
        if folder is None:
            return None
        with contextlib.suppress(Exception):  # a damaged file counts as none
            found = CompileResult._rebuild(target_context, *_files(folder)._load_data(name))
            os.utime(folder / name)  # used: others are removed first
            return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled function, if there is room for it."""
        folder, name = code_folder(), self._name(sig, data.codegen)
        if folder is None or data.lifted or data.library.has_dynamic_globals or _calls_itself(data.library):
            return
        with contextlib.suppress(Exception):  # a full disk, say: the function is there all the same
            _make_room(folder)
            _files(folder)._save_data(name, data._reduce())

    def enable(self) -> None:
        """Nothing: it always is."""

    def disable(self) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Nothing: a name never stands for other code."""

    def _name(self, sig: Any, codegen: Any) -> str:
        key = self._inputs, str(sig), repr(_fields(sig)), repr(codegen.magic_tuple()), _surroundings()
        return hashlib.sha256("\n".join(key).encode()).hexdigest() + ".nbc"


def _fields(kind: Any) -> Any:
    """Return the names of the fields of tuples in types, which the names of the types do not tell."""
    if isinstance(kind, tuple | numba_types.BaseTuple):
        return getattr(kind, "fields", None), [_fields(item) for item in kind]
    return None


def _calls_itself(library: Any) -> bool:
    """Whether a function is called by an address that is put in later, as by recursion: only in this process."""
    return any(variable.name.startswith(_PUT_IN_LATER) for variable in library._final_module.global_variables)


def _files(folder: Path) -> IndexDataCacheFile:
    """Numba's reading and writing of files; its index has no part in it, as names say all."""
    return IndexDataCacheFile(str(folder), "", "")


def code_folder() -> Path | None:
    """Return the folder of this user, whom alone it must belong to: code is run from it. None where there is none."""
    root = config.CACHE_DIR or AppDirs(appname="strads", appauthor=False).user_cache_dir
    folder = Path(root) / "strads-bodies"
    with contextlib.suppress(OSError, RuntimeError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        is_mine = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
        if is_mine and os.access(folder, os.W_OK):
            return folder
    return None


def _make_room(folder: Path) -> None:
    """Remove what has not been used for longest, where there are too many files."""
    codes = list(folder.glob("*.nbc*"))
    if len(codes) < _MOST_FILES:
        return
    codes.sort(key=lambda path: path.stat().st_mtime)
    for path in codes[: _MOST_FILES // 4]:
        path.unlink(missing_ok=True)


@cache
def _surroundings() -> str:
    """Describe all besides the function that machine code depends on: Python, packages, settings, this code."""
    found = hashlib.sha256(repr((sys.version, config.OPT, config.BOUNDSCHECK)).encode())
    for package in _PACKAGES:
        found.update(version(package).encode())
    root = Path(__file__).parents[1]
    for path in sorted(path for folder in _SOURCES for path in (root / folder).rglob("*.py")):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _encode(value: Any, encoded: Any) -> None:
    """Add a value to a hash, so that different values add different bytes, in every process the same."""
    if value is None or value is Ellipsis or isinstance(value, bool | int | float | complex | str | bytes):
        parts: tuple[Any, ...] = ()
        text = f"{type(value).__name__} {value!r}"
    elif isinstance(value, Role):
        parts, text = (), str(value)
    elif isinstance(value, np.dtype):
        parts, text = (), f"{value!r} {value.isalignedstruct}"
    elif isinstance(value, tuple | list):
        parts, text = tuple(value), "sequence"
    elif isinstance(value, Mapping):
        parts, text = (frozenset(value.items()),), "mapping"
    elif isinstance(value, Set):
        parts, text = tuple(sorted(map(_digest, value))), "set"
    elif isinstance(value, types.CodeType):
        parts, text = _parts_of(value), "code"
    else:
        parts, text = (), _name_of(value.value if isinstance(value, ById) else value)
    encoded.update(f"{len(text)} {len(parts)} {text}".encode())
    for part in parts:
        _encode(part, encoded)


def _digest(value: Any) -> bytes:
    encoded = hashlib.sha256()
    _encode(value, encoded)
    return encoded.digest()


def _parts_of(code: types.CodeType) -> tuple[Any, ...]:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    place = (code.co_filename, code.co_firstlineno, code.co_linetable)  # errors may tell it
    exceptions = getattr(code, "co_exceptiontable", b"")
    return code.co_name, code.co_code, exceptions, code.co_consts, names, counts, place


def _name_of(value: Any) -> str:
    """Return the name of what a library has made, such as `math.exp`."""
    module, name = getattr(value, "__module__", None) or "numpy", getattr(value, "__qualname__", None)
    name = name or getattr(value, "__name__", None)
    if name is not None and module.partition(".")[0] in _STABLE_MODULES:
        found = getattr(sys.modules.get(module), name, None)
        if found is value:
            return f"{module}.{name}"
    raise _UnknownError
