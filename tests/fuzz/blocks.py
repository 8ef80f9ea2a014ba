"""Random statements whose rows are computed from task numbers, scalars, and unsigned integers."""

from collections.abc import Callable

from .arguments import Arg
from .scope import STORED_FRACTION, Num
from .statements import Lines, Statements, indented


class Blocks(Statements):
    """Adds flattened tables, as `F[k * S + j]`, columns below a scalar, and sums of unsigned integers."""

    def statements(self) -> dict[Callable[[], Lines], float]:
        scope = self.scope
        few = scope.loops < 2 and self.facts.index == "k" and not self.in_helper
        steady = not scope.volatile or self.chance(0.15)
        return {
            **super().statements(),
            self.block_of_task: 6 * few * bool(self._of_blocks()) * steady,
            self.bounded: 3 * bool(self._bounds() and self._wide()) * steady,
            self.unsigned: 4 * few * bool(self._unsigned() and self._targets()) * steady,
        }

    # -- blocks ----------------------------------------------------------------------------------------------

    def _of_blocks(self) -> list[Arg]:
        return [a for a in self.args if a.size == "blocks"]

    def _factor(self) -> str:
        """A scalar that says how large blocks are, or a number."""
        factors = [a.name for a in self.args if a.role == "factor"]
        return self.rng.choice(factors * 7 + ["1", "2", "3"])

    def store(self) -> Lines:
        written = [a for a in self.args if a.role == "written"]
        is_of_blocks = self.rng.choice(written).size == "blocks" and self.facts.index == "k" and not self.in_helper
        return self.block_of_task() if is_of_blocks else super().store()

    def block_of_task(self) -> Lines:
        """`for j in range(S): F[k * S + j] …`: rows of the task's own, or nearly so."""
        a, rng, j = self.rng.choice(self._of_blocks()), self.rng, self.facts.fresh("j")
        factor = self._factor()
        width = factor if self.chance(0.7) else self._factor()
        before: Lines = []
        begin = rng.choice([f"k * {factor}", f"{factor} * k"])
        if self.chance(0.3):
            name = self.facts.fresh("i")
            before, begin = [f"{name} = {begin}"], name
        loop, row = rng.choice(
            [
                (f"range({width})", f"{begin} + {j}"),
                (f"range({width})", f"{j} + {begin}"),
                (f"range({width})", f"{begin} + {width} - 1 - {j}"),
                (f"range(1, {width})", f"{begin} + {j}"),
                (f"range(1, {width})", f"{begin} + {j} - 1"),
                (f"range({width} - 1, -1, -1)", f"{begin} + {j}"),
                (f"range(0, {width}, 2)", f"{begin} + {j}"),
                (f"range({begin}, {begin} + {width})", j),
                (f"range({begin}, (k + 1) * {factor})", j),
                (f"range({width})", f"k + {j}"),
                (f"range({width})", f"(k + 1) * {factor} + {j}"),
                (f"range({width})", f"{j} * {factor} + {width}"),
            ]
        )
        if self.chance(0.1):
            row = f"abs({row})"
        lines = self._touched(a, f"{a.name}[{row}]", j)
        if self.chance(0.25):
            lines = [f"if {j} {rng.choice(['<', '>=', '!='])} {self._factor()}:", *indented(lines)]
        return [*before, f"for {j} in {loop}:", *indented(lines)]

    def _touched(self, a: Arg, cell: str, counter: str) -> Lines:
        """A write to a cell, or, of tables that are only read, a write of it to another one."""
        scope = self.scope.nested(in_loop=True)
        scope.ints.append(Num(counter, False, 6))
        if self.scope.volatile:
            self.facts.obeys = False
        if a.role == "written":
            return [self._in(scope, lambda: self.assignment(cell, a.is_float))]
        sums = [b.name for b in self.args if b.kind == "acc" and b.is_float == a.is_float]
        if sums:
            return [f"{self.rng.choice(sums)}.add({cell})"]
        number = Num(cell, False, 11, STORED_FRACTION if a.is_float else 0)
        (scope.floats if a.is_float else scope.ints).append(number)
        return self._in(scope, lambda: self.block(1))

    # -- bounds ----------------------------------------------------------------------------------------------

    def _bounds(self) -> list[str]:
        return [a.name for a in self.args if a.role == "bound"]

    def _wide(self) -> list[Arg]:
        return [a for a in self.args if a.role == "written" and a.kind == "mat"]

    def bounded(self) -> Lines:
        """`if 0 <= i < M: T[k, i] …`, and loops up to a scalar: columns that exist by what is passed."""
        a, bound, i = self.rng.choice(self._wide()), self.rng.choice(self._bounds()), self.facts.fresh("i")
        row, value = self.chosen(a), self.int_(2)
        cell = f"{a.name}[{row}, {i}]"
        if self.chance(0.4):
            before, loop = [], self.rng.choice([f"range({bound})", f"range({bound} - 1, -1, -1)"])
            if self.chance(0.5):
                before = [f"{self.facts.fresh('n')} = min({bound}, {a.name}.shape[1])"]
                loop = f"range({before[0].split(' ')[0]})"
            return [*before, f"for {i} in {loop}:", *indented(self._touched(a, cell, i))]
        guard = self.rng.choice([f"0 <= {i} < {bound}", f"{i} >= 0 and {i} < {bound}"])
        return [f"{i} = {value.text}", f"if {guard}:", *indented(self._touched(a, cell, i))]

    # -- unsigned integers -----------------------------------------------------------------------------------

    def _unsigned(self) -> list[Arg]:
        return [a for a in self.args if a.name in ("l", "m", "o")]

    def _targets(self) -> list[Arg]:
        return [a for a in self.args if a.kind == "vec" and a.role == "written"]

    def unsigned(self) -> Lines:
        """`i = l[k] - m[k]`, which wraps where it is negative, as an index under a condition that it exists."""
        a, rng, i = self.rng.choice(self._targets()), self.rng, self.facts.fresh("u")
        operands = [b.name if b.kind == "unsigned" else f"{b.name}[k]" for b in self._unsigned()]
        value = f"{rng.choice(operands)} {rng.choice(['-', '-', '+', '*'])} {rng.choice(operands)}"
        before, row = ([f"{i} = {value}"], i) if self.chance(0.6) else ([], f"({value})")
        guard = rng.choice([f"{row} < len({a.name})", f"len({a.name}) > {row}"])
        lines = self._touched(a, f"{a.name}[{row}]", "k")
        return [*before, f"if {guard}:", *indented(lines)]
