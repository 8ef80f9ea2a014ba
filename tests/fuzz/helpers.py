"""Random helper functions, and their calls: early returns, tuples, defaults, keywords, helpers in helpers."""

from .arguments import Arg
from .blocks import Blocks
from .scope import STORED_BITS, STORED_FRACTION, Array, Num, Scope
from .statements import Lines, indented

MAX_HELPERS = 2


class Helpers(Blocks):
    """Adds calls to the expressions and statements."""

    # -- in expressions --------------------------------------------------------------------------------------

    def call_int(self) -> Num:
        return self._call(False)

    def call_float(self) -> Num:
        return self._call(True)

    def _call(self, is_float: bool) -> Num:
        """A helper that returns a number."""
        if len(self.facts.helpers) >= MAX_HELPERS or (self.in_helper and self.chance(0.6)):
            return self._float_leaf() if is_float else self._int_leaf()
        arrays = [a for a in self.scope.arrays if a.dimensions == 1 and not a.growable]
        tables = [a for a in self.args if a.kind == "vec" and a.role == "read" and not a.points]
        tables = [a for a in tables if a.dtype[0] in "if"]
        tables = [a for a in tables if a.is_float == is_float]
        if arrays and self.chance(0.4):
            a = self.rng.choice(arrays)
            return self._of_row(a, is_float)
        if tables and self.chance(0.5) and not self.scope.volatile:
            return self._of_table(self.rng.choice(tables))
        a, b = self.stored(is_float, 1), self.stored(False, 1)
        name = self._numbers(is_float)
        call = self.rng.choice([f"{name}({a.text}, {b.text})", f"{name}({a.text})", f"{name}({a.text}, n={b.text})"])
        volatile = a.volatile or (b.volatile and b.text in call)
        return Num(call, volatile, STORED_BITS - 2, STORED_FRACTION if is_float else 0)

    def _numbers(self, is_float: bool) -> str:
        """A function of numbers with statements of its own, and maybe an early return."""
        name, first = self.facts.fresh("h"), "x0" if is_float else "i0"
        scope = Scope(ints=[Num("n", False, STORED_BITS)])
        (scope.floats if is_float else scope.ints).append(Num(first, False, STORED_BITS, 2 if is_float else 0))
        scope.assignable.append(first)
        lines = self._within_helper(scope, is_float)
        self.facts.helpers.append("\n".join([f"def {name}({first}, n={self.rng.randint(0, 3)}):", *indented(lines)]))
        return name

    def _within_helper(self, scope: Scope, is_float: bool) -> Lines:
        outer, self.scope = self.scope, scope
        was, self.in_helper = self.in_helper, True
        obeys = self.facts.obeys
        lines: Lines = []
        if self.chance(0.5):
            c = self.condition()
            lines += [f"if {c.text}:", f"    return {self.stored(is_float, 1).text}"]
        lines += self.block(self.rng.choice([0, 0, 1]))
        lines.append(f"return {self.stored(is_float, 1).text}")
        self.scope, self.in_helper, self.facts.obeys = outer, was, obeys
        return lines

    def _of_row(self, a: Array, is_float: bool) -> Num:
        """A function of an array: its own statements, or one of the usual loops."""
        name = self.facts.fresh("h")
        scope = Scope(arrays=[Array("row", a.is_float, False, a.shortest, False, 1, "parameter")])
        lines = self._within_helper(scope, is_float)
        if self.chance(0.5):
            start, value = "0", "int(row[j])"
            if is_float:
                start, value = "0.0", "row[j] * 0.5" if a.is_float else "row[j] * 0.25"
            lines = [f"s = {start}", "for j in range(len(row)):"]
            if self.chance(0.4):
                lines += ["    if row[j] > 3:", f"        {self.rng.choice(['break', 'continue', 'return s'])}"]
            lines += [f"    s += {value}", "return s"]
        self.facts.helpers.append("\n".join([f"def {name}(row):", *indented(lines)]))
        volatile = a.volatile or not a.steady
        return Num(f"{name}({a.name})", volatile, STORED_BITS + 2, STORED_FRACTION + 1 if is_float else 0)

    def _of_table(self, a: Arg) -> Num:
        """A function that is given a table as a whole, and a row number."""
        name = self.facts.fresh("h")
        self.facts.helpers.append(f"def {name}(table, row):\n    return table[row]")
        return Num(f"{name}({a.name}, {self.chosen(a)})", False, STORED_BITS, STORED_FRACTION if a.is_float else 0)

    # -- as statements ---------------------------------------------------------------------------------------

    def call_statement(self) -> Lines:
        arrays = [a for a in self.scope.arrays if a.dimensions == 1 and a.writable]
        if not arrays or len(self.facts.helpers) >= MAX_HELPERS:
            return self.variable()
        a = self.rng.choice(arrays)
        return self.pick({self._writer: 3, self._passes_on: 2, self._several: 1, self._maker: 1})(a)

    def _writer(self, a: Array) -> Lines:
        """A helper that writes an array that is passed to it."""
        name = self.facts.fresh("h")
        value = self.stored(a.is_float, 1)
        keyword = self.chance(0.3)
        parameter = Array("row", a.is_float, True, a.shortest, True, 1, "parameter", a.growable, a.steady)
        x = Num("x0" if a.is_float else "i0", True, STORED_BITS, STORED_FRACTION if a.is_float else 0)
        scope = Scope(ints=[] if a.is_float else [x], floats=[x] if a.is_float else [], arrays=[parameter])
        outer, self.scope, was, self.in_helper = self.scope, scope, self.in_helper, True
        lines: Lines = []
        if self.chance(0.4):
            lines += [f"if {self.condition().text}:", "    return"]
        for _ in range(self.rng.randint(1, 2)):
            lines += self.array_store() if self.chance(0.7) or a.growable else self.whole_array()
        self.scope, self.in_helper = outer, was
        self.facts.helpers.append("\n".join([f"def {name}(row, {x.text}):", *indented(lines)]))
        a.volatile |= value.volatile or self.scope.volatile
        a.steady &= not (a.growable and a.volatile)
        return [f"{name}({a.name}, {x.text + '=' if keyword else ''}{value.text})"]

    def _passes_on(self, a: Array) -> Lines:
        """A helper that returns one of its arrays, or a part of it."""
        if a.growable:
            return self._writer(a)
        name, new = self.facts.fresh("h"), self.facts.fresh("w")
        same = [b for b in self.scope.arrays if b.dimensions == 1 and b.is_float == a.is_float and b.origin == a.origin]
        b = self.rng.choice(same)
        c = self.int_(1)
        shortest, volatile = min(a.shortest, b.shortest), a.volatile or b.volatile or c.volatile
        steady = a.steady and b.steady and not c.volatile
        passed = Array(new, a.is_float, volatile, shortest, b.writable, 1, a.origin, False, steady)
        if self.chance(0.4):
            text = f"def {name}(p, q, n):\n    if n % 2 == 0:\n        return p\n    return q"
        elif self.chance(0.5):
            text = f"def {name}(p, q, n):\n    return p[:n % 3 + 1]"
            volatile, shortest = a.volatile or c.volatile, min(1, a.shortest)
            passed = Array(new, a.is_float, volatile, shortest, True, 1, "slice", False, steady)
        else:
            other = self.facts.fresh("w")
            text = f"def {name}(p, q, n):\n    if n > 2:\n        return q, p\n    return p, q"
            second = Array(other, a.is_float, volatile, shortest, b.writable, 1, a.origin, False, steady)
            self.scope.arrays += [passed, second]
            self.facts.helpers.append(text)
            return [f"{new}, {other} = {name}({a.name}, {b.name}, {c.text})"]
        self.scope.arrays.append(passed)
        self.facts.helpers.append(text)
        return [f"{new} = {name}({a.name}, {b.name}, {c.text})"]

    def _several(self, a: Array) -> Lines:
        """A helper that returns two numbers."""
        name, first, second = self.facts.fresh("h"), self.facts.fresh("i"), self.facts.fresh("x")
        x, n = self.stored(True, 1), self.stored(False, 1)
        scope = Scope(ints=[Num("n", False, STORED_BITS)], floats=[Num("x0", False, STORED_BITS, STORED_FRACTION)])
        outer, self.scope, was, self.in_helper = self.scope, scope, self.in_helper, True
        returns = [f"return {self.stored(False, 1).text}, {self.stored(True, 1).text} + 0.0" for _ in range(2)]
        lines = [f"if {self.condition().text}:", f"    {returns[0]}", returns[1]]
        self.scope, self.in_helper = outer, was
        self.facts.helpers.append("\n".join([f"def {name}(x0, n):", *indented(lines)]))
        self.define(first, False, x.volatile or n.volatile)
        self.define(second, True, x.volatile or n.volatile)
        return [f"{first}, {second} = {name}({x.text}, {n.text})"]

    def _maker(self, a: Array) -> Lines:
        """A helper that makes an array."""
        name, new = self.facts.fresh("h"), self.facts.fresh("u")
        n = self.int_(1)
        self.facts.helpers.append(f"def {name}(n):\n    return np.zeros(n % 3 + 1, np.int64)")
        self.scope.arrays.append(Array(new, False, False, 1, True, 1, "local", False, not n.volatile))
        return [f"{new} = {name}({n.text})"]
