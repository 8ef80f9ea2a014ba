"""Largest values of sums and products of integers, and the blocks of rows that tasks have, as `T[k * W + j]`.

Compare Moore, Interval Analysis (1966). The ends of intervals are sizes, whose values are looked up before a run.
"""

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numba.core import ir

from strads.bodies.analysis.conditions import Point
from strads.bodies.analysis.definitions import operator_of
from strads.bodies.analysis.values import Block, Fits, Size

if TYPE_CHECKING:
    from strads.bodies.analysis.ranges import Bound, Ranges

# That intermediate results do not overflow is known if the ends of their intervals are at most as large.
_SMALL_SIZE: Size = ("constant", 1 << 61)
_EXACT = ("axis", "argument", "constant")  # kinds of sizes that are looked up, not only bounds
_LIMITS = ("axis", "argument", "constant", "indices", "modulus")
_DEEPEST = 8

Known = tuple[Size, Fits]  # a size, and pairs of sizes under which it is what it is said to be


class Intervals:
    """Intervals of the integers of a body, of which `Ranges` knows the lower ends."""

    def __init__(self, ranges: "Ranges", loop_index: int | None):
        self._ranges, self._definitions, self._loop_index = ranges, ranges.definitions, loop_index

    def least(self, node: Any, point: Point, depth: int) -> "Bound | None":
        """Return the lower bound of a sum or product of two integers that are not negative."""
        low, other = (self._ranges.lower(each.name, point, depth) for each in (node.lhs, node.rhs))
        most = self._most_of(node, point, depth)
        if low is None or other is None or most is None:
            return None
        at = low.at + other.at if operator_of(node) is operator.add else low.at * other.at
        return low.moved(at - low.at, other.fits | most[1] | {(most[0], _SMALL_SIZE)})

    def most(self, variable: str, point: Point, depth: int = 0) -> Known | None:
        """Return the largest value that a variable may have."""
        if depth > _DEEPEST:
            return None
        base, added = self._definitions.linear(variable)
        if added:
            found, low = self.most(base, point, depth + 1), self._ranges.lower(base, point, depth + 1)
            if found is None or low is None:  # adding the constant might overflow
                return None
            return _plus(found[0], added), found[1] | low.fits | {(found[0], _SMALL_SIZE)}
        value, node = self._definitions.value(base), self._definitions.node(base)
        if base not in self._ranges.integers:
            return None
        if value.size is not None and value.size[0] in _EXACT:
            return value.size, _is_small(value.size)
        if value.below is not None and value.below[0] in _LIMITS:
            return _plus(value.below, -1), frozenset({(value.below, _SMALL_SIZE)})
        if not isinstance(node, ir.Expr):
            return None
        if node.op == "pair_first":
            home, first, stop, step = self._ranges.range_of(node)
            end = stop if step > 0 else first
            found = self.most(end, home, depth + 1) if step and end else None
            return None if found is None else (_plus(found[0], -(step > 0)), found[1])
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
            return (_plus(left[0], -other.at), fits) if self._ranges.does_not_wrap(node, point) else None
        right = self.most(node.rhs.name, point, depth + 1)
        if right is None:
            return None
        # What they are computed from is small, but the sum or product of several may be large.
        fits |= right[1] | {(left[0], _SMALL_SIZE), (right[0], _SMALL_SIZE)}
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
        home, _, stop, step = self._ranges.range_of(node)
        base, added = self._definitions.linear(stop) if step > 0 else ("", 0)
        node = self._definitions.node(base)
        if operator_of(node) is not operator.sub or self._definitions.root(node.rhs.name) != self._definitions.root(
            other
        ):
            return None
        low, most = self._ranges.lower(node.lhs.name, home, depth), self.most(node.lhs.name, home, depth)
        if low is None or low.at < 0 or most is None or not self._ranges.does_not_wrap(node, home):
            return None
        return _plus(most[0], added - 1), low.fits | most[1] | {(most[0], _SMALL_SIZE)}

    # -- blocks of rows --------------------------------------------------------------------------------

    def block(self, variable: str, point: Point) -> Block | None:
        """Return of what widths the nested blocks of rows are, of which the task has one that an index is in.

        They are W of `k * W + j` with j in `0..W - 1`, where k is the loop index, or an index in such a block itself:
        rows with other k differ. Returns also the pairs of sizes under which that is so; None if it is not known to be.
        """
        found, most = self._block(variable, point, 0), self.most(variable, point)
        if found is None or most is None:
            return None
        return found[0], found[1] | most[1] | {(most[0], _SMALL_SIZE)}

    def _block(self, variable: str, point: Point, depth: int) -> Block | None:
        if depth > _DEEPEST:
            return None
        base, added = self._definitions.linear(variable)
        if self._loop_index is not None and self._definitions.value(base).number == self._loop_index and not added:
            return (), frozenset()
        terms = list(self._terms(base))
        added += sum(more for _, more in terms)
        for number, (term, _) in enumerate(terms):
            rest = [other for place, (other, _) in enumerate(terms) if place != number]
            for outer, width in self._factors(term):
                inside = self._is_within(rest, added, width, point, depth + 1)
                found = None if inside is None else self._block(outer, point, depth + 1)
                if inside is not None and found is not None:
                    return (*found[0], width), found[1] | inside
        return None

    def _terms(self, variable: str) -> Iterator[tuple[str, int]]:
        """Yield the variables, with constants, that a variable is the sum of."""
        base, added = self._definitions.linear(variable)
        node = self._definitions.node(base)
        if operator_of(node) is operator.add:
            for number, operand in enumerate((node.lhs, node.rhs)):
                terms = list(self._terms(operand.name))
                terms[0] = terms[0][0], terms[0][1] + (0 if number else added)
                yield from terms
        else:
            yield base, added

    def _factors(self, variable: str) -> Iterator[tuple[str, Size]]:
        """Yield each factor of a product of which the other one is the same in all tasks, with that one."""
        node = self._definitions.node(variable)
        if operator_of(node) is operator.mul:
            for one, other in ((node.lhs.name, node.rhs.name), (node.rhs.name, node.lhs.name)):
                width = self._exact(other)
                if width is not None:
                    yield one, width

    def _exact(self, variable: str) -> Size | None:
        """Return the size that a variable is, or the product of sizes."""
        variable = self._definitions.root(variable)
        size, node = self._definitions.value(variable).size, self._definitions.node(variable)
        if size is not None:
            return size if size[0] in _EXACT else None
        if operator_of(node) is not operator.mul:
            return None
        factors = self._exact(node.lhs.name), self._exact(node.rhs.name)
        return None if None in factors else ("product", *factors)

    def _is_within(self, terms: list[str], added: int, width: Size, point: Point, depth: int) -> Fits | None:
        """Return the pairs of sizes under which a sum is in `0..width - 1`; None if that is not known."""
        most: Size = ("constant", added)
        fits, least = set(_is_small(width)), added
        for term in terms:
            low, high = self._ranges.lower(term, point, depth), self.most(term, point, depth)
            if low is None or high is None:
                return None
            least += low.at
            fits |= low.fits | high[1] | {(high[0], _SMALL_SIZE)}
            most = ("sum", most, high[0])
        return None if least < 0 else frozenset(fits | {(_plus(most, 1), width)})


def _plus(size: Size, added: int) -> Size:
    return ("plus", size, added) if added else size


def _is_small(size: Size) -> Fits:
    """Return the pairs of sizes under which a size is not negative and not large."""
    return frozenset() if size[0] in ("axis", "constant") else frozenset({(("constant", 0), size), (size, _SMALL_SIZE)})
