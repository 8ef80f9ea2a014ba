"""What is proved of indices that are sums, products and differences, of random bodies, whose indices Python lists."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import strads
from strads.bodies.analysis.facts import BodyAnalysis
from strads.loops.argument_kinds import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram

LENGTH = 40


class Log:
    """A table of which it only notes the rows that tasks access, and refuses others."""

    def __init__(self, length: int):
        self.length, self.rows = length, set[int]()

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, row: int) -> int:
        if not 0 <= row < self.length:
            raise IndexError(row)
        self.rows.add(int(row))
        return 0

    def __setitem__(self, row: int, value: int) -> None:
        self[row]


class Bodies:
    """Random sources of bodies with nested loops, conditions and an index that they compute."""

    def __init__(self, rng: Random):
        self.rng, self.names = rng, ["k"]

    def write(self) -> str:
        """Return the source of a body."""
        lines, indent = ["def body(k, V, W, H, x):"], "    "
        for name in self.rng.choice([["j"], ["j", "m"], ["j", "m", "q"], []]):
            lines.append(f"{indent}for {name} in {self.range()}:")
            indent += "    "
            self.names.append(name)
        for _ in range(self.rng.randint(0, 2)):
            lines.append(f"{indent}if {self.sum()} {self.rng.choice(['<', '<=', '>=', '>', '!='])} {self.sum()}:")
            indent += "    "
        if self.rng.random() < 0.3:
            lines.append(f"{indent}s = {self.sum()}")
            self.names.append("s")
        lines.append(f"{indent}x[{self.flat() if self.rng.random() < 0.5 else self.sum()}] += 1")
        if self.rng.random() < 0.3:
            lines.append(f"{indent}x[{self.flat()}] += 2")
        return "\n".join(lines)

    def number(self) -> str:
        """Return what a body is given, or counts."""
        given = ["W", "H", "len(x)", "V[k]", "1", "2", "3"]
        return self.rng.choice(self.names * 2 + given)

    def sum(self) -> str:
        """Return a sum, a difference, a product or a smaller or larger one of some numbers."""
        found = self.number()
        for _ in range(self.rng.randint(0, 3)):
            kind = self.rng.random()
            other = self.number()
            if kind < 0.7:
                found = f"{found} {self.rng.choice(['+', '-', '+', '*'])} {other}"
            elif kind < 0.85:
                found = f"{self.rng.choice(['min', 'max'])}({found}, {other})"
            else:
                found = f"({found}) * {other}"
        return found

    def flat(self) -> str:
        """Return an index of a flattened array."""
        rest = self.rng.choice([*self.names, "0", "W - 1", "V[k]"])
        outer = self.rng.choice(["k", "k", f"(k * H + {self.rng.choice(self.names)})", "(k + 1)", "(k - 1)"])
        found = self.rng.choice([f"{outer} * W + {rest}", f"{rest} + W * {outer}", f"{outer} * (H * W) + {rest}"])
        return found + self.rng.choice(["", "", " + 1", " - 1"])

    def range(self) -> str:
        """Return a range."""
        end = self.rng.choice(["W", "H", "len(x)", "W - 1", "H * W", "W - k", "len(x) - k", self.sum()])
        kind = self.rng.random()
        if kind < 0.5:
            return f"range({end})"
        start = self.rng.choice([*self.names, "1", "V[k]", "W", self.sum()])
        return f"range({start}, {end})" if kind < 0.8 else f"range({end}, {start}, -1)"


def compiled(source: str) -> Callable[..., Any]:
    """Return the body that a source defines."""
    scope = dict[str, Any]()
    exec(source, scope)
    return scope["body"]


def facts_of(body: Callable[..., Any]) -> BodyAnalysis:
    """Return the analysis of a body; nothing is run."""
    arguments = strads.dvector.zeros(9, "i8"), 1, 1, strads.dvector.zeros(LENGTH, "i8")
    return LoopProgram(body, bind_arguments(body, arguments), fastmath=True).facts


def check(source: str, facts: BodyAnalysis, values: list[int], W: int, H: int, indices: range) -> tuple[bool, bool]:
    """Check what is proved of a body; return whether that it never fails is, and that tasks have rows of their own."""
    body, x = compiled(source), strads.dvector.zeros(LENGTH, "i8")
    bound = replace(
        bind_arguments(body, (strads.dvector(np.array(values)), W, H, x)),
        has_values=True,
        indices=LoopIndices.of(indices),
    )
    is_proved = facts.proof is not None and bound.fit(facts.proof)
    has_own = 3 in facts.own_rows and bound.fit(facts.own_rows[3]) and LoopIndices.of(indices).are_distinct_rows
    case = f"{source}\n{values=} {W=} {H=} {indices=}"
    rows = list[set[int]]()
    for k in indices if is_proved or has_own else ():
        log = Log(LENGTH)
        with nullcontext() if is_proved else suppress(IndexError):
            body(k, values, W, H, log)
        rows.append(log.rows)
    assert not has_own or sum(map(len, rows)) == len(set().union(*rows)), case
    return is_proved, has_own


_sizes = st.integers(0, 8) | st.sampled_from([1, 4, LENGTH, -1, -3])
_indices = st.sampled_from([range(5), range(4), range(1, 5), range(4, 0, -1), range(0, 8, 2), range(-2, 3), range(0)])


@settings(max_examples=150)
@given(st.integers(0, 1 << 32), st.lists(st.integers(-1, 9), min_size=9, max_size=9), _sizes, _sizes, _indices)
def test_what_is_proved_of_random_bodies_is_true(seed, values, W, H, indices):
    source = Bodies(Random(seed)).write()
    check(source, facts_of(compiled(source)), values, W, H, indices)
