"""What a body does with an accumulator: `add`, which recording ignores."""

from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import overload_method

from strads.engine.compiling import INNER
from strads.engine.views.kinds import AccumulatingType, IgnoringType


def _refuse_fraction(total: Any, amount: Any) -> None:
    if isinstance(total, types.Integer) and isinstance(amount, types.Float):
        raise TypingError("an accumulator that sums ints cannot add a float: make it with accumulator(0.0)")


@overload_method(AccumulatingType, "add", jit_options=INNER)
def _accumulating_add(view, amount):  # type: ignore[no-untyped-def]
    _refuse_fraction(view.member("totals").dtype, amount)

    def add(view, amount):  # type: ignore[no-untyped-def]
        view.totals[view.job, 0] += amount

    return add


@overload_method(IgnoringType, "add", jit_options=INNER)
def _ignoring_add(view, amount):  # type: ignore[no-untyped-def]
    _refuse_fraction(view.member("total"), amount)

    def add(view, amount):  # type: ignore[no-untyped-def]
        return None

    return add
