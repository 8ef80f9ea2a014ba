"""Data flow through a loop body in SSA form: every access to a table, and what decides its index.

A value depends on what it is computed from, and on the branches that decide whether, and how often, it is computed:
so a variable that a loop leaves behind depends on what ends the loop. Whatever no rule covers is `OPAQUE`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks

from strads.loops.analysis.effects import Effects
from strads.loops.analysis.expressions import Expressions
from strads.loops.analysis.memory import Memory
from strads.loops.analysis.numbers import Numbers
from strads.loops.analysis.structure import Turns, controlling_branches, endless_exits, raising_blocks
from strads.loops.analysis.values import NOTHING, OPAQUE, Sources, Value, join
from strads.loops.compile_errors import compile_error

_MOST_PASSES = 200


class Dataflow:
    """The fixed point of one body.

    Parameters
    ----------
    blocks
        The body in SSA form.
    arguments
        Values of its parameters.
    memory, numbers
        What it works on, and the numbers of values.
    given_turn
        Whether to ask what decides a value in the turn of each loop in which it is computed, but not what decides
        whether it is. Else a value depends on the branches that decide whether, and how often, it is computed, too.

    Attributes
    ----------
    effects
        What the body does.
    cfg
        Its control flow.
    """

    def __init__(
        self,
        blocks: Mapping[int, Any],
        arguments: Mapping[int, Value],
        memory: Memory,
        numbers: Numbers,
        *,
        given_turn: bool = False,
    ):
        self.blocks = blocks
        self.memory = memory
        self.cfg = compute_cfg_from_blocks(self.blocks)
        self._given_turn = given_turn
        self._turns = Turns(self.cfg, blocks)
        self._values: dict[str, Value] = {}
        self._expressions = Expressions(arguments, self.value, memory, numbers)
        self._branches = controlling_branches(self.cfg)
        self._control: dict[int, Sources] = dict.fromkeys(self.blocks, NOTHING)
        # Blocks that nothing can reach have no place in the graph; nothing runs there.
        self._order = [label for label in self.cfg.topo_order() if label in self.blocks]

    @property
    def effects(self) -> Effects:
        """What the body does."""
        return self.memory.effects

    def run(self) -> None:
        """Repeat until nothing changes."""
        for _ in range(_MOST_PASSES):
            before = dict(self._values), dict(self._control), self.memory.state()
            self.memory.effects = Effects()  # only the last pass sees the final values
            for label in self._order:
                self._block(label)
            self._update_control()
            if before == (self._values, self._control, self.memory.state()):
                break
        else:
            block = self.blocks[self._order[0]]
            reason = "its variables change their kind from one turn of a loop to the next"
            raise compile_error(block.loc.filename, block.loc.line, reason)
        for label in endless_exits(self.cfg, self.blocks):
            self.effects.loops |= self.condition(label) | self._control[label]
        for label in raising_blocks(self.blocks) & set(self._control):
            self.effects.raises |= self._control[label]

    def value(self, name: str) -> Value:
        """Return the value of a variable for the statement at work, as far as it is known."""
        return self._seen_from(self.memory.place[0], name)

    def _seen_from(self, label: int, name: str) -> Value:
        """Return the value of a variable in a block; the last turn of a loop is the one that left it."""
        return self._values.get(name, Value()).with_sources(self._left(name, label))

    def _left(self, name: str, label: int) -> Sources:
        """What decides in which turn the loops were left between the assignment of a variable and a block."""
        exits = self._turns.left_between(name, label) if self._given_turn else ()
        return NOTHING.union(*(self.condition(block) | self._control[block] for block in exits))

    def condition(self, label: int) -> Sources:
        """What decides the outcome of the branch at the end of a block."""
        last = self.blocks[label].body[-1]
        if not isinstance(last, ir.Branch):
            return NOTHING
        return self.memory.sources(self._seen_from(label, last.cond.name))

    def control(self, label: int, *, chosen: Callable[[Sources], bool]) -> Sources:
        """What decides whether a block runs, without the branches whose conditions are chosen."""
        conditions = map(self.condition, self._deciding(label))
        return NOTHING.union(*(condition for condition in conditions if not chosen(condition)))

    def _deciding(self, label: int) -> set[int]:
        """Return the branches that decide whether a block runs, and those that decide whether they do."""
        found: set[int] = set()
        waiting = [label]
        while waiting:
            new = self._branches[waiting.pop()] - found
            found |= new
            waiting += new
        return found

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
            self.memory.line = statement.loc.line
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
            self._values[name] = join(self._values.get(name), value)
        elif isinstance(statement, ir.SetItem | ir.StaticSetItem):
            index = expressions.index_of(statement)
            memory.write(expressions.variable(statement.target), index, expressions.variable(statement.value))
        elif isinstance(statement, ir.SetAttr):
            expressions.set_attribute(statement)
        elif isinstance(statement, ir.DelItem):
            container = expressions.variable(statement.target)
            memory.decide(expressions.variable(statement.index), memory.length(container))
            memory.put(container, expressions.variable(statement.index), resizes=True)

    def _phi(self, node: Any, name: str) -> Value:
        """Which value arrives depends on the branches that decide where from."""
        found: Value | None = None
        sources = NOTHING
        for variable, block in zip(node.incoming_values, node.incoming_blocks, strict=True):
            if variable is ir.UNDEFINED or variable.name not in self._values:
                continue  # not computed yet, or nowhere: Python would raise
            found = join(found, self._seen_from(block, variable.name))
            sources |= self._arrival(block) | self._left(variable.name, self.memory.place[0])
        found = found or Value()
        if ir.UNDEFINED in node.incoming_values:  # what a loop leaves behind that may not have run once
            found = replace(found, below=None, size=None)
        return self._expressions.renamed(found, name).with_sources(sources)

    def _arrival(self, block: int) -> Sources:
        """What decides whether the block at work is come to from one before it, and not from another."""
        if not self._given_turn:
            return self._control.get(block, frozenset({OPAQUE})) | self.condition(block)
        here = self.memory.place[0]
        deciding = self._deciding(block) | {block}
        return NOTHING.union(*(self.condition(b) for b in deciding if not self._turns.is_implied(b, here)))
