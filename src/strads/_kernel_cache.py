"""Compiled kernels on disk: where nothing can be kept or read, they are compiled again instead of ending the program.

Numba raises an error when `@njit(cache=True)` finds no folder to write to, that is when a module of strads is
imported; when the disk is full as it saves; and when a file there is damaged. None of these concerns the result. Only
functions of strads are treated this way; those of the program behave as Numba has it.
"""

from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Self

from numba.core import caching

_OURS = Path(__file__).parent
_NOWHERE = "/dev/null/strads"  # nothing can be there on any system


class _NoFolder(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
    """What Numba takes after all other places: one where nothing is found, and nothing can be saved."""

    def __init__(self, function: Any, source: str):
        self._py_file, self._lineno = source, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Any, source: str) -> Self | None:
        """Return this place for a function of strads."""
        return cls(function, source) if _OURS in Path(source).parents else None

    def get_cache_path(self) -> str:
        """Return the place's name."""
        return _NOWHERE

    def get_source_stamp(self) -> str:
        """Return the same for all sources: nothing is kept that could become outdated."""
        return ""


def _forgiving(method: Any) -> Any:
    """Return a method of `numba.core.caching.Cache` that returns None where it raises, for functions of strads."""

    @wraps(method)
    def run(cache: Any, *arguments: Any) -> Any:
        if _OURS not in Path(cache._py_func.__code__.co_filename).parents:
            return method(cache, *arguments)
        with suppress(Exception):  # reading and unpickling a damaged file may raise anything
            return method(cache, *arguments)
        return None

    return run


caching.CacheImpl._locator_classes.append(_NoFolder)
for _name in ("load_overload", "save_overload"):
    setattr(caching.Cache, _name, _forgiving(getattr(caching.Cache, _name)))
