"""Largest values of sums, products and differences of integers: which of them exist as indices.

Compare Moore, Interval Analysis (1966). The ends of intervals are sizes, whose values are looked up before a run.
"""

import operator
from typing import TYPE_CHECKING, Any

from numba.core import ir

from strads.bodies.analysis.conditions import Point
from strads.bodies.analysis.definitions import operator_of
from strads.bodies.analysis.values import Fits, Size

if TYPE_CHECKING:
    from strads.bodies.analysis.ranges import Bound, Ranges

# That intermediate results do not overflow is known if the ends of their intervals are at most as large.
MAX_BITS = 61
SMALL_SIZE: Size = ("constant", 1 << MAX_BITS)
LENGTHS = ("axis", "row")  # kinds of sizes that are those of arrays
EXACT = ("axis", "argument", "constant")  # kinds of sizes that are looked up, not only bounds
# Kinds of limits that ends of intervals are made of; not of contents, for which `of_contents` does not look into these.
_LIMITS = ("axis", "argument", "constant", "indices", "modulus")
_DEEPEST = 8

Known = tuple[Size, Fits]  # a size, and pairs of sizes under which it is what it is said to be


class Intervals:
    """Intervals of the integers of a body, of which `Ranges` knows the lower ends."""

    def __init__(self, ranges: "Ranges"):
        self._ranges, self._definitions = ranges, ranges.definitions

    def least(self, node: Any, point: Point, depth: int) -> "Bound | None":
        """Return the lower bound of a sum or product of two integers that are not negative."""
        low, other = (self._ranges.lower(each.name, point, depth) for each in (node.lhs, node.rhs))
        most = self._most_of(node, point, depth)
        if low is None or other is None or most is None:
            return None
        at = low.at + other.at if operator_of(node) is operator.add else low.at * other.at
        return low.moved(at - low.at, other.fits | most[1] | {(most[0], SMALL_SIZE)})

    def most(self, variable: str, point: Point, depth: int = 0) -> Known | None:
        """Return the largest value that a variable may have."""
        if depth > _DEEPEST:
            return None
        base, added = self._definitions.linear(variable)
        if added:
            found, low = self.most(base, point, depth + 1), self._ranges.lower(base, point, depth + 1)
            if found is None or low is None:  # adding the constant might overflow
                return None
            return plus(found[0], added), found[1] | low.fits | {(found[0], SMALL_SIZE)}
        value, node = self._definitions.value(base), self._definitions.node(base)
        if base not in self._ranges.integers:
            return None
        if value.size is not None and value.size[0] in EXACT:
            return value.size, is_small(value.size)
        if value.below is not None and value.below[0] in _LIMITS:
            return plus(value.below, -1), frozenset({(value.below, SMALL_SIZE)})
        if not isinstance(node, ir.Expr):
            return None
        if node.op == "pair_first":
            home, first, stop, step = self._definitions.range_of(node)
            end = stop if step > 0 else first
            found = self.most(end, home, depth + 1) if step and end else None
            return None if found is None else (plus(found[0], -(step > 0)), found[1])
        if node.op == "call" and self._definitions.value(node.func.name).constant is min and len(node.args) == 2:
            either = [self.most(each.name, point, depth + 1) for each in node.args]
            known = [each for each in either if each is not None]
            if len(known) < 2:
                return known[0] if known else None
            return ("smaller", known[0][0], known[1][0]), known[0][1] | known[1][1]
        return self._most_of(node, point, depth + 1)

    def _most_of(self, node: Any, point: Point, depth: int) -> Known | None:
        """Return the largest value of a sum, product or difference of two integers that are not negative."""
        function = operator_of(node)
        if function not in (operator.add, operator.mul, operator.sub):
            return None
        low, other = (self._ranges.lower(each.name, point, depth + 1) for each in (node.lhs, node.rhs))
        left = self.most(node.lhs.name, point, depth + 1)
        if low is None or other is None or left is None or min(low.at, other.at) < 0:
            return None
        fits = left[1] | low.fits | other.fits
        if function is operator.sub:
            return (plus(left[0], -other.at), fits) if self._ranges.does_not_wrap(node, point) else None
        right = self.most(node.rhs.name, point, depth + 1)
        if right is None:
            return None
        # What they are computed from is small, but the sum or product of several may be large.
        fits |= right[1] | {(left[0], SMALL_SIZE), (right[0], SMALL_SIZE)}
        if function is operator.add:
            for one, rest in ((node.lhs.name, node.rhs.name), (node.rhs.name, node.lhs.name)):
                end = self._most_before(one, rest, depth + 1)
                if end is not None:
                    return end[0], fits | end[1]
        return ("sum" if function is operator.add else "product", left[0], right[0]), fits

    def _most_before(self, variable: str, other: str, depth: int) -> Known | None:
        """Return the largest value of the sum of two variables, if the range of one of them ends before `n - other`."""
        node = self._definitions.node(self._definitions.root(variable))
        if not isinstance(node, ir.Expr) or node.op != "pair_first":
            return None
        home, _, stop, step = self._definitions.range_of(node)
        base, added = self._definitions.linear(stop) if step > 0 else ("", 0)
        node = self._definitions.node(base)
        if operator_of(node) is not operator.sub:
            return None
        if self._definitions.root(node.rhs.name) != self._definitions.root(other):
            return None
        low, most = self._ranges.lower(node.lhs.name, home, depth), self.most(node.lhs.name, home, depth)
        if low is None or low.at < 0 or most is None or not self._ranges.does_not_wrap(node, home):
            return None
        return plus(most[0], added - 1), low.fits | most[1] | {(most[0], SMALL_SIZE)}


def plus(size: Size, added: int) -> Size:
    """Return a size plus a constant."""
    return ("plus", size, added) if added else size


def is_small(size: Size, *, is_below: bool = False) -> Fits:
    """Return the pairs of sizes under which a size is that of an array, or as small.

    If it only `is_below` the size, a number may belong to a size that is negative.
    """
    if size[0] in (*LENGTHS, "constant"):
        return frozenset()
    is_nonnegative = frozenset() if is_below else frozenset({(("constant", 0), size)})
    return is_nonnegative | {(size, SMALL_SIZE)}
