"""The view of random numbers: each draw is a function of the task and of how many it has made before."""

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload_method, register_jitable

from strads.engine.compiling import INNER
from strads.engine.views.types import define_view
from strads.rng.numbers import check_table, chosen, integer_between, standard_normal, unit_number
from strads.rng.philox import random_words

# `drawn` is an array of `DRAW_STATE` numbers on the stack of the loop over tasks: how many words the task has drawn,
# the key of its last block, and that block's second word. `one` has the precision of the numbers.
RandomType, make_random = define_view("Random", "key", "one", "stream", "drawn")
DRAW_STATE = 3


@register_jitable
def next_word(view):  # type: ignore[no-untyped-def]
    """Draw a random word: two come from one block, see `NumbersOfTask`."""
    count, key = view.drawn[0], np.int64(view.key)
    view.drawn[0] = count + 1
    if count & 1 and view.drawn[1] == key:
        return np.uint64(view.drawn[2])
    first, second = random_words(view.key, view.stream, np.uint64(count >> 1))
    view.drawn[1], view.drawn[2] = key, np.int64(second)
    return second if count & 1 else first


@register_jitable
def next_words(view):  # type: ignore[no-untyped-def]
    """Draw the two random words of the next block."""
    block = (view.drawn[0] + 1) >> 1
    view.drawn[0] = 2 * block + 2
    return random_words(view.key, view.stream, np.uint64(block))


@overload_method(RandomType, "random", jit_options=INNER)
def _random(view):  # type: ignore[no-untyped-def]
    return lambda view: unit_number(next_word(view), view.one)


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
        return lambda view, low, high=None: integer_between(next_word(view), np.int64(0), low)
    return lambda view, low, high=None: integer_between(next_word(view), low, high)


@overload_method(RandomType, "choice", jit_options=INNER)
def _choice(view, table):  # type: ignore[no-untyped-def]
    check_table(table, "choice")
    return lambda view, table: chosen(next_words(view), table)
