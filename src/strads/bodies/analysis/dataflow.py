"""Data-flow analysis of a loop body in SSA form: every access to a table, and what determines its index.

A value depends on its operands, and on the branches that determine whether, and how often, it is computed: so a
variable that is live after a loop depends on the loop's exit condition. Anything that no rule covers is `OPAQUE`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks

from strads.bodies.analysis.effects import Effects
from strads.bodies.analysis.expressions import Expressions
from strads.bodies.analysis.memory import Memory
from strads.bodies.analysis.structure import (
    Iterations,
    controlling_branches,
    exits_of_while_loops,
    raising_blocks,
    reachable,
    while_loops,
)
from strads.bodies.analysis.values import NOTHING, OPAQUE, Numbers, Sources, Value, join, magnitude
from strads.bodies.compile_errors import compile_error
from strads.user_code.source_location import SourceLine

_MAX_PASSES = 200
_MAX_GROWTHS = 4  # times that a magnitude may grow before it is dropped: nested loops need a few


class Dataflow:
    """The fixed-point iteration for one body.

    Parameters
    ----------
    blocks
        The body in SSA form.
    arguments
        Values of its parameters.
    memory, numbers
        The memory that it works on, and the value numbering.
    within_iteration
        Whether to track only what determines a value within the iteration of each loop in which it is computed, not
        what determines whether it is computed. Otherwise a value also depends on the branches that determine whether,
        and how often, it is computed.

    Attributes
    ----------
    effects
        What the body does.
    cfg, values
        Its control flow, and the values of its variables where they are assigned.
    """

    def __init__(
        self,
        blocks: Mapping[int, Any],
        arguments: Mapping[int, Value],
        memory: Memory,
        numbers: Numbers,
        *,
        within_iteration: bool = False,
    ):
        self.blocks = blocks
        self.memory = memory
        self.cfg = compute_cfg_from_blocks(self.blocks)
        self._given_turn = within_iteration
        self._iterations = Iterations(self.cfg, blocks)
        self.values: dict[str, Value] = {}
        self._growths: Counter[str] = Counter()  # of magnitudes of φ nodes
        self._expressions = Expressions(arguments, self.value, memory, numbers)
        self._branches = controlling_branches(self.cfg)
        self._control: dict[int, Sources] = dict.fromkeys(self.blocks, NOTHING)
        # Unreachable blocks are not in the graph; they never run.
        self._order = [label for label in self.cfg.topo_order() if label in self.blocks]

    @property
    def effects(self) -> Effects:
        """What the body does."""
        return self.memory.effects

    def run(self) -> None:
        """Iterate until nothing changes."""
        for _ in range(_MAX_PASSES):
            before = dict(self.values), dict(self._control), self.memory.state()
            self.memory.effects = Effects()  # only the last pass sees the final values
            for label in self._order:
                self._block(label)
            self._update_control()
            if before == (self.values, self._control, self.memory.state()):
                break
        else:
            block = self.blocks[self._order[0]]
            reason = "what its variables may hold keeps changing from one iteration of a loop to the next"
            raise compile_error(block.loc.filename, block.loc.line, reason)
        self.effects.may_not_end = bool(while_loops(self.cfg, self.blocks))
        for label in exits_of_while_loops(self.cfg, self.blocks):
            self.effects.loops |= self.condition(label) | self._control[label]
        for label in raising_blocks(self.blocks) & set(self._control):
            self.effects.raises |= self._control[label]
            self.effects.may_raise = True

    def value(self, name: str) -> Value:
        """Return the value of a variable as seen by the current statement, if it is known."""
        return self._seen_from(self.memory.place[0], name)

    def final(self, name: str) -> Value:
        """Return the value of a variable where it is assigned."""
        return self.values.get(name, Value())

    def _seen_from(self, label: int, name: str) -> Value:
        """Return the value of a variable as seen from a block; after a loop, that of the last iteration."""
        return self.values.get(name, Value()).with_sources(self._left(name, label))

    def _left(self, name: str, label: int) -> Sources:
        """What determines in which iteration the loops between the assignment of a variable and a block were left."""
        exits = self._iterations.left_between(name, label) if self._given_turn else ()
        return NOTHING.union(*(self.condition(block) | self._control[block] for block in exits))

    def condition(self, label: int) -> Sources:
        """What determines the outcome of the branch at the end of a block."""
        last = self.blocks[label].body[-1]
        if not isinstance(last, ir.Branch):
            return NOTHING
        return self.memory.sources(self._seen_from(label, last.cond.name))

    def control(self, label: int, *, chosen: Callable[[Sources], bool]) -> Sources:
        """What determines whether a block runs, except for branches whose conditions are chosen."""
        conditions = map(self.condition, self._deciding(label))
        return NOTHING.union(*(condition for condition in conditions if not chosen(condition)))

    def _deciding(self, label: int) -> set[int]:
        """Return the branches that determine, directly or indirectly, whether a block runs."""
        return reachable(self._branches[label], self._branches.__getitem__)

    def _update_control(self) -> None:
        for label in self._order:
            sources = NOTHING
            for branch in self._branches[label]:
                sources |= self.condition(branch) | self._control[branch]
            self._control[label] |= sources

    def _block(self, label: int) -> None:
        self.memory.control = self._control[label]
        for number, statement in enumerate(self.blocks[label].body):
            self.memory.place = (label, number)
            self.memory.line = SourceLine(statement.loc.filename, statement.loc.line)
            self._statement(statement)

    def _statement(self, statement: Any) -> None:
        memory, expressions = self.memory, self._expressions
        if isinstance(statement, ir.Assign):
            name = statement.target.name
            if isinstance(statement.value, ir.Expr) and statement.value.op == "phi":
                value = self._phi(statement.value, name)
            else:
                value = expressions.value_of(statement.value, name)
            if not self._given_turn:
                value = value.with_sources(memory.control)
            self.values[name] = join(self.values.get(name), value)
        elif isinstance(statement, ir.SetItem | ir.StaticSetItem):
            index = expressions.index_of(statement)
            memory.write(expressions.variable(statement.target), index, expressions.variable(statement.value))
        elif isinstance(statement, ir.SetAttr):
            expressions.set_attribute(statement)
        elif isinstance(statement, ir.DelItem):
            container = expressions.variable(statement.target)
            memory.may_fail(expressions.variable(statement.index), memory.length(container))
            memory.put(container, expressions.variable(statement.index), resizes=True)

    def _phi(self, node: Any, name: str) -> Value:
        """Return the value of a φ node: it depends on the branches that determine the incoming edge."""
        found: Value | None = None
        sources = NOTHING
        for variable, block in zip(node.incoming_values, node.incoming_blocks, strict=True):
            if variable is ir.UNDEFINED or variable.name not in self.values:
                continue  # not computed yet, or never: Python would raise
            found = join(found, self._seen_from(block, variable.name))
            sources |= self._arrival(block) | self._left(variable.name, self.memory.place[0])
        found = found or Value()
        found = self._widened(found, name)
        if ir.UNDEFINED in node.incoming_values:  # assigned in a loop that may not have run at all
            found = replace(found, below=None, magnitude=None, size=None, sizes=())
        return self._expressions.renamed(found, name).with_sources(sources)

    def _widened(self, value: Value, name: str) -> Value:
        """Return the value of a φ node without its magnitude if that grows in each iteration of a loop.

        However many iterations an overflow takes: LLVM replaces a loop that only adds up by a closed form.
        """
        before = magnitude(self.values[name]) if name in self.values else None
        if before is None or value.magnitude is None or value.magnitude.bits <= before.bits:
            return value
        self._growths[name] += 1
        return replace(value, magnitude=None) if self._growths[name] > _MAX_GROWTHS else value

    def _arrival(self, block: int) -> Sources:
        """What determines from which predecessor the current block is reached."""
        if not self._given_turn:
            return self._control.get(block, frozenset({OPAQUE})) | self.condition(block)
        here = self.memory.place[0]
        deciding = self._deciding(block) | {block}
        return NOTHING.union(*(self.condition(b) for b in deciding if not self._iterations.is_implied(b, here)))
