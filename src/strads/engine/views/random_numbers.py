"""The view of random numbers: each draw is a function of the task and of how many it has made before."""

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload_method, register_jitable

from strads.engine.views.types import INNER, define_view
from strads.rng.numbers import check_table, chosen, integer_between, standard_normal, unit_number
from strads.rng.philox import random_words

# `drawn` is an array of one number on the stack of the loop over tasks; `one` has the precision of the numbers.
RandomType, make_random = define_view("Random", "key", "one", "stream", "drawn")


@register_jitable
def next_words(view):  # type: ignore[no-untyped-def]
    """Draw two random words."""
    count = view.drawn[0]
    view.drawn[0] = count + 1
    return random_words(view.key, view.stream, np.uint64(count))


@overload_method(RandomType, "random", jit_options=INNER)
def _random(view):  # type: ignore[no-untyped-def]
    return lambda view: unit_number(next_words(view), view.one)


@overload_method(RandomType, "normal", jit_options=INNER)
def _normal(view):  # type: ignore[no-untyped-def]
    kind = view.member("one")
    return lambda view: kind(standard_normal(next_words(view)))


@overload_method(RandomType, "integers", jit_options=INNER)
def _integers(view, low, high=None):  # type: ignore[no-untyped-def]
    for bound in (low, high):
        if not isinstance(bound, types.Integer | types.NoneType | types.Omitted) and bound is not None:
            raise TypingError("rng.integers takes whole numbers")
    if high is None or isinstance(high, types.NoneType | types.Omitted):
        return lambda view, low, high=None: integer_between(next_words(view), np.int64(0), low)
    return lambda view, low, high=None: integer_between(next_words(view), low, high)


@overload_method(RandomType, "choice", jit_options=INNER)
def _choice(view, table):  # type: ignore[no-untyped-def]
    check_table(table, "choice")
    return lambda view, table: chosen(next_words(view), table)
