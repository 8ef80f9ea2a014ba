"""Which orders of integers hold where: those of the conditions of the branches that lead there."""

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
class Order:
    """That one variable is less than another (`lt`), at most as large (`le`), or another number (`ne`)."""

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
        self._orders: dict[Point, list[Order]] = {}

    def orders_in(self, point: Point) -> list[Order]:
        """Return the orders of variables that hold in a block, or on an edge."""
        if point not in self._orders:
            if isinstance(point, int):
                edges = [(self._before(block), block) for block in sorted(self._dominators.get(point, ()))]
                found = [order for edge in edges for order in self._orders_on(*edge)]
            else:
                found = [*self.orders_in(point[0]), *self._orders_on(*point)]
            self._orders[point] = found
        return self._orders[point]

    def _before(self, block: int) -> int | None:
        """Return the only predecessor of a block; None if there are several, or none."""
        before = [source for source, _ in self._cfg.predecessors(block)]
        return before[0] if len(before) == 1 else None

    def _orders_on(self, source: int | None, block: int) -> Iterator[Order]:
        """Yield the orders by the condition of the branch from one block to another."""
        last = None if source is None else self._blocks[source].body[-1]
        if isinstance(last, ir.Branch) and last.truebr != last.falsebr:
            yield from self._orders_of(last.cond.name, last.truebr == block)

    def _orders_of(self, condition: str, holds: bool) -> Iterator[Order]:
        """Yield what follows from a condition that holds, or does not."""
        definitions = self._definitions
        node = definitions.node(definitions.root(condition))
        if not isinstance(node, ir.Expr):
            return
        if node.op == "call" and definitions.value(node.func.name).constant is bool and len(node.args) == 1:
            yield from self._orders_of(node.args[0].name, holds)
        elif node.op == "unary" and node.fn is operator.not_:
            yield from self._orders_of(node.value.name, not holds)
        elif node.op == "binop" and node.fn in _OPPOSITE:
            one, other, function = definitions.root(node.lhs.name), definitions.root(node.rhs.name), node.fn
            if not {one, other} <= self._integers:  # no comparison with NaN holds
                return
            if not holds:
                function = _OPPOSITE[function]
            if function in _MIRRORED:
                one, other, function = other, one, _MIRRORED[function]
            if function is operator.eq:
                yield Order(one, other, operator.le)
                yield Order(other, one, operator.le)
            else:
                yield Order(one, other, function)
