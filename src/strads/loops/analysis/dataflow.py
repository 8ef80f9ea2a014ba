"""Data flow through a loop body in SSA form: every access to a table, and what decides its index.

A value depends on what it is computed from, and on the branches that decide whether, and how often, it is computed:
so a variable that a loop leaves behind depends on what ends the loop. Whatever no rule covers is `OPAQUE`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks

from strads.loops.analysis.effects import Effects
from strads.loops.analysis.expressions import Expressions
from strads.loops.analysis.memory import Memory
from strads.loops.analysis.numbers import Numbers
from strads.loops.analysis.structure import controlling_branches, endless_exits, raising_blocks
from strads.loops.analysis.values import NOTHING, OPAQUE, Sources, Value, join
from strads.loops.compile_errors import compile_error

_MOST_PASSES = 200


class Dataflow:
    """The fixed point of one body.

    Attributes
    ----------
    effects
        What the body does.
    cfg
        Its control flow.
    """

    def __init__(self, function_ir: Any, arguments: Mapping[int, Value], memory: Memory, numbers: Numbers):
        self.blocks = function_ir.blocks
        self.memory = memory
        self.cfg = compute_cfg_from_blocks(self.blocks)
        self._values: dict[str, Value] = {}
        self._expressions = Expressions(arguments, self._values, memory, numbers)
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
            self.effects.loops |= self._condition(label) | self._control[label]
        for label in raising_blocks(self.blocks) & set(self._control):
            self.effects.raises |= self._control[label]

    def _condition(self, label: int) -> Sources:
        last = self.blocks[label].body[-1]
        if not isinstance(last, ir.Branch):
            return NOTHING
        return self.memory.sources(self._values.get(last.cond.name, Value()))

    def _update_control(self) -> None:
        for label in self._order:
            sources = NOTHING
            for branch in self._branches[label]:
                sources |= self._condition(branch) | self._control[branch]
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
            self._values[name] = join(self._values.get(name), value.with_sources(memory.control))
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
            found = join(found, self._values[variable.name])
            sources |= self._control.get(block, frozenset({OPAQUE})) | self._condition(block)
        found = found or Value()
        if ir.UNDEFINED in node.incoming_values:  # what a loop leaves behind that may not have run once
            found = replace(found, below=None, size=None)
        return self._expressions.renamed(found, name).with_sources(sources)
