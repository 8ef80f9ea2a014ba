"""Ranges of integers: which indices exist because of the conditions under which they are used, as `if 0 <= i < n`.

Bounds are found on demand, from an index back to what it is computed from, and to the `conditions` under which it is;
integers are written as another one plus a constant (compare Bodík et al., ABCD, PLDI 2000).
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from numba.core import ir

from strads.bodies.analysis.conditions import Conditions, Point
from strads.bodies.analysis.definitions import SMALL, Definitions, operator_of
from strads.bodies.analysis.integers import Integers
from strads.bodies.analysis.intervals import LENGTHS, MAX_BITS, SMALL_SIZE, Intervals, is_small
from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.values import FIRST_INDEX, INDICES, Fits, Given, Size, Value, largest, of_contents

_DEEPEST, _MAX_STEPS = 10, 300  # recursion depth, and number of bounds, at which the search for a bound is given up
_EXTENDED = ("axis", "argument", "indices")  # kinds to which constants are added, to be looked up before a run


class Assuming(Enum):
    """What bounds may depend on; the fewer assumptions suffice, the better."""

    NOTHING = auto()
    SIZES = auto()  # of arrays, and scalars
    CONTENTS = auto()  # of tables, too

    def allows(self, fits: Fits) -> bool:
        """Whether these pairs of sizes may be assumed to fit."""
        if self is Assuming.NOTHING:
            return not fits
        return self is Assuming.CONTENTS or all(of_contents(own) is None for own, _ in fits)


@dataclass(frozen=True)
class Bound:
    """A bound of an integer, if some sizes fit into others.

    `at`: of a lower bound, the bound; of an upper bound relative to a size, the bound minus the size (−1: below it).
    """

    at: int
    fits: Fits = frozenset()

    def moved(self, by: int, fits: Fits = frozenset()) -> "Bound":
        """Return the bound of the integer plus a constant."""
        return Bound(self.at + by, self.fits | fits)


class Ranges:
    """Bounds of the integers of a body.

    Parameters
    ----------
    blocks, cfg
        The body in SSA form, and its control flow.
    values
        The values of its variables.
    kinds
        The kinds of its tables.
    written
        Tables that the body may write.

    Attributes
    ----------
    definitions
        Of its variables.
    intervals
        Of sums and products of integers.
    integers, signed
        The variables that are certainly integers, as there are no bounds of others; those with a sign: see `Integers`.
    """

    def __init__(
        self,
        blocks: Mapping[int, Any],
        cfg: Any,
        values: Mapping[str, Value],
        kinds: Mapping[int, TableKind],
        written: frozenset[int],
    ):
        self.definitions = Definitions(blocks, values, written)
        integers = Integers(self.definitions, kinds)
        self.integers, self.signed = integers.known, integers.signed
        self.intervals = Intervals(self)
        self._conditions = Conditions(blocks, cfg, self.definitions, self.integers)
        self._assumed: dict[tuple[str, Size | None], Bound] = {}  # of φ nodes: see `_of_phi`
        self._steps, self._assuming = 0, Assuming.NOTHING  # of the current question: bounds so far

    def fits(self, index: str, point: Point, size: Size) -> Fits | None:
        """Return the pairs of sizes under which a variable, used in a block, is in `0..size - 1`; None if unknown."""
        found = self.between(index, point, size)
        if found is None or found[0] < 0:
            found = self._of_scalar(index, size)
        return None if found is None else found[1]

    def between(self, variable: str, point: Point, size: Size) -> tuple[int, Fits] | None:
        """Return a lower bound of a variable that is below a size, and the pairs of sizes under which both hold.

        None if it is not known to be below. The lower bound is 0 if the variable is known to be nonnegative, else
        negative.
        """
        best = None
        for self._assuming in Assuming:
            self._steps = 0
            low, high = self._bound(variable, point, None, 0), self._upper(variable, point, size)
            if low is not None and high is not None and high.at < 0 and (best is None or low.at >= 0 > best[0]):
                best = min(low.at, 0), _minimal(low.fits | high.fits)
            if best is None and self._assuming is Assuming.SIZES:
                best = self._of_scalar(variable, size)
        return best

    def _upper(self, variable: str, point: Point, size: Size) -> Bound | None:
        """Return an upper bound of a variable relative to a size: that of its interval if no other is below."""
        high = self._bound(variable, point, size, 0)
        if self._assuming is Assuming.NOTHING or (high is not None and high.at < 0):
            return high
        most = self.intervals.most(variable, point) if self.definitions.root(variable) in self.integers else None
        if most is None or most[0] == size:
            return high
        return Bound(-1, most[1] | {(("plus", most[0], 1), size)})

    def _of_scalar(self, variable: str, size: Size) -> tuple[int, Fits] | None:
        """Return what `between` does for a scalar argument, plus a constant: its value is known before a run."""
        base, added = self.definitions.linear(self.definitions.root(variable))
        own = self.definitions.value(base).size
        if own is None or own[0] != "argument" or base not in self.integers:
            return None
        return 0, frozenset({(("constant", max(-added, 0)), own), (("plus", own, added + 1), size)})

    def begin(self, assuming: Assuming) -> None:
        """Begin a question; see `lower`."""
        self._steps, self._assuming = 0, assuming

    def nonnegative(self, variable: str, point: Point) -> frozenset[Given] | None:
        """Return the numbers because of which an integer variable, used in a block, is not negative if they are not.

        None if it may be negative all the same.
        """
        for self._assuming in Assuming:
            self._steps = 0
            low = self._bound(variable, point, None, 0)
            given = [None] if low is None or low.at < 0 else [_given(own, size) for own, size in low.fits]
            known = [number for number in given if number is not None]
            if len(known) == len(given):
                return frozenset(known)
        return None

    def _bound(self, variable: str, point: Point, size: Size | None, depth: int) -> Bound | None:
        """Return a lower bound of a variable in a block; with `size`, an upper one relative to that."""
        self._steps += 1
        if depth > _DEEPEST or self._steps > _MAX_STEPS:
            return None
        variable = self.definitions.root(variable)
        if variable not in self.integers:
            return None
        bounds = [self._of_value(variable, size), self._of_definition(variable, point, size, depth + 1)]
        bounds += self._of_conditions(variable, point, size, depth + 1)
        best = _tightest([b for b in bounds if b is not None and self._assuming.allows(b.fits)], size)
        if size is None and best is not None and best.at in self._others(variable, point):
            return best.moved(1)
        return best

    def _of_value(self, variable: str, size: Size | None) -> Bound | None:
        """Return the bound that is known of the value itself."""
        value, constant = self.definitions.value(variable), self.definitions.constant(variable)
        own, below = value.size, value.below
        if constant is not None:
            if size is None or size[0] == "constant":
                return Bound(constant - (0 if size is None else size[1]))
            return Bound(-1, _pair(("constant", constant + 1), size) if constant >= 0 else frozenset())
        if size is None:
            if own is not None and own[0] in LENGTHS:  # it is mostly not 0
                fits = frozenset({(("constant", 1), own)})
                return Bound(1, fits) if self._assuming.allows(fits) else Bound(0)
            if own is not None and own[0] == "argument":
                return Bound(0, frozenset({(("constant", 0), own)}))
            if below is not None and below[0] in LENGTHS:
                return Bound(0)
            return None if below is None else Bound(0, is_small(below, is_below=True))
        if own is not None:
            return Bound(0, _pair(own, size))
        if below is None:
            return None
        return Bound(-1, _pair(("top", *below[1:]) if below[0] == "above" else below, size))

    def _of_definition(self, variable: str, point: Point, size: Size | None, depth: int) -> Bound | None:
        """Return the bound that follows from how a variable is computed."""
        node = self.definitions.node(variable)
        if not isinstance(node, ir.Expr):
            return None
        if node.op == "phi":
            return self._of_phi(variable, node, size, depth)
        if node.op == "pair_first":
            return self._of_range(node, size, depth)
        if operator_of(node) is operator.and_:
            return self._of_mask(node, point, size, depth)
        base, added = self.definitions.linear(variable)
        if base == variable and operator_of(node) is operator.sub:
            return self._of_difference(node, point, size, depth)
        if base == variable and operator_of(node) in (operator.add, operator.mul):
            return self.intervals.least(node, point, depth) if size is None else None
        if base != variable:
            is_before = size is None and added < 0 and self.definitions.value(base).below == INDICES
            if is_before and self._assuming is not Assuming.NOTHING:
                return Bound(0, frozenset({(("constant", -added), FIRST_INDEX)}))
            fits, bound = self._may_add(added, base, point, depth), self._bound(base, point, size, depth)
            below = self.definitions.value(base).below
            if size is not None and added > 0 and below is not None and below[0] in (*_EXTENDED, "above"):
                limit = ("top", *below[1:]) if below[0] == "above" else below
                further = frozenset({(("plus", limit, added), size)})
                if self._assuming.allows(further) and (bound is None or bound.at + added >= 0):
                    return Bound(-1, further)
            return None if fits is None or bound is None else bound.moved(added, fits)
        if node.op == "call" and len(node.args) == 2 and not node.kws and node.vararg is None:
            function = self.definitions.value(node.func.name).constant
            if function is min or function is max:
                either = [self._bound(each.name, point, size, depth) for each in node.args]
                return (_tightest if (function is max) == (size is None) else _loosest)(either, size)
        return None

    def _of_difference(self, node: Any, point: Point, size: Size | None, depth: int) -> Bound | None:
        """Return the bound of the difference of two integers that are not negative, so that it does not overflow."""
        large, small = self.definitions.root(node.lhs.name), self.definitions.root(node.rhs.name)
        low, least = self._bound(large, point, None, depth), self._bound(small, point, None, depth)
        if low is None or least is None or min(low.at, least.at) < 0:
            return None
        fits = low.fits | least.fits
        if size is None:
            return Bound(0, fits) if self._is_at_least(large, small, point) else None
        high = self._bound(large, point, size, depth) if self.does_not_wrap(node, point) else None
        return None if high is None else high.moved(-least.at, fits)

    def lower(self, variable: str, point: Point, depth: int) -> Bound | None:
        """Return a lower bound of a variable, as far as it may depend on sizes in the current question."""
        return self._bound(variable, point, None, depth)

    def does_not_wrap(self, node: Any, point: Point) -> bool:
        """Whether the difference of two integers that are not negative is computed with a sign, or not negative."""
        large, small = self.definitions.root(node.lhs.name), self.definitions.root(node.rhs.name)
        return bool({large, small} & self.signed) or self._is_at_least(large, small, point)

    def _is_at_least(self, large: str, small: str, point: Point) -> bool:
        """Whether a condition says that one variable is not smaller than another, or a range starts at the other."""
        node = self.definitions.node(large)
        if isinstance(node, ir.Expr) and node.op == "pair_first":
            _, first, _, step = self.definitions.range_of(node)
            if first is not None and step > 0 and self.definitions.root(first) == small:
                return True
        return any(
            (comparison.small, comparison.large) == (small, large)
            for comparison in self._conditions.comparisons_in(point)
            if comparison.function is not operator.ne
        )

    def _of_mask(self, node: Any, point: Point, size: Size | None, depth: int) -> Bound | None:
        """Return the bound of the bits that two integers share: those of one that is not negative limit them."""
        found = list[Bound]()
        for operand in (node.lhs.name, node.rhs.name):
            low, own = self._bound(operand, point, None, depth), self.definitions.value(operand).size
            if low is None or low.at < 0:
                continue
            high = Bound(0) if size is None else self._bound(operand, point, size, depth)
            if high is not None:
                found.append(high.moved(0, low.fits))
            if size is not None and own is not None and own[0] in _EXTENDED:
                found.append(Bound(-1, low.fits | {(("plus", own, 1), size)}))
        return _tightest([bound for bound in found if self._assuming.allows(bound.fits)], size)

    def _of_range(self, node: Any, size: Size | None, depth: int) -> Bound | None:
        """Return the bound of the numbers of a range."""
        home, first, stop, step = self.definitions.range_of(node)
        if step == 0:
            return None
        if (step > 0) == (size is None):
            return Bound(0) if first is None else self._bound(first, home, size, depth)
        read = largest(self.definitions.value(stop))
        if size is not None and read is not None and self._assuming is Assuming.CONTENTS:
            return Bound(-1, _pair(read, size))  # the end may be as large as the size
        end = self._bound(stop, home, size, depth)
        return None if end is None else end.moved(-1 if step > 0 else 1)

    def _of_phi(self, variable: str, node: Any, size: Size | None, depth: int) -> Bound | None:
        """Return the bound of what may arrive at a φ node; by induction, if that depends on its own earlier values."""
        if (variable, size) in self._assumed:
            return self._assumed[variable, size]
        if ir.UNDEFINED in node.incoming_values:
            return None
        # Values that are computed from the node's own do not count at first; then the result has to suffice for them.
        guess: Bound | None = Bound(SMALL if size is None else -SMALL)
        for _ in range(3):
            assert guess is not None
            self._assumed[variable, size] = guess
            try:
                arriving = self._arriving(variable, node)
                found = _loosest([self._bound(each.name, edge, size, depth) for each, edge in arriving], size)
            finally:
                del self._assumed[variable, size]
            if found is None or abs(found.at) >= SMALL:
                return None
            if found.at >= guess.at if size is None else found.at <= guess.at:
                return Bound(guess.at, found.fits)
            guess = found
        return None

    def _of_conditions(self, variable: str, point: Point, size: Size | None, depth: int) -> Iterator[Bound]:
        """Yield the bounds that the conditions which hold in a block set."""
        base, added = self.definitions.linear(variable)
        for comparison in self._conditions.comparisons_in(point):
            if comparison.function is operator.ne:
                continue
            near, far = (comparison.large, comparison.small) if size is None else (comparison.small, comparison.large)
            other, more = self.definitions.linear(near)
            if other != base:
                continue
            # The same expression has the same value; from another one, it follows if neither overflows.
            differing = (more, added) if more != added else (0, 0)
            allowed = [self._may_add(constant, base, point, depth) for constant in differing]
            bound = None if None in allowed else self._bound(far, point, size, depth)
            if bound is not None:
                fits = frozenset[tuple[Size, Size]]().union(*(pairs or () for pairs in allowed))
                is_strict = comparison.function is operator.lt
                yield bound.moved((1 if size is None else -1) * is_strict + added - more, fits)

    def _others(self, variable: str, point: Point) -> set[int | None]:
        """Return constants that a variable differs from."""
        comparisons = [
            comparison for comparison in self._conditions.comparisons_in(point) if comparison.function is operator.ne
        ]
        ends = [comparison.large for comparison in comparisons if comparison.small == variable]
        return {
            self.definitions.constant(end)
            for end in ends + [comparison.small for comparison in comparisons if comparison.large == variable]
        }

    def _may_add(self, constant: int, variable: str, point: Point, depth: int) -> Fits | None:
        """Return the pairs of sizes under which the sum of a constant and a variable does not overflow, if known."""
        if constant == 0:
            return frozenset()
        found = self._is_small(variable)
        if found is not None:
            return found
        if constant < 0:
            low = self._bound(variable, point, None, depth)
            return None if low is None else low.fits
        found, node = self._limit(variable, point), self.definitions.node(variable)
        if found is None and self._assuming is not Assuming.NOTHING:
            most = self.intervals.most(variable, point, depth)
            found = None if most is None else most[1] | {(most[0], SMALL_SIZE)}
        if found is not None or not (isinstance(node, ir.Expr) and node.op == "phi"):
            return found
        if ir.UNDEFINED in node.incoming_values:
            return None
        each = [
            self._limit(self.definitions.root(arriving.name), edge) for arriving, edge in self._arriving(variable, node)
        ]
        known = [fits for fits in each if fits is not None]
        return frozenset[tuple[Size, Size]]().union(*known) if len(known) == len(each) else None

    def _is_small(self, variable: str) -> Fits | None:
        """Return the pairs of sizes under which a variable is small itself, whatever its sign, if known."""
        value = self.definitions.value(variable)
        magnitude = value.magnitude
        if self.definitions.constant(variable) is not None:
            return frozenset()
        if magnitude and not magnitude.given | magnitude.limits and magnitude.bits <= MAX_BITS:
            return frozenset()
        found = [is_small(value.below, is_below=True)] if value.below is not None else []
        found += [is_small(value.size)] if value.size is not None else []
        return min(filter(self._assuming.allows, found), key=len, default=None)

    def _limit(self, variable: str, point: Point) -> Fits | None:
        """Return the pairs of sizes under which a variable is not large: it, its range or a condition says so."""
        comparisons = self._conditions.comparisons_in(point)
        ends = [
            comparison.large
            for comparison in comparisons
            if comparison.small == variable and comparison.function is not operator.ne
        ]
        node = self.definitions.node(variable)
        if isinstance(node, ir.Expr) and node.op == "pair_first":
            _, first, stop, step = self.definitions.range_of(node)
            ends += [end for end in (stop if step > 0 else first,) if step and end]
        found = [self._is_small(self.definitions.linear(end)[0]) for end in (variable, *ends)]
        return min((fits for fits in found if fits is not None), key=len, default=None)

    def _arriving(self, variable: str, node: Any) -> list[tuple[Any, Point]]:
        """Return the variables that may arrive at a φ node, each with the edge on which it does."""
        home = self.definitions.block_and_node(variable)[0]
        return [(v, (block, home)) for v, block in zip(node.incoming_values, node.incoming_blocks, strict=True)]


def _pair(own: Size, size: Size) -> Fits:
    return frozenset() if own == size else frozenset({(own, size)})


def _given(own: Size, size: Size) -> Given | None:
    """Return the number because of which a size fits into another if it is in `0..SMALL - 1`; None if there is none."""
    if size == SMALL_SIZE and own[0] == "above":
        return "content", *own[1:]
    return size if own == ("constant", 0) and size[0] == "argument" else None


def _minimal(fits: Fits) -> Fits:
    """Return pairs of sizes without those that others imply: what fits into an array is small."""
    nonnegative = {own[1:] for own, _ in fits if own[0] == "above"}
    merged = {(("above", *own[1:]) if own[0] == "top" and own[1:] in nonnegative else own, size) for own, size in fits}
    small = {own for own, size in merged if size != SMALL_SIZE}
    return frozenset((own, size) for own, size in merged if not (size == SMALL_SIZE and own in small))


def _tightest(bounds: Sequence[Bound | None], size: Size | None) -> Bound | None:
    """Return the tightest of several bounds of a number."""
    sign = -1 if size is None else 1
    return min((b for b in bounds if b is not None), key=lambda b: (sign * b.at, len(b.fits)), default=None)


def _loosest(bounds: Sequence[Bound | None], size: Size | None) -> Bound | None:
    """Return the bound of a number that is any of several."""
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds) or not known:
        return None
    at = min(b.at for b in known) if size is None else max(b.at for b in known)
    return Bound(at, frozenset[tuple[Size, Size]]().union(*(b.fits for b in known)))
