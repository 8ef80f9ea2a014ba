"""Random expressions: numbers, conditions, and the numbers of rows."""

from .arguments import DENSE, Arg
from .scope import MAX_BITS, STORED_BITS, STORED_FRACTION, Array, Facts, Num, Rec, Scope


class Expressions:
    """Writes expressions over the names of a scope."""

    def __init__(self, facts: Facts, scope: Scope):
        self.facts, self.scope, self.rng = facts, scope, facts.rng
        self.in_helper = False

    # -- choices ---------------------------------------------------------------------------------------------

    @property
    def args(self) -> list[Arg]:
        return [] if self.in_helper else self.facts.args

    @property
    def randoms(self) -> list[str]:
        return [] if self.in_helper else self.facts.randoms

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, weighted: dict):
        """One of the keys; weight 0 is never chosen."""
        keys = [key for key, weight in weighted.items() if weight > 0]
        return self.rng.choices(keys, [weighted[key] for key in keys])[0]

    # -- numbers ---------------------------------------------------------------------------------------------

    def number(self, is_float: bool, depth: int = 2) -> Num:
        return self.float_(depth) if is_float else self.int_(depth)

    def int_(self, depth: int = 2) -> Num:
        """A whole number."""
        rng = self.rng
        if depth <= 0 or self.chance(0.5):
            return self._int_leaf()
        signs = {"+": 4, "-": 2, "*": 2, "%": 2, "&": 0.7, "//": 1}
        match self.pick(signs | {"if": 1, "int": 1.5, "min": 1, "abs": 0.5, "call": 1.5}):
            case "+" | "-" as sign:
                return self._joined(self.int_(depth - 1), sign, self.int_(depth - 1), is_float=False)
            case "*":
                return self._joined(self.int_(depth - 1), "*", self.int_(depth - 1), is_float=False)
            case "%":
                a, m = self.int_(depth - 1), rng.choice([2, 3, 5, 7])
                return Num(f"({a.text}) % {m}", a.volatile, 3)
            case "&":
                a, m = self.int_(depth - 1), rng.choice([1, 3, 7])
                return Num(f"({a.text}) & {m}", a.volatile, 3)
            case "//":
                a = self.int_(depth - 1)
                return Num(f"({a.text}) // {rng.choice([2, 3])}", a.volatile, a.bits)
            case "if":
                c, a, b = self.condition(1), self.int_(depth - 1), self.int_(depth - 1)
                return self._either(c, a, b)
            case "int":
                a = self.float_(depth - 1)
                return Num(f"int({a.text})", a.volatile, a.bits)
            case "min":
                a, b = self.int_(depth - 1), self.int_(depth - 1)
                text = f"{rng.choice(['min', 'max'])}({a.text}, {b.text})"
                return Num(text, a.volatile or b.volatile, max(a.bits, b.bits))
            case "abs":
                a = self.int_(depth - 1)
                return Num(f"abs({a.text})", a.volatile, a.bits)
        return self.call_int()

    def float_(self, depth: int = 2) -> Num:
        """A float that is exact."""
        rng = self.rng
        if depth <= 0 or self.chance(0.5):
            return self._float_leaf()
        match self.pick({"+": 4, "-": 2, "*": 2, "half": 1, "if": 1, "float": 1, "max": 1, "call": 1.5}):
            case "+" | "-" as sign:
                return self._joined(self.float_(depth - 1), sign, self.float_(depth - 1), is_float=True)
            case "*":
                return self._joined(self.float_(depth - 1), "*", self.float_(depth - 1), is_float=True)
            case "half":
                a = self.fitted(self.float_(depth - 1), True)
                return Num(f"{a.text} * 0.5", a.volatile, a.bits, a.fraction + 1)
            case "if":
                c, a, b = self.condition(1), self.float_(depth - 1), self.float_(depth - 1)
                return self._either(c, a, b)
            case "float":
                a = self.fitted(self.int_(depth - 1), False)
                text = f"float({a.text})" if self.chance(0.5) else f"({a.text}) * 0.25"
                return Num(text, a.volatile, a.bits, 2)
            case "max":
                a, b = self.float_(depth - 1), self.float_(depth - 1)
                text = f"{rng.choice(['min', 'max'])}({a.text}, {b.text})"
                return Num(text, a.volatile or b.volatile, max(a.bits, b.bits), max(a.fraction, b.fraction))
        return self.call_float()

    def call_int(self) -> Num:
        """The call of a helper function; see `helpers`."""
        return self._int_leaf()

    def call_float(self) -> Num:
        return self._float_leaf()

    def stored(self, is_float: bool, depth: int = 2) -> Num:
        """What may be assigned to a variable or a cell: of few bits."""
        return self.fitted(self.number(is_float, depth), is_float, always=self.chance(0.3))

    def fitted(self, a: Num, is_float: bool, always: bool = False) -> Num:
        """The number itself if it has few bits, else reduced."""
        if not always and a.bits <= STORED_BITS - 2 and a.fraction <= STORED_FRACTION:
            return a
        if is_float:
            text = f"np.floor(({a.text}) * 4.0) % 64.0 * 0.25"
            return Num(f"({text})", a.volatile, 4, STORED_FRACTION)
        return Num(f"(({a.text}) % 97)", a.volatile, 7)

    def small(self, is_float: bool) -> Num:
        """What may be added to a cell again and again."""
        if is_float:
            return Num(self.rng.choice(["0.25", "0.5", "-0.25", "1.0"]), False, 1, 2)
        if self.chance(0.5):
            return Num(str(self.rng.randint(1, 3)), False, 2)
        a = self.int_(1)
        return Num(f"({a.text}) % {self.rng.choice([2, 3, 4])}", a.volatile, 2)

    def _joined(self, a: Num, sign: str, b: Num, is_float: bool) -> Num:
        if sign == "*":
            if a.bits + b.bits + a.fraction + b.fraction > MAX_BITS or a.fraction + b.fraction > 4:
                a, b = self.fitted(a, is_float, True), self.fitted(b, is_float, True)
            bits, fraction = a.bits + b.bits, a.fraction + b.fraction
        else:
            if max(a.bits, b.bits) + 1 + max(a.fraction, b.fraction) > MAX_BITS:
                a, b = self.fitted(a, is_float, True), self.fitted(b, is_float, True)
            bits, fraction = max(a.bits, b.bits) + 1, max(a.fraction, b.fraction)
        return Num(f"({a.text} {sign} {b.text})", a.volatile or b.volatile, bits, fraction)

    def _either(self, c: Num, a: Num, b: Num) -> Num:
        volatile = a.volatile or b.volatile or c.volatile
        return Num(f"({a.text} if {c.text} else {b.text})", volatile, max(a.bits, b.bits), max(a.fraction, b.fraction))

    # -- leaves ----------------------------------------------------------------------------------------------

    def _int_leaf(self) -> Num:
        rng, scope = self.rng, self.scope
        scalars = [a for a in self.args if a.kind == "int"]
        vectors = [a for a in scope.arrays if not a.is_float and a.dimensions == 1]
        cells = [a for a in self.args if a.dtype.startswith("i") and (a.size != "blocks" or self.chance(0.1))]
        cells = [a for a in cells if a.kind in ("vec", "mat", "cube", "array", "array2", "map")]
        match self.pick(
            {
                "constant": 1,
                "variable": 4 * bool(scope.ints),
                "scalar": bool(scalars),
                "element": 2 * bool(vectors),
                "cell": 2 * bool(cells) * (not scope.volatile),
                "length": bool(scope.arrays),
                "rows": 0.5 * bool(self.args),
                "argmax": 0.7 * any(self._has_argmax(a) for a in scope.arrays),
                "field": 1.5 * bool(scope.records),
                "global": 1.0 * bool(self.facts.constants),
                "draw": 1.5 * bool(self.randoms),
            }
        ):
            case "draw":
                tables = [a for a in self.args if a.is_table]
                few = ["3", "5", "-2, 4", *(f"len({a.name})" for a in tables)]
                return Num(f"{rng.choice(self.randoms)}.integers({rng.choice(few)})", False, 7)
            case "variable":
                return rng.choice(scope.ints)
            case "scalar":
                return Num(rng.choice(scalars).name, False, 6)
            case "element":
                return self.element(rng.choice(vectors))
            case "cell":
                return self.cell(rng.choice(cells))
            case "length":
                a = rng.choice(scope.arrays)
                text = f"{a.name}.shape[0]" if not a.growable and self.chance(0.2) else f"len({a.name})"
                return Num(text, not a.steady, 4)
            case "rows":
                tables = [a for a in self.args if a.is_table and a.role != "relaxed"]
                return Num(f"len({rng.choice(tables).name})", False, 5) if tables else Num("2", False, 2)
            case "argmax":
                a = rng.choice([a for a in scope.arrays if self._has_argmax(a)])
                form = rng.choice(["np.argmax({})", "{}.argmax()", "np.argmin({})", "np.count_nonzero({})"])
                return Num(form.format(a.name), a.volatile or not a.steady, 3)
            case "field":
                return self.field(rng.choice(scope.records), False)
            case "global":
                name = rng.choice(self.facts.constants)
                match name:
                    case "LARGE":
                        return Num(f"LARGE[{self.within_length('LARGE', 1500).text}]", False, 6)
                    case "TRIPLE":
                        return Num(f"TRIPLE[{rng.randint(0, 2)}]", False, 4)
                return Num(name, False, 4)
        return Num(str(rng.randint(0, 4)), False, 3)

    def _has_argmax(self, a: Array) -> bool:
        return a.dimensions == 1 and a.shortest > 0 and not a.growable

    def _float_leaf(self) -> Num:
        rng, scope = self.rng, self.scope
        scalars = [a for a in self.args if a.kind == "float"]
        vectors = [a for a in scope.arrays if a.is_float and a.dimensions == 1]
        cells = [a for a in self.args if a.is_float and a.kind in ("vec", "mat", "cube", "array", "array2", "map")]
        sums = [a for a in scope.arrays if a.dimensions == 1 and a.is_float and not a.growable]
        match self.pick(
            {
                "constant": 1,
                "variable": 4 * bool(scope.floats),
                "scalar": bool(scalars),
                "element": 3 * bool(vectors),
                "cell": 2 * bool(cells) * (not scope.volatile),
                "field": 1.5 * bool(scope.records),
                "sum": bool(sums),
            }
        ):
            case "variable":
                return rng.choice(scope.floats)
            case "scalar":
                return Num(rng.choice(scalars).name, False, 3, 2)
            case "element":
                return self.element(rng.choice(vectors))
            case "cell":
                return self.cell(rng.choice(cells))
            case "field":
                return self.field(rng.choice(scope.records), True)
            case "sum":
                return self.reduction(rng.choice(sums))
        return Num(rng.choice(["0.25", "0.5", "1.0", "1.5", "2.0", "-0.75"]), False, 2, 2)

    def reduction(self, a: Array) -> Num:
        """np.sum and others of an array of floats."""
        kinds = {"sum": 2, "np.sum": 2, "dot": 1, "min": bool(a.shortest), "np.max": bool(a.shortest)}
        volatile = a.volatile or not a.steady
        match self.pick(kinds):
            case "sum":
                return Num(f"{a.name}.sum()", volatile, STORED_BITS + 2, STORED_FRACTION)
            case "np.sum":
                return Num(f"np.sum({a.name})", volatile, STORED_BITS + 2, STORED_FRACTION)
            case "dot":
                # Not np.dot of two rows with many bits: halves of 4 bits are exact in f4.
                text = f"np.dot(np.floor({a.name}) % 16.0, np.floor({a.name}) % 8.0)"
                return Num(text, volatile, 10, 0)
            case "min":
                return Num(f"{a.name}.{self.rng.choice(['min', 'max'])}()", volatile, STORED_BITS, STORED_FRACTION)
        return Num(f"np.{self.rng.choice(['min', 'max'])}({a.name})", volatile, STORED_BITS, STORED_FRACTION)

    def element(self, a: Array) -> Num:
        """An element of an array of one dimension, or a constant where it may have none."""
        index = self.position(a)
        if index is None:
            return Num("1.5" if a.is_float else "3", False, 2, 1 if a.is_float else 0)
        return Num(f"{a.name}[{index.text}]", a.volatile or index.volatile, STORED_BITS, 2 if a.is_float else 0)

    def position(self, a: Array) -> Num | None:
        """A second index: within the array but for risky ones."""
        rng = self.rng
        inside = [i for i, w in self.scope.within if w == a.name]
        if inside and self.chance(0.75):
            return Num(rng.choice(inside), False, 3)
        if self.facts.risky and self.chance(0.3):
            i = self.int_(1) if self.chance(0.5) else Num(str(rng.choice([2, 3, -3, -4])))
            return i
        if a.shortest == 0:
            return None
        if self.chance(0.5):
            return Num(str(rng.choice([*range(a.shortest), -1, -a.shortest])), False, 3)
        i = self.int_(1)
        return Num(f"({i.text}) % len({a.name})", i.volatile or not a.steady, 3)

    def field(self, record: Rec, is_float: bool) -> Num:
        """A field of a record, or an element of one that is an array."""
        written = record.arg.role == "written"
        if is_float:
            text = f"{record.name}.x" if self.chance(0.5) else f"{record.name}.v[{self.rng.choice([0, 1, -1])}]"
            return Num(text, record.volatile, STORED_BITS, STORED_FRACTION)
        if not written:
            return Num(f"{record.name}.{self.rng.choice('ab')} % 7", record.volatile, 3)
        text = f"{record.name}.n" if self.chance(0.5) else f"{record.name}.c[{self.rng.choice([0, 1, -1])}]"
        return Num(text, record.volatile, STORED_BITS)

    # -- conditions ------------------------------------------------------------------------------------------

    def condition(self, depth: int = 1) -> Num:
        """A truth value."""
        if depth > 0 and self.chance(0.2):
            a, b = self.condition(0), self.condition(0)
            return Num(f"({a.text} {self.rng.choice(['and', 'or'])} {b.text})", a.volatile or b.volatile)
        if self.randoms and self.chance(0.3):
            return Num(f"{self.rng.choice(self.randoms)}.random() < {self.rng.choice(['0.5', '0.125'])}", False)
        if self.chance(0.1):
            a = self.condition(0)
            return Num(f"not {a.text}", a.volatile)
        maps = [a for a in self.args if a.is_map]
        if maps and self.chance(0.3):
            m = self.rng.choice(maps)
            key = self.key(m)
            if self.chance(0.15) and len(self.facts.helpers) < 2:
                name = self.facts.fresh("h")
                self.facts.helpers.append(f"def {name}(m, key):\n    return key in m")
                return Num(f"{name}({m.name}, {key.text})", key.volatile)
            return Num(f"{key.text} {self.rng.choice(['in', 'not in'])} {m.name}", key.volatile)
        if self.chance(0.4):
            a = self.int_(1)
            return Num(f"({a.text}) % {self.rng.choice([2, 3])} == {self.rng.choice([0, 1])}", a.volatile)
        is_float = self.chance(0.5)
        a, b = self.number(is_float, 1), self.number(is_float, 0)
        return Num(f"{a.text} {self.rng.choice(['<', '>', '<=', '!=', '=='])} {b.text}", a.volatile or b.volatile)

    # -- rows ------------------------------------------------------------------------------------------------

    def within_length(self, name: str, length: int = 0) -> Num:
        i = self.int_(1)
        return Num(f"({i.text}) % {length or f'len({name})'}", i.volatile, 4)

    def key(self, m: Arg) -> Num:
        """A key that a map may have or not."""
        return self.row_of(m) if self.chance(0.7) else self.int_(1)

    def row_of(self, table: Arg) -> Num:
        """A row number (or a key) of a table: k, from index tables, by arithmetic, by values of the loop."""
        found = self._pointer(table)
        if found is not None and (table.is_map or self.chance(0.75)):
            i = found
        elif table.is_map:
            return Num("0", False) if found is None else found
        else:
            i = self._computed_row(table)
        return i

    def _pointer(self, table: Arg) -> Num | None:
        """What points to this table by construction."""
        rng, options = self.rng, []
        if table.size == "tasks" and not table.is_map and not self.in_helper:
            options += [self.facts.index] * 3
        for a in self.args:
            if table.name not in (a.points, a.points_too):
                continue
            if a.kind in ("int", "tuple"):
                options.append(a.name if a.kind == "int" else f"{a.name}[{rng.choice([0, 1, 2, -1])}]")
            elif a.kind in ("vec", "array"):
                options += [f"{a.name}[{self._own(a)}]"] * 3
            elif a.kind in ("mat", "array2"):
                options += [f"{a.name}[{self._own(a)}, {rng.choice([0, 1, -1])}]", f"{a.name}[{self._own(a)}][0]"]
            elif a.kind == "rec":
                options += [f"{a.name}[{self._own(a)}].{'a' if a.points == table.name else 'b'}"] * 2
        if table.name == self.facts.own_row[0] and not self.in_helper:
            options += [self.facts.own_row[1]] * 6
        for r in self.scope.records:
            if table.name in (r.arg.points, r.arg.points_too) and r.volatile == (r.arg.role == "written"):
                options += [f"{r.name}.{'a' if r.arg.points == table.name else 'b'}"] * 5
        for a in self.scope.arrays:
            if a.origin == f"->{table.name}" and a.dimensions == 1:
                options += [f"{a.name}[{i}]" for i, w in self.scope.within if w == a.name for _ in range(6)]
        return Num(rng.choice(options), False, 5) if options else None

    def _own(self, a: Arg) -> str:
        if a.size == "tasks" and self.chance(0.8):
            return self.facts.index
        return f"{self.facts.index} % len({a.name})"

    def _computed_row(self, table: Arg) -> Num:
        rng = self.rng
        if self.facts.risky and self.chance(0.1):
            i = self.int_(1)
            return Num(i.text, i.volatile, i.bits)
        if self.randoms and self.chance(0.4):
            draws = rng.choice(self.randoms)
            if table.kind in DENSE and self.facts.index == "k" and self.chance(0.5):
                return Num(f"{draws}.near({table.name})", False, 5)
            return Num(f"{draws}.integers(len({table.name}))", False, 5)
        i = self.int_(2)
        changing = [v for v in self.scope.ints if v.volatile]
        if changing and self.chance(0.3):  # breaks the rule
            i = rng.choice(changing)
        match rng.choice(["plain", "plain", "negative", "literal", "first", "masked"]):
            case "masked":
                return Num(f"({i.text}) & {rng.choice([1, 3])}", i.volatile, 2)
            case "negative":
                return Num(f"-1 - ({i.text}) % len({table.name})", i.volatile, 5)
            case "literal":
                return Num(f"{rng.choice([0, -1])}", False, 1)
            case "first":
                factor, offset = rng.choice([1, 3, 5]), rng.randint(0, 3)
                return Num(f"({self.facts.index} * {factor} + {offset}) % len({table.name})", False, 5)
        return Num(f"({i.text}) % len({table.name})", i.volatile, 5)

    def chosen(self, table: Arg) -> str:
        """The text of a row number; notes whether that breaks the rule."""
        row = self.row_of(table)
        if (row.volatile or self.scope.volatile) and table.role != "relaxed":
            self.facts.obeys = False
        return row.text

    def cell(self, a: Arg) -> Num:
        """A number of a table or an array that is passed."""
        volatile = a.role == "written"
        if a.role == "relaxed":
            return Num("1", False)
        row = self.chosen(a)
        bits, fraction = STORED_BITS, STORED_FRACTION if a.is_float else 0
        if a.kind in ("vec", "array", "map"):
            return Num(f"{a.name}[{row}]", volatile, bits, fraction)
        column = self.column(a)
        if a.kind == "cube":
            return Num(f"{a.name}[{row}, {self.rng.choice(['0', '1', '-1'])}, {column}]", volatile, bits, fraction)
        form = f"{a.name}[{row}, {column}]" if self.chance(0.6) else f"{a.name}[{row}][{column}]"
        return Num(form, volatile, bits, fraction)

    def column(self, a: Arg) -> str:
        rng = self.rng
        if self.facts.risky and self.chance(0.25):
            return rng.choice(["2", "3", "-3", self.int_(1).text])
        if self.chance(0.3) and not a.is_map:
            return f"({self.int_(1).text}) % {a.name}.shape[{2 if a.kind == 'cube' else 1}]"
        return rng.choice(["0", "1", "-1", "-2"])
