"""Rows that a task has for itself: blocks of them, as those of `T[k * W + j]` with j in `0..W - 1`."""

import operator
from collections.abc import Iterator

from strads.bodies.analysis.conditions import Point
from strads.bodies.analysis.definitions import operator_of
from strads.bodies.analysis.intervals import EXACT, SMALL_SIZE, is_small, plus
from strads.bodies.analysis.ranges import Assuming, Ranges
from strads.bodies.analysis.values import Block, Fits, Size

_DEEPEST = 8  # nesting of blocks


class OwnRows:
    """The blocks of rows that the indices of a body select from.

    Parameters
    ----------
    ranges
        Of its integers.
    loop_index
        The value number of the loop index.
    """

    def __init__(self, ranges: Ranges, loop_index: int):
        self._ranges, self._intervals, self._definitions = ranges, ranges.intervals, ranges.definitions
        self._loop_index = loop_index

    def block(self, variable: str, point: Point) -> Block | None:
        """Return the widths of the nested blocks of rows that confine an index to rows of its own task.

        They are W of `k * W + j` with j in `0..W - 1`, where k is the loop index, or an index in such a block itself:
        rows with other k differ. Returns also the pairs of sizes under which that is so; None if it is not known to be.
        """
        self._ranges.begin(Assuming.SIZES)
        found, most = self._block(variable, point, 0), self._intervals.most(variable, point)
        if found is None or most is None:
            return None
        return found[0], found[1] | most[1] | {(most[0], SMALL_SIZE)}

    def _block(self, variable: str, point: Point, depth: int) -> Block | None:
        if depth > _DEEPEST:
            return None
        base, added = self._definitions.linear(variable)
        if self._definitions.value(base).number == self._loop_index and not added:
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
            return size if size[0] in EXACT else None
        if operator_of(node) is not operator.mul:
            return None
        factors = self._exact(node.lhs.name), self._exact(node.rhs.name)
        return None if None in factors else ("product", *factors)

    def _is_within(self, terms: list[str], added: int, width: Size, point: Point, depth: int) -> Fits | None:
        """Return the pairs of sizes under which a sum is in `0..width - 1`; None if that is not known."""
        most: Size = ("constant", added)
        fits, least = set(is_small(width)), added
        for term in terms:
            low, high = self._ranges.lower(term, point, depth), self._intervals.most(term, point, depth)
            if low is None or high is None:
                return None
            least += low.at
            fits |= low.fits | high[1] | {(high[0], SMALL_SIZE)}
            most = ("sum", most, high[0])
        return None if least < 0 else frozenset(fits | {(plus(most, 1), width)})
