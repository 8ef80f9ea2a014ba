"""Abstract values of calls of methods: of arrays, lists, sets, dictionaries, numbers and random numbers."""

from dataclasses import replace
from functools import reduce
from typing import Any

from strads.bodies.analysis import known_functions
from strads.bodies.analysis.function_calls import FunctionCalls, magnitude_below, magnitude_in_range, stop_of
from strads.bodies.analysis.values import (
    FLOAT,
    NOT_CONSTANT,
    OPAQUE,
    ROUNDED,
    UNKNOWN,
    Local,
    Sources,
    Value,
    is_random,
    join,
    locals_of,
    parts,
)
from strads.bodies.compile_errors import compile_error

_NEAR = (
    "rng.near(table) draws a row of a dvector of numbers, rows or records that is an argument of the loop; "
    "rng.near(table, weights) draws it with weights made by strads.weights, which are another argument"
)
_DRAWS = {
    "random": (0, 0, set()),
    "normal": (0, 0, set()),
    "integers": (1, 2, {"low", "high"}),
    "choice": (1, 1, {"table"}),
}
_NOT_DRAWN = (
    "random numbers have rng.random(), rng.normal(), rng.integers(n), rng.integers(low, high), rng.choice(table) and "
    "rng.near(table). Each draws one number: draw several in a loop, and shift and scale them, as in "
    "mean + deviation * rng.normal() or low + (high - low) * rng.random()"
)


