"""Which variables of a body are certainly integers."""

import operator
from collections.abc import Mapping

from numba.core import ir

from strads.bodies.analysis.definitions import Definitions, operator_of
from strads.bodies.analysis.kinds import TableKind

_OF_INTEGERS = ("axis", "row", "constant", "argument", "indices", "largest")  # kinds of limits of integers alone
# Operators whose results of integers are integers.
_KEEPING = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
)


def find_integers(definitions: Definitions, kinds: Mapping[int, TableKind]) -> set[str]:
    """Return the variables that, if they are computed at all, are certainly integers that fit into int64."""
    found = set(definitions)
    while True:
        others = {name for name in found if not _computes_integer(name, found, definitions, kinds)}
        if not others:
            return found
        found -= others


def _computes_integer(
    variable: str, integers: set[str], definitions: Definitions, kinds: Mapping[int, TableKind]
) -> bool:
    """Whether a variable is one, given those of which nothing else is known so far."""
    node, value = definitions.node(variable), definitions.value(variable)
    below = None if value.below is None else value.below[0]
    if value.is_memory or value.items is not None:
        return False
    if value.size is not None or below in _OF_INTEGERS or definitions.constant(variable) is not None:
        return True
    if isinstance(node, ir.Var):
        return node.name in integers
    if not isinstance(node, ir.Expr):
        return False
    if node.op == "phi":
        return all(each is not ir.UNDEFINED and each.name in integers for each in node.incoming_values)
    if operator_of(node) is not None:
        return operator_of(node) in _KEEPING and {node.lhs.name, node.rhs.name} <= integers
    if node.op == "call" and not node.kws and node.vararg is None:
        function, arguments = definitions.value(node.func.name).constant, {each.name for each in node.args}
        return function is int or function is len or (function in (min, max, abs) and arguments <= integers)
    if below == "above":
        assert value.below is not None
        return kinds[value.below[1]].holds_integers(value.below[2])
    return node.op == "pair_first" and definitions.range_call(node)[1] is not None
