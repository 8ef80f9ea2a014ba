"""What is proved of indices that are sums, products and differences, of random bodies, whose indices Python lists."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serial import run_or_refuse

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
            numbers = "range(H)" if name == "q" else self.range()
            lines.append(f"{indent}for {name} in {numbers}:")
            indent += "    "
            self.names.append(name)
        for _ in range(self.rng.randint(0, 2)):
            lines.append(f"{indent}if {self.sum()} {self.rng.choice(['<', '<=', '>=', '>', '!='])} {self.sum()}:")
            indent += "    "
        if self.rng.random() < 0.3:
            lines.append(f"{indent}s = {self.sum()}")
            self.names.append("s")
        lines.append(f"{indent}x[{self.flat() if self.rng.random() < 0.5 else self.sum() + ' + k'}] += 1")
        if self.rng.random() < 0.3:
            lines.append(f"{indent}x[{self.flat()}] += 2")
        return "\n".join(lines)

    def number(self) -> str:
        """Return what a body is given, or counts."""
        given = ["W", "H", "len(x)", "V[k]", "1", "2", "3"]
        return self.rng.choice(self.names * 2 + given)

    def sum(self, *, of_products: bool = True) -> str:
        """Return a sum, a difference, a product or a smaller or larger one of some numbers."""
        found = self.number()
        for _ in range(self.rng.randint(0, 3)):
            kind = self.rng.random()
            other = self.number()
            if kind < 0.7:
                found = f"{found} {self.rng.choice('+-+*' if of_products else '+-')} {other}"
            elif kind < 0.85 or not of_products:
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
        end = self.rng.choice(
            ["W", "H", "len(x)", "W - 1", "H * W", "W - k", "len(x) - k", self.sum(of_products=False)]
        )
        kind = self.rng.random()
        if kind < 0.5:
            return f"range({end})"
        start = self.rng.choice([*self.names, "1", "V[k]", "W", self.sum(of_products=False)])
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


_sizes = st.integers(-1, 8) | st.sampled_from([1, 4, -3])
_indices = st.sampled_from([range(5), range(4), range(1, 5), range(4, 0, -1), range(0, 8, 2), range(-2, 3), range(0)])


@settings(max_examples=60)
@given(st.integers(0, 1 << 32), st.lists(st.integers(-1, 9), min_size=9, max_size=9), _sizes, _sizes, _indices)
def test_what_is_proved_of_random_bodies_is_true(seed, values, W, H, indices):
    source = Bodies(Random(seed)).write()
    check(source, facts_of(compiled(source)), values, W, H, indices)


def flattened(k, V, W, x):
    for j in range(W):
        x[k * W + j] += V[k] + j


def smoothed(k, V, W, x):
    for j in range(1, W - 1):
        x[W * k + j] += V[k - 1] + V[k + 1]


def of_two_axes(k, V, W, x):
    for j in range(3):
        for m in range(W):
            x[(k * 3 + j) * W + m] = x[k * 3 * W + m] + V[k]


def of_another_width(k, V, W, x):
    for j in range(4):
        x[k * W + j] += V[k] + x[k * W]


def behind_each_other(k, V, W, x):
    for j in range(1, W + 1):
        x[k * W + j] += V[k]


BLOCKS = [flattened, smoothed, of_two_axes, of_another_width, behind_each_other]
# Of which widths tasks have rows of their own, and never fail.
OWN = {flattened: {1, 4, 5}, smoothed: {4, 5}, of_two_axes: {1, 4}, of_another_width: {4, 5}, behind_each_other: set()}


@pytest.mark.parametrize("body", BLOCKS)
def test_blocks_of_rows(body):
    for order, nodes in (("any", 1), ("sequential", 1), ("any", 3)):
        V, x = strads.dvector(np.arange(100)), strads.dvector.zeros(500, "i8")
        with strads.init(nodes=nodes, threads=2):
            for W in (4, 1, 5, -2):
                indices = range(1, min(99, 500 // max(W, 1) // (3 if body is of_two_axes else 1)))
                x[:] = 0
                error = run_or_refuse(indices, body, V, W, x, order=order)
                assert error is None or isinstance(error, strads.BodyIndexError)
                if nodes == 1 and W in OWN[body]:
                    fresh = strads.dvector.zeros(500, "i8")
                    assert strads.async_for(indices, body, V, W, fresh, order=order).strategy == "independent"


def test_indices_before_the_loop_index_exist_from_the_first_one_on():
    bound = bind_arguments(smoothed, (strads.dvector(np.arange(100)), 4, strads.dvector.zeros(500, "i8")))
    program = LoopProgram(smoothed, bound, fastmath=True)
    for indices, is_proved in ((range(1, 99), True), (range(99), False), (range(1, 100), False), ([3, 1], True)):
        known = replace(bound, has_values=True, indices=LoopIndices.of(indices))
        assert program.is_proved(known) == is_proved
        assert bool(known.fit(program.facts.own_rows[2]))


def from_other_data(k, a, b, P, W, x):
    for j in range(4):
        x[k * W + j] = x[k * W + j] * 3 % 1000 + P[a[k] - b[k]] + j


@pytest.mark.parametrize("order", ["any", "sequential"])
def test_blocks_are_asked_for_again_though_a_loop_takes_any_data(order):
    rng = np.random.default_rng(0)
    b, P, x = strads.dvector(np.zeros(2000, "i8")), strads.dvector(np.arange(9)), strads.dvector.zeros(8000, "i8")
    for W in (4, 4, 1, 4, 2):
        a = strads.dvector(rng.integers(0, 9, 2000))
        assert run_or_refuse(2000, from_other_data, a, b, P, W, x, order=order, threads=2) is None
        if W < 4:
            assert strads.async_for(2000, from_other_data, a, b, P, W, x, order=order).strategy != "independent"