class MethodCalls(FunctionCalls):
    """Evaluates calls of methods over abstract values."""

    def _method(self, name: str, owner: Value, arguments: list[Value], keywords: dict[str, Value], node: Any) -> Value:
        memory = self._memory
        everything = arguments + list(keywords.values())
        if any(is_random(local) for local in locals_of(owner)):
            if name == "near":
                return self._draw_near(owner, arguments, keywords, node)
            return self._draw(name, owner, arguments, keywords, node)
        if not owner.is_memory:
            return self._scalar_method(name, owner, everything)
        if UNKNOWN in owner.references:
            return self._opaque([owner, *everything])
        is_array = bool(parts(owner)) or any(local.is_array for local in locals_of(owner))
        sources = self._all([owner, *everything])
        if FLOAT in sources:
            sources |= {ROUNDED}
        memory.escape(owner)
        if is_array and name in known_functions.WRITING_METHODS:
            memory.overwrite(owner, sources)
            return Value()
        if is_array and name in known_functions.VIEWING_METHODS:
            memory.may_fail(Value(sources=self._all(everything)), memory.length(owner))
            return self._view([owner, *arguments], [owner])
        if is_array and name in known_functions.READING_METHODS:
            if name in ("dot", "take", "repeat", "min", "max", "argmin", "argmax"):
                memory.may_fail(Value(sources=self._all(everything)), memory.length(owner))
            if name in known_functions.SCALAR_METHODS and not everything:
                return Value(sources=sources)
            if name in ("copy", "astype"):
                inside = Value(sources=memory.sources(owner))
                return memory.new(memory.depth(owner), is_array=True, contents=inside, length=memory.length(owner))
            return memory.new(None, is_array=True, contents=Value(sources=sources), length=sources)
        if not is_array and name in known_functions.CHANGING_METHODS:
            return self._change(name, owner, everything, sources)
        if not is_array and name in known_functions.LOOKING_METHODS:
            return self._look(name, owner, everything, sources)
        return self._opaque([owner, *everything])

    def _draw(self, name: str, owner: Value, arguments: list[Value], keywords: dict[str, Value], node: Any) -> Value:
        """Process a method of random numbers."""
        memory, operands = self._memory, arguments + list(keywords.values())
        is_certain = all(isinstance(r, Local) and is_random(r) for r in owner.references)
        least, most, known = _DRAWS.get(name, (0, -1, set()))
        if is_certain and (not least <= len(operands) <= most or set(keywords) - known):
            reason = f"rng.{name} cannot be called like this: {_NOT_DRAWN}"
            raise compile_error(node.loc.filename, node.loc.line, reason)
        if keywords or not is_certain:
            return self._opaque([owner, *operands])
        for value in operands:
            memory.escape(value)
        sources = memory.draw(owner) | self._all(operands)
        if name == "random":
            return Value(sources=sources | {FLOAT})
        if name == "normal":
            return Value(sources=sources | {FLOAT, ROUNDED})
        if name == "integers":
            memory.may_fail(Value(sources=self._all(operands)))  # of an empty range it raises
            found = magnitude_in_range(arguments)
            return Value(sources=sources - {FLOAT, ROUNDED}, below=stop_of(arguments), magnitude=found)
        memory.may_fail(Value(), memory.length(arguments[0]))
        return Value(sources=sources - {FLOAT, ROUNDED}, below=memory.size(arguments[0]))

    def _draw_near(self, owner: Value, arguments: list[Value], keywords: dict[str, Value], node: Any) -> Value:
        """Process `rng.near(table, weights)`: which row it is, is known only when a job runs."""
        memory, operands = self._memory, arguments + list(keywords.values())
        tables = [_table_of(value) for value in operands]
        if (
            not arguments
            or len(operands) > 2
            or set(keywords) - {"weights"}
            or None in tables
            or tables[0] in tables[1:]
        ):
            raise compile_error(node.loc.filename, node.loc.line, _NEAR)
        table, weights = tables[0], tables[1] if len(tables) > 1 else None
        assert table is not None
        if memory.kinds[table].keyed or memory.kinds[table].ragged:
            raise compile_error(node.loc.filename, node.loc.line, _NEAR)
        memory.effects.near.add((table, weights))
        for value in operands:
            memory.may_fail(Value(), memory.length(value))  # of an empty table it raises
        for value in operands[1:]:
            memory.escape(value)
        sources = memory.draw(owner) | {OPAQUE}
        rows = memory.size(arguments[0])
        return Value(sources=sources, below=rows, magnitude=magnitude_below(rows), near=table)

    def _change(self, name: str, owner: Value, everything: list[Value], sources: Sources) -> Value:
        """Process a method that modifies a list, set or dictionary."""
        memory = self._memory
        memory.may_fail(Value(sources=sources))  # `pop` of an empty list raises, and so does `remove`
        for value in everything:
            inside = memory.elements(value) if name in ("extend", "update") else value
            memory.put(owner, inside.with_sources(memory.sources(value)), resizes=True)
        memory.put(owner, Value(), resizes=True)
        if name in ("pop", "popitem", "setdefault"):
            return replace(memory.elements(owner), number=None).with_sources(sources)
        return Value()

    def _look(self, name: str, owner: Value, everything: list[Value], sources: Sources) -> Value:
        """Process a method that reads a list, set or dictionary."""
        memory = self._memory
        memory.may_fail(Value(sources=sources))
        if name in ("count", "index", "issubset", "issuperset"):
            return Value(sources=sources)
        if name == "get":
            found = reduce(join, everything[1:], memory.elements(owner))  # the second argument is the default
            return replace(found.with_sources(sources), number=None)
        made = memory.new(1, is_array=False, length=sources)
        memory.put(made, memory.elements(owner).with_sources(sources), resizes=False)
        if name == "items":
            pair = memory.elements(owner).with_sources(sources)
            return Value(sources=sources, elements=Value(items=(pair, pair)))
        return made

    def _scalar_method(self, name: str, owner: Value, everything: list[Value]) -> Value:
        if name == "add":  # of an accumulator
            return Value()
        if owner.constant is not NOT_CONSTANT or owner.items is not None:
            return self._opaque([owner, *everything])
        return Value(sources=self._all([owner, *everything]) | {OPAQUE})


def _table_of(value: Value) -> int | None:
    """Return the table that a value is, as a whole; None if it may be anything else."""
    found = parts(value)
    return found[0].argument if len(value.references) == 1 and found and found[0].whole else None
