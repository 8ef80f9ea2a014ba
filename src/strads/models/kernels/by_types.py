"""Functions for compiled code only, whose implementation depends on the types of their arguments."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from numba.extending import overload


def by_types(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of a function that gets types and returns an implementation; it takes options of `overload`.

    Compiled code calls the result with values. Type checkers see a function that may return anything.
    """

    def define(choose: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(choose)
        def stub(*_: Any) -> Any:
            raise NotImplementedError(f"{choose.__name__} is for compiled code only")

        overload(stub, **options)(choose)
        return stub

    return define
