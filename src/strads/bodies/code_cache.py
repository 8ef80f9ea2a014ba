"""On-disk cache of the machine code of loop bodies, so that later processes need not recompile it.

Numba's own cache identifies a function by its source file and its closure, and ignores the globals and helpers that
the code was made from. Here everything that determines the machine code is part of the file name.
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

from strads.engine.views.roles import Role
from strads.user_code.functions import ById

_MAX_FILES = 4_000  # of some 100 kB
_UNRESOLVED = ".numba.unresolved$"  # prefix of symbols that are resolved later
_PACKAGES = ("numba", "llvmlite", "numpy")
_STABLE_MODULES = ("numpy", "numba", "math", "builtins")  # their versions are part of every key
# Folders of strads that contribute to compiled code.
_SOURCES = ("bodies", "dds", "engine", "loops", "rng", "schedule/kernels", "user_code")

# Numba numbers functions from 1 in each process and uses the numbers in symbol names. Code of two processes must not
# define the same symbol when loaded into a third one: LLVM would use the first definition for both.
FunctionIdentity._unique_ids = count(1 + secrets.randbits(60))


def keep_on_disk(dispatcher: Any, *inputs: Any) -> None:
    """Load a function from disk, or save it there once it is compiled, if it can be identified in other processes.

    Parameters
    ----------
    dispatcher
        Numba's dispatcher of the function; not yet compiled.
    inputs
        Everything that determines its code except the types of its arguments: numbers, strings, dtypes, enumerators,
        code, fingerprints of functions, and containers of these.
    """
    encoded = hashlib.sha256()
    with contextlib.suppress(_UnknownError):
        _encode(inputs, encoded)
        dispatcher._cache = _CodeCache(encoded.hexdigest())


class _UnknownError(Exception):
    """Something in a key has no name that is the same in every process."""


class _CodeCache(_Cache):
    """The cache interface that Numba queries before it compiles a function, and updates afterwards."""

    def __init__(self, inputs: str):
        self._inputs = inputs

    @property
    def cache_path(self) -> str | None:
        """The folder."""
        folder = code_folder()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the function compiled for these argument types, if it is in the cache."""
        target_context.refresh()
        folder, name = code_folder(), self._name(sig, target_context.codegen())
        if folder is None:
            return None
        with contextlib.suppress(Exception):  # a corrupt file counts as missing
            found = CompileResult._rebuild(target_context, *_files(folder)._load_data(name))
            os.utime(folder / name)  # marks it as recently used
            return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled function, if there is room for it."""
        folder, name = code_folder(), self._name(sig, data.codegen)
        if folder is None or data.lifted or data.library.has_dynamic_globals or _calls_itself(data.library):
            return
        with contextlib.suppress(Exception):  # for example a full disk: the function is still usable
            _make_room(folder)
            _files(folder)._save_data(name, data._reduce())

    def enable(self) -> None:
        """Do nothing: it is always enabled."""

    def disable(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing: a name always identifies the same code."""

    def _name(self, sig: Any, codegen: Any) -> str:
        key = self._inputs, str(sig), repr(_fields(sig)), repr(codegen.magic_tuple()), _surroundings()
        return hashlib.sha256("\n".join(key).encode()).hexdigest() + ".nbc"


def _fields(kind: Any) -> Any:
    """Return the names of the fields of tuples in types, which the names of the types do not tell."""
    if isinstance(kind, tuple | numba_types.BaseTuple):
        return getattr(kind, "fields", None), [_fields(item) for item in kind]
    return None


def _calls_itself(library: Any) -> bool:
    """Whether a function has a call that is resolved later, such as recursion: it is valid in this process only."""
    return any(variable.name.startswith(_UNRESOLVED) for variable in library._final_module.global_variables)


def _files(folder: Path) -> IndexDataCacheFile:
    """Return Numba's file reader and writer; its index is not used, as names carry all information."""
    return IndexDataCacheFile(str(folder), "", "")


def code_folder() -> Path | None:
    """Return this user's folder, which must be private because code is run from it. None if there is none."""
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
    """Remove the least recently used files if there are too many."""
    if len(os.listdir(folder)) < _MAX_FILES:
        return
    codes = sorted(folder.glob("*.nbc*"), key=lambda path: path.stat().st_mtime)
    for path in codes[: _MAX_FILES // 4]:
        path.unlink(missing_ok=True)


@cache
def _surroundings() -> str:
    """Describe what machine code depends on besides the function: Python, packages, settings, this code."""
    found = hashlib.sha256(repr((sys.version, config.OPT, config.BOUNDSCHECK)).encode())
    for package in _PACKAGES:
        found.update(version(package).encode())
    root = Path(__file__).parents[1]
    for path in sorted(path for folder in _SOURCES for path in (root / folder).rglob("*.py")):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _encode(value: Any, encoded: Any) -> None:
    """Add a value to a hash: different values add different bytes, which are the same in every process."""
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
    place = (code.co_filename, code.co_firstlineno, code.co_linetable)  # error messages may contain it
    exceptions = getattr(code, "co_exceptiontable", b"")
    return code.co_name, code.co_code, exceptions, code.co_consts, names, counts, place


def _name_of(value: Any) -> str:
    """Return the name of an object of a library, such as `math.exp`."""
    module, name = getattr(value, "__module__", None) or "numpy", getattr(value, "__qualname__", None)
    name = name or getattr(value, "__name__", None)
    if name is not None and module.partition(".")[0] in _STABLE_MODULES:
        found = getattr(sys.modules.get(module), name, None)
        if found is value:
            return f"{module}.{name}"
    raise _UnknownError
