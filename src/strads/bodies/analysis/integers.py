"""Which variables of a body are certainly integers."""

import operator
from collections.abc import Mapping

from numba.core import ir

from strads.bodies.analysis.definitions import Definitions, operator_of
from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.values import FLOAT, INDICES

_OF_INTEGERS = ("axis", "row", "constant", "argument", "indices", "largest")  # kinds of limits of integers alone
# Operators whose results of integers are integers.
_KEEPING = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
)


class Integers:
    """The variables of a body that are certainly integers.

    Numba computes the sum, difference or product of two unsigned integers as one of 64 bits without a sign, which need
    not fit into int64: from such results nothing is derived.

    Attributes
    ----------
    known
        Those that, if they are computed at all, fit into int64.
    signed
        Those of them that compiled code certainly holds with a sign.
    """

    def __init__(self, definitions: Definitions, kinds: Mapping[int, TableKind]):
        self._definitions, self._kinds = definitions, kinds
        self.known, self.signed = set(definitions), set(definitions)
        while True:
            others = {name for name in self.known if not self._is_integer(name)}
            unsigned = {name for name in self.signed - others if not self._is_signed(name)}
            if not others | unsigned:
                return
            self.known -= others
            self.signed -= others | unsigned

    def _is_integer(self, variable: str) -> bool:
        """Whether a variable is one, given those of which nothing else is known so far."""
        definitions = self._definitions
        node, value = definitions.node(variable), definitions.value(variable)
        below = None if value.below is None else value.below[0]
        if value.is_memory or value.items is not None:
            return False
        if value.size is not None or below in _OF_INTEGERS or definitions.constant(variable) is not None:
            return True
        if isinstance(node, ir.Var):
            return node.name in self.known
        if not isinstance(node, ir.Expr):
            return False
        if node.op == "phi":
            return all(each is not ir.UNDEFINED and each.name in self.known for each in node.incoming_values)
        if operator_of(node) is not None:
            operands = {node.lhs.name, node.rhs.name}
            return operator_of(node) in _KEEPING and operands <= self.known and bool(operands & self.signed)
        if node.op == "call" and not node.kws and node.vararg is None:
            function, arguments = definitions.value(node.func.name).constant, {each.name for each in node.args}
            if function is int:
                return arguments <= self.known or any(FLOAT in definitions.value(name).sources for name in arguments)
            return function is len or (function in (min, max, abs) and arguments <= self.known)
        if below == "above":
            assert value.below is not None
            return self._kinds[value.below[1]].holds_integers(value.below[2])
        call = definitions.range_call(node)[1] if node.op == "pair_first" else None
        return call is not None and {each.name for each in call.args} <= self.known

    def _is_signed(self, variable: str) -> bool:
        """Whether an integer certainly has a sign, given those of which nothing else is known so far."""
        definitions = self._definitions
        node, value = definitions.node(variable), definitions.value(variable)
        if value.size is not None or value.below == INDICES or definitions.constant(variable) is not None:
            return True
        if isinstance(node, ir.Var):
            return node.name in self.signed
        if not isinstance(node, ir.Expr):
            return False
        if node.op == "phi":
            return all(each.name in self.signed for each in node.incoming_values)
        if operator_of(node) is not None:
            return bool({node.lhs.name, node.rhs.name} & self.signed)
        if node.op == "call":
            arguments = {each.name for each in node.args}
            return definitions.value(node.func.name).constant is len or arguments <= self.signed
        if value.below is not None and value.below[0] == "above":
            return not self._kinds[value.below[1]].is_unsigned(value.below[2])
        call = definitions.range_call(node)[1] if node.op == "pair_first" else None
        return call is not None and {each.name for each in call.args} <= self.signed
