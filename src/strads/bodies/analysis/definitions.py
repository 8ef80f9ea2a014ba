"""What the variables of a body are: how each is computed, and which of them are equal."""

import operator
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from numba.core import ir

from strads.bodies.analysis.values import Part, Value

SMALL = 1 << 31  # constants are smaller, so that adding some to the size of an array does not overflow
# Operations without effect, whose results are equal if their operands are; items, if no table of them is written.
_PURE = ("binop", "unary", "build_tuple", "getitem", "static_getitem", "getattr")
_OF_CONTAINERS = ("getitem", "static_getitem", "getattr")


class Definitions:
    """The definitions of a body's variables in SSA form.

    Parameters
    ----------
    blocks
        The body.
    values
        The values of its variables.
    written
        Tables that the body may write: two reads of an item of them may differ.
    """

    def __init__(self, blocks: Mapping[int, Any], values: Mapping[str, Value], written: frozenset[int]):
        self._nodes = {s.target.name: (n, s.value) for n, b in blocks.items() for s in b.find_insts(ir.Assign)}
        self._values, self._written = values, written
        self._roots = dict[str, str]()
        self._first = dict[Hashable, str]()  # by computation, the variable that represents all that are equal to it
        for variable in self._nodes:  # in order, as a long chain of operations is followed step by step
            self.root(variable)

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def block_and_node(self, variable: str) -> tuple[int, Any]:
        """Return where a variable is assigned, and what; block 0 and None if it is not."""
        return self._nodes.get(variable, (0, None))

    def node(self, variable: str) -> Any:
        """Return what is assigned to a variable; None if nothing is."""
        return self.block_and_node(variable)[1]

    def value(self, variable: str) -> Value:
        """Return the value of a variable."""
        return self._values.get(variable, Value())

    def constant(self, variable: str) -> int | None:
        """Return the small integer that a variable is; None for others."""
        constant = self.value(variable).constant
        return constant if type(constant) is int and abs(constant) < SMALL else None

    def root(self, variable: str) -> str:
        """Return the variable that represents all with the same value as this one.

        These are the variable that was assigned to it, directly or through others, and results of the same operation on
        the same operands. Where both are known, they are equal, as all operands have kept their values since.
        """
        if variable not in self._roots:
            first, node = variable, self.node(variable)
            while isinstance(node, ir.Var):
                first, node = node.name, self.node(node.name)
            self._roots[variable] = first  # if an operand is computed from the variable itself, by way of a φ node
            computation = self._computation(node)
            if computation is not None:
                self._roots[variable] = self._first.setdefault(computation, first)
        return self._roots[variable]

    def _computation(self, node: Any) -> Hashable | None:
        """Return what equal results are computed by; None if results may differ."""
        if isinstance(node, ir.Const | ir.Global | ir.FreeVar):
            return ("constant", node.value) if type(node.value) is int else None
        if not isinstance(node, ir.Expr) or node.op not in _PURE:
            return None
        if node.op in _OF_CONTAINERS and not self._is_fixed(self.value(node.value.name)):
            return None
        operands = tuple(self.root(operand.name) for operand in node.list_vars())
        fixed = tuple(getattr(node, key, None) for key in ("fn", "attr", "index") if key in node._kws)
        named = tuple(item for item in fixed if not isinstance(item, ir.Var))
        return None if any(isinstance(item, slice | list) for item in named) else (node.op, operands, named)

    def _is_fixed(self, container: Value) -> bool:
        """Whether the items of a container are those of a table, and do not change."""
        references = container.references
        return bool(references) and all(isinstance(r, Part) and r.argument not in self._written for r in references)

    def linear(self, variable: str) -> tuple[str, int]:
        """Return a variable as another one plus a constant."""
        added, variable = 0, self.root(variable)
        while True:
            node = self.node(variable)
            function = operator_of(node)
            if function is None:
                return variable, added
            left, right = self.constant(node.lhs.name), self.constant(node.rhs.name)
            if function in (operator.add, operator.sub) and right is not None:
                added += right if function is operator.add else -right
                variable = self.root(node.lhs.name)
            elif function is operator.add and left is not None:
                added, variable = added + left, self.root(node.rhs.name)
            else:
                return variable, added

    def range_of(self, node: Any) -> tuple[int, str | None, str, int]:
        """Return the block, start, end and step of the range that an element is taken from; step 0 if unknown.

        A start of None is 0.
        """
        home, call = self.range_call(node)
        if call is None:
            return home, None, "", 0
        names = [each.name for each in call.args]
        if len(names) == 1:
            return home, None, names[0], 1
        return home, names[0], names[1], 1 if len(names) == 2 else self.constant(names[2]) or 0

    def range_call(self, node: Any) -> tuple[int, Any]:
        """Return the call of `range` that an element is taken from, and its block; None for other elements."""
        home = 0
        for op in ("iternext", "getiter", "call"):
            home, node = self.block_and_node(self.root(node.value.name))
            if not isinstance(node, ir.Expr) or node.op != op:
                return home, None
        is_range = self.value(node.func.name).constant is range and not node.kws and node.vararg is None
        return home, node if is_range else None


def operator_of(node: Any) -> Any:
    """Return the operator of a binary operation; None of anything else."""
    if not isinstance(node, ir.Expr) or node.op not in ("binop", "inplace_binop"):
        return None
    return node.fn if node.op == "binop" else node.immutable_fn
