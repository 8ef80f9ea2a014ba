"""Comparisons of integers that hold at a point of a body, because of the branches that lead there."""

import operator
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from numba.core import ir

from strads.bodies.analysis.definitions import Definitions

_OPPOSITE = {operator.lt: operator.ge, operator.le: operator.gt, operator.gt: operator.le, operator.ge: operator.lt}
_OPPOSITE |= {operator.eq: operator.ne, operator.ne: operator.eq}
_MIRRORED = {operator.gt: operator.lt, operator.ge: operator.le}

Point = int | tuple[int, int]  # a block, or an edge between two


@dataclass(frozen=True)
class Comparison:
    """One variable is less than another (`lt`), at most as large (`le`), or different from it (`ne`)."""

    small: str
    large: str
    function: Any  # of the module `operator`


class Conditions:
    """The conditions of a body's branches.

    A condition holds in the blocks that are only reached by its branch. Variables are those of the SSA form: between a
    condition and the blocks in which it holds, they keep their values.

    Parameters
    ----------
    blocks, cfg
        The body in SSA form, and its control flow.
    definitions
        Of its variables.
    integers
        The variables that are certainly integers: others may be NaN, of which no comparison holds.
    """

    def __init__(self, blocks: Mapping[int, Any], cfg: Any, definitions: Definitions, integers: Set[str]):
        self._blocks, self._cfg, self._definitions, self._integers = blocks, cfg, definitions, integers
        self._dominators = cfg.dominators()
        self._comparisons: dict[Point, list[Comparison]] = {}

    def comparisons_in(self, point: Point) -> list[Comparison]:
        """Return the comparisons of variables that hold in a block, or on an edge."""
        if point not in self._comparisons:
            if isinstance(point, int):
                edges = [(self._before(block), block) for block in sorted(self._dominators.get(point, ()))]
                found = [comparison for edge in edges for comparison in self._comparisons_on(*edge)]
            else:
                found = [*self.comparisons_in(point[0]), *self._comparisons_on(*point)]
            self._comparisons[point] = found
        return self._comparisons[point]

    def _before(self, block: int) -> int | None:
        """Return the only predecessor of a block; None if there are several, or none."""
        before = [source for source, _ in self._cfg.predecessors(block)]
        return before[0] if len(before) == 1 else None

    def _comparisons_on(self, source: int | None, block: int) -> Iterator[Comparison]:
        """Yield the comparisons that the branch from one block to another implies."""
        last = None if source is None else self._blocks[source].body[-1]
        if isinstance(last, ir.Branch) and last.truebr != last.falsebr:
            yield from self._comparisons_of(last.cond.name, last.truebr == block)

    def _comparisons_of(self, condition: str, holds: bool) -> Iterator[Comparison]:
        """Yield what follows from a condition that holds, or does not."""
        definitions = self._definitions
        node = definitions.node(definitions.root(condition))
        if not isinstance(node, ir.Expr):
            return
        if node.op == "call" and definitions.value(node.func.name).constant is bool and len(node.args) == 1:
            yield from self._comparisons_of(node.args[0].name, holds)
        elif node.op == "unary" and node.fn is operator.not_:
            yield from self._comparisons_of(node.value.name, not holds)
        elif node.op == "binop" and node.fn in _OPPOSITE:
            one, other, function = definitions.root(node.lhs.name), definitions.root(node.rhs.name), node.fn
            if not {one, other} <= self._integers:  # no comparison with NaN holds
                return
            if not holds:
                function = _OPPOSITE[function]
            if function in _MIRRORED:
                one, other, function = other, one, _MIRRORED[function]
            if function is operator.eq:
                yield Comparison(one, other, operator.le)
                yield Comparison(other, one, operator.le)
            else:
                yield Comparison(one, other, function)
