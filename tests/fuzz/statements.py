"""Random statements: the blocks of a body or of a helper."""

from collections.abc import Callable

from .arguments import Arg
from .expressions import Expressions
from .scope import STORED_BITS, STORED_FRACTION, Array, Num, Rec, Scope

Lines = list[str]


def indented(lines: Lines) -> Lines:
    return [f"    {line}" for line in lines] or ["    pass"]


class Statements(Expressions):
    """Writes blocks; each statement is a list of lines."""

    def block(self, count: int, scope: Scope | None = None) -> Lines:
        """So many statements, in a scope of their own if one is given."""
        outer, self.scope = self.scope, scope or self.scope
        lines = [line for _ in range(count) for line in self.statement()]
        self.scope = outer
        return lines

    def statement(self) -> Lines:
        return self.pick(self.statements())()

    def statements(self) -> dict[Callable[[], Lines], float]:
        """All kinds of statements, by how often they are written here."""
        scope = self.scope
        few = scope.loops < 2
        arrays = [a for a in scope.arrays if a.writable]
        tables = [a for a in self.args if a.role == "written"]
        steady = not scope.volatile or self.chance(0.15)  # else rows would be touched only sometimes
        return {
            self.variable: 1.5,
            self.fetch: 3 * bool(self.args) * steady,
            self.reassign: 2 * bool(scope.assignable),
            self.store: 4 * bool(tables) * steady,
            self.array_store: 4 * bool(arrays),
            self.whole_array: 1.5 * bool(arrays),
            self.branch: 1.5 * (scope.loops < 3),
            self.for_loop: 2 * few,
            self.while_loop: 0.5 * few,
            self.local_array: 1.2,
            self.grid: 0.6 * few,
            self.local_list: 0.7,
            self.pair: 0.7,
            self.exchange: 0.5 * (len(scope.arrays) > 1),
            self.add: 1.2 * any(a.kind == "acc" for a in self.args),
            self.relaxed_add: 1.2 * any(a.role == "relaxed" for a in self.args),
            self.guarded_key: 0.7 * any(a.is_map and a.role == "written" for a in self.args) * steady,
            self.call_statement: 1.5,
            self.gather: 1.5 * bool(self._lists()) * steady,
            self.compressed: 4 * bool(self._compressed()) * steady,
            self.zipped: 0.5 * (len(scope.arrays) > 1),
            self.guarded: 1.5 * bool(self._vectors()),
            self.difference: 1.2 * few * bool(self._vectors()),
            self.assigned_again: 1.5 * any(a.shortest >= 2 for a in self._vectors()),
            self.neighbour: 1.5 * bool(self._neighboured()) * steady,
            self.best: 0.7 * bool(self._vectors()),
            self.elements: 3 * few * bool(self._tables_of_rows()) * steady,
        }

    # -- variables -------------------------------------------------------------------------------------------

    def variable(self) -> Lines:
        is_float = self.chance(0.5)
        value, name = self.stored(is_float), self.facts.fresh("x" if is_float else "i")
        lines = [f"{name} = {value.text}"]
        self.define(name, is_float, value.volatile)
        return lines

    def define(self, name: str, is_float: bool, volatile: bool, assignable: bool = True) -> None:
        number = Num(name, volatile or self.scope.volatile, STORED_BITS - 2, STORED_FRACTION if is_float else 0)
        (self.scope.floats if is_float else self.scope.ints).append(number)
        if assignable:
            self.scope.assignable.append(name)

    def reassign(self) -> Lines:
        name = self.rng.choice(self.scope.assignable)
        variable = next(v for v in [*self.scope.ints, *self.scope.floats] if v.text == name)
        is_float = name.startswith("x")
        if self.chance(0.4):
            value = self.small(is_float)
            line = f"{name} += {value.text}"
        else:
            value = self.number(is_float, 2)
            value = self.fitted(self._joined(variable, "+", value, is_float), is_float, True)
            line = f"{name} = {value.text}"
        variable.volatile |= value.volatile or self.scope.volatile
        return [line]

    def pair(self) -> Lines:
        """Tuples: `i, j = a, b`, and what depends on a condition."""
        is_float = self.chance(0.3)
        a, b = self.stored(is_float, 1), self.stored(is_float, 1)
        first, second = self.facts.fresh("x" if is_float else "i"), self.facts.fresh("x" if is_float else "i")
        text, volatile = f"{a.text}, {b.text}", a.volatile or b.volatile
        if self.chance(0.4):
            c = self.condition()
            other = f"{b.text}, {'1.5' if is_float else '1'}"
            text, volatile = f"({text}) if {c.text} else ({other})", volatile or c.volatile
        lines = [f"{first}, {second} = {text}"]
        if self.chance(0.3):
            name = self.facts.fresh("t")
            lines = [f"{name} = ({text})", f"{first}, {second} = {name}[0], {name}[1]"]
        self.define(first, is_float, volatile)
        self.define(second, is_float, volatile)
        return lines

    # -- rows ------------------------------------------------------------------------------------------------

    def fetch(self) -> Lines:
        """`w = W[i]`: a row, a record, a field that is an array, a part of a row."""
        kinds = ("mat", "cube", "rec", "ragged", "rowmap", "recmap", "multimap", "array2")
        tables = [a for a in self.args if a.kind in kinds and a.role != "relaxed"]
        if not tables:
            return self.variable()
        a = self.rng.choice(tables)
        row, name = self.chosen(a), self.facts.fresh("w")
        volatile, writable = a.role == "written", a.role == "written"
        if a.kind in ("rec", "recmap"):
            name = self.facts.fresh("r")
            self.scope.records.append(Rec(name, a, volatile))
            lines = [f"{name} = {a.name}[{row}]"]
            if self.chance(0.3):
                v = self.facts.fresh("w")
                self.scope.arrays.append(Array(v, a.is_float, volatile, 2, writable, origin=f"{a.kind}.v"))
                lines.append(f"{v} = {name}.v")
            return lines
        array = Array(name, a.is_float, volatile, 2, writable, origin=f"->{a.points}" if a.points else "row")
        text = f"{a.name}[{row}]"
        match a.kind:
            case "ragged":
                array.shortest = 0
            case "multimap":
                array.shortest = 1
            case "cube" if self.chance(0.5):
                array.dimensions = 2
            case "cube":
                text = f"{a.name}[{row}, {self.rng.choice(['0', '-1'])}]" if self.chance(0.5) else f"{text}[1]"
        if array.dimensions == 1 and not a.points and self.chance(0.12):
            text, array = self._sliced(text, array)
        self.scope.arrays.append(array)
        return [f"{name} = {text}"]

    def _sliced(self, text: str, array: Array) -> tuple[str, Array]:
        """A part of an array, whose bounds may come from data."""
        n = self.int_(1)
        parts = {"1:": array.shortest - 1, ":-1": array.shortest - 1, ":2": min(2, array.shortest)}
        parts |= {f":({n.text}) % 4": 0, f"({n.text}) % 3:": 0, f"({n.text}) % 2:3": array.shortest - 1}
        bounds, shortest = self.rng.choice(list(parts.items()))
        steady = array.steady and not (n.volatile and n.text in bounds)
        volatile = array.volatile or not steady
        shortest = max(shortest, 0)
        changed = Array(array.name, array.is_float, volatile, shortest, array.writable, 1, "slice", False, steady)
        return f"{text}[{bounds}]", changed

    def store(self) -> Lines:
        """A write to a table, by row number."""
        written = [a for a in self.args if a.role == "written"]
        a = self.rng.choice([a for a in written if a.size != "blocks"] or written)
        row = self.chosen(a)
        match a.kind:
            case "vec" | "map":
                return [self.assignment(f"{a.name}[{row}]", a.is_float)]
            case "mat" | "rowmap":
                if self.chance(0.25):
                    return [self._whole_row(a, row)]
                column = self.column(a)
                by_two = a.kind == "mat" and self.chance(0.7)
                cell = f"{a.name}[{row}, {column}]" if by_two else f"{a.name}[{row}][{column}]"
                return [self.assignment(cell, a.is_float)]
            case "cube":
                return [self.assignment(f"{a.name}[{row}, {self.rng.choice('01')}, {self.column(a)}]", a.is_float)]
            case "rec" | "recmap":
                return [self._field_store(f"{a.name}[{row}]")]
        name = self.facts.fresh("w")
        self.scope.arrays.append(Array(name, a.is_float, True, int(a.kind == "multimap"), True, origin="row"))
        lines = [f"{name} = {a.name}[{row}]"]
        index = self.facts.fresh("j")
        return [*lines, f"for {index} in range(len({name})):", "    " + self.assignment(f"{name}[{index}]", a.is_float)]

    def _tables_of_rows(self) -> list[Arg]:
        return [a for a in self.args if a.role == "written" and a.kind in ("mat", "cube")]

    def elements(self) -> Lines:
        """`for f in …: W[i, f] …`: row and table by their own or other names, in parts, until the loop is left."""
        a, rng = self.rng.choice(self._tables_of_rows()), self.rng
        row, f, before, first, inner = self.chosen(a), self.facts.fresh("f"), [], [], []
        table = a.name
        if self.chance(0.5):
            name = self.facts.fresh("i")
            before, row = [f"{name} = {row}"], name
            if self.chance(0.3):  # the row of a tuple that was made before
                row, other = f"{name}", self.facts.fresh("t")
                before += [f"{other} = ({name}, 0)", f"{name} = {self.chosen(a)}"]
                inner = [self.assignment(f"{a.name}[{other}]", a.is_float)] if a.kind == "mat" else []
        if self.chance(0.2):
            table = self.facts.fresh("m")
            rng.choice([before, first]).append(f"{table} = {a.name}")
        scope = self.scope.nested(in_loop=True)
        scope.ints.append(Num(f, False, 3))
        size = f"{a.name}.shape[{2 if a.kind == 'cube' else 1}]"
        span = size if self.chance(0.6) else f"min({self.int_(1).text} % 4, {size})"
        part = f"{row}, {rng.choice('01')}" if a.kind == "cube" else row
        cell = f"{table}[{part}, {f}]"
        ways = [lambda: [self.assignment(cell, a.is_float)]]
        ways.append(lambda: [f"{cell} += {self.small(a.is_float).text} if {self.condition().text} else 1"])
        if a.kind == "mat":
            w = self.facts.fresh("w")
            ways.append(lambda: [f"{w} = {table}[{row}, {f}:]", self.assignment(f"{w}[0]", a.is_float)])
        ways.append(lambda: [f"if {self.condition().text}:", "    " + self.assignment(cell, a.is_float)])
        for _ in range(rng.choice([1, 1, 2])):
            inner += self._in(scope, rng.choice(ways))
        if self.chance(0.2):
            leave = [f"if {self._in(scope, self.condition).text}:", "    break"]
            inner = rng.choice([[*leave, *inner], [*inner, *leave]])
        return [*before, f"for {f} in range({span}):", *indented([*first, *inner])]

    def _lists(self) -> list[tuple[Arg, Arg]]:
        """Ragged rows of row numbers, and the written tables of numbers that they are of."""
        tables = {a.name: a for a in self.args if a.role == "written" and a.kind in ("vec", "mat", "cube")}
        return [(a, tables[a.points]) for a in self.args if a.kind == "ragged" and a.points in tables]

    def gather(self) -> Lines:
        """`for j in range(len(p[k])): W[p[k][j]] …`: as many rows as the data say."""
        rows, table = self.rng.choice(self._lists())
        own, name = f"{rows.name}[{self._own(rows)}]", self.facts.fresh("j")
        head, row = f"for {name} in range(len({own})):", f"{own}[{name}]"
        if self.chance(0.3):
            head, row = f"for {name} in {own}:", name
        scope = self.scope.nested(in_loop=True)
        scope.ints.append(Num(name, False, 4))
        places = {"vec": "{}[{}]", "mat": "{}[{}, 0]", "cube": "{}[{}, 1, 0]"}
        cell = places[table.kind].format(table.name, row)
        return [head, "    " + self._in(scope, lambda: self.assignment(cell, table.is_float))]

    def _compressed(self) -> list[tuple[Arg, Arg]]:
        """Items, and the tables of numbers whose rows they are; where the body itself is written."""
        tables = {a.name: a for a in self.args if a.role == "written" and a.kind in ("vec", "mat", "cube")}
        items = [a for a in self.args if a.kind == "items" and a.points in tables]
        return [(a, tables[a.points]) for a in items if self.facts.index == "k" and not self.in_helper]

    def compressed(self) -> Lines:
        """`for j in range(P[k], P[k + 1]): W[J[j]] …`."""
        items, table = self.rng.choice(self._compressed())
        name, first, last = self.facts.fresh("j"), "P[k]", "P[k + 1]"
        lines = []
        if self.chance(0.3):
            first, last = self.facts.fresh("i"), self.facts.fresh("i")
            lines = [f"{first}, {last} = P[k], P[k + 1]"]
        head, row = f"for {name} in range({first}, {last}):", f"{items.name}[{name}]"
        if self.chance(0.3):
            head, row = f"for {name} in {items.name}[{first}:{last}]:", name
        scope = self.scope.nested(in_loop=True)
        scope.ints.append(Num(name, False, 5))
        scope.ints.append(Num(row, False, 5))
        places = {"vec": "{}[{}]", "mat": "{}[{}, 0]", "cube": "{}[{}, 1, 0]"}
        cell = places[table.kind].format(table.name, row)
        inner = ["    " + self._in(scope, lambda: self.assignment(cell, table.is_float))]
        if self.chance(0.3):
            inner = [*indented(self.block(1, scope.nested())), *inner]
        return [*lines, head, *inner]

    def zipped(self) -> Lines:
        """Two arrays at once."""
        arrays = [a for a in self.scope.arrays if a.dimensions == 1 and not a.growable]
        if not arrays:
            return self.variable()
        a, b = self.rng.choice(arrays), self.rng.choice(arrays)
        scope, names = self.scope.nested(in_loop=True), []
        for x in (a, b):
            names.append(self.facts.fresh("x" if x.is_float else "i"))
            number = Num(names[-1], x.volatile, STORED_BITS, STORED_FRACTION if x.is_float else 0)
            (scope.floats if x.is_float else scope.ints).append(number)
        scope.volatile |= not (a.steady and b.steady)
        return [f"for {names[0]}, {names[1]} in zip({a.name}, {b.name}):", *indented(self.block(1, scope))]

    def _whole_row(self, a: Arg, row: str) -> str:
        """`W[i] = …`: a constant, or an expression of arrays."""
        if self.chance(0.3):
            where = self.rng.choice(["{}[{}, :]", "{}[{}, 1:]", "{}[{}][:]"]) if a.kind == "mat" else "{}[{}][:]"
            sign = self.rng.choice(["=", "+="])
            return f"{where.format(a.name, row)} {sign} {self.small(a.is_float).text}"
        if self.chance(0.2):
            return f"{a.name}[{row}] += {self.small(a.is_float).text}"
        same = [x for x in self.scope.arrays if x.dimensions == 1 and x.is_float == a.is_float and x.origin == "row"]
        same = [x for x in same if x.shortest == 2]
        if same and self.chance(0.7):
            x = self.rng.choice(same).name
            fit = f"np.floor({x} * 2.0) % 16.0 * 0.5" if a.is_float else f"({x} * 3 + 1) % 97"
            return f"{a.name}[{row}] = {self.rng.choice([x, fit])}"
        return f"{a.name}[{row}] = {self.stored(a.is_float, 1).text}"

    def _field_store(self, record: str) -> str:
        match self.rng.choice(["n", "x", "v", "c"]):
            case "n":
                return self.assignment(f"{record}.n", False)
            case "x":
                return self.assignment(f"{record}.x", True)
            case "v":
                return self.assignment(f"{record}.v[{self.rng.choice([0, 1, 2, -1])}]", True)
        return self.assignment(f"{record}.c[{self.rng.choice([0, 1, -1])}]", False)

    def assignment(self, cell: str, is_float: bool) -> str:
        """`cell op= value` such that cells stay small."""
        if self.chance(0.45):
            return f"{cell} {self.rng.choice(['+=', '+=', '-='])} {self.small(is_float).text}"
        old = Num(cell, True, STORED_BITS, STORED_FRACTION if is_float else 0)
        value = self.number(is_float, 2)
        if self.chance(0.6):
            value = self._joined(old, self.rng.choice(["+", "-", "*"]), value, is_float)
        return f"{cell} = {self.fitted(value, is_float, True).text}"

    def array_store(self) -> Lines:
        """A write to an element of an array: the row of a table, or a local one."""
        records = [r for r in self.scope.records if r.arg.role == "written"]
        if records and self.chance(0.4):
            return [self._field_store(self.rng.choice(records).name)]
        a = self.rng.choice([a for a in self.scope.arrays if a.writable])
        if a.growable and self.chance(0.6):
            value = self.stored(a.is_float, 1)
            a.volatile |= value.volatile or self.scope.volatile
            a.steady &= not self.scope.volatile
            return [f"{a.name}.append({value.text})"]
        index = self.position(a)
        if index is None:
            return self._element_loop(a)
        second = ", 0" if a.dimensions == 2 else ""
        line = self.assignment(f"{a.name}[{index.text}{second}]", a.is_float)
        a.volatile = True if self.scope.volatile or index.volatile else a.volatile or not _is_plain(line)
        return [line]

    def _vectors(self) -> list[Array]:
        return [a for a in self.scope.arrays if a.dimensions == 1 and not a.growable]

    def guarded(self) -> Lines:
        """An element whose index is whatever it is, under a condition that it exists."""
        a, index, name = self.rng.choice(self._vectors()), self.facts.fresh("i"), self.facts.fresh("x")
        i, size, kind = self.int_(2), len_of(a.name), "1.5" if a.is_float else "3"
        is_read_twice = not self.facts.randoms and self.chance(0.3)
        if is_read_twice:
            index = f"({i.text})"
        guards = [
            (f"0 <= {index} < {size}", index),
            (f"{index} >= 0 and {size} > {index}", index),
            (f"{index} > 0 and {index} <= {size}", f"{index} - 1"),
            (f"not ({index} < 0 or {index} >= {size})", index),
            (f"{index} >= 0 and {index} + 1 < {size}", f"{index} + 1"),
            (f"{index} >= 0 and {index} != 0 and {index} < {size}", f"{index} - 1"),
            (f"{size} > 0", f"max(0, min({index}, {size} - 1))"),
        ]
        if self.facts.risky:
            guards += [(f"0 <= {index} <= {size}", index), (f"{index} < {size} or {index} >= 0", index)]
        guard, place = self.rng.choice(guards)
        lines = [f"{name} = {kind}", f"if {guard}:"]
        if not is_read_twice:
            again = [
                f"{index} += 1",
                f"{index} = min(max({index} - 1, 0), {size} - 1)",
                f"{index} = {index} % max({size}, 1)",
            ]
            lines = [f"{index} = {i.text}", *([self.rng.choice(again)] if self.chance(0.4) else []), *lines]
        volatile = i.volatile or a.volatile or not a.steady
        if a.writable and self.chance(0.5) and (not is_read_twice or self.facts.risky):
            lines.append("    " + self.assignment(f"{a.name}[{place}]", a.is_float))
            a.volatile = True
        lines.append(f"    {name} = {a.name}[{place}]")
        if a.is_float:
            self.define(name, True, volatile, assignable=False)
        else:
            number = self.facts.fresh("i")
            lines.append(f"{number} = {name}")
            self.define(number, False, volatile, assignable=False)
        return lines

    def difference(self) -> Lines:
        """An element as far before the end of a range as another number says, as in a knapsack."""
        a, w, name = self.rng.choice(self._vectors()), self.facts.fresh("j"), self.facts.fresh("x")
        size, i = len_of(a.name), self.int_(2)
        step, value = self.facts.fresh("i"), self.rng.choice([f"({i.text}) % 5", i.text])
        loop, guard = self.rng.choice(
            [
                (f"range({size})", f"{w} >= {step}"),
                (f"range({step}, {size})", f"{step} >= 0"),
                (f"range({size} - 1, -1, -1)", f"0 <= {w} - {step} < {size}"),
                (f"range({size})", f"{w} - {step} >= 0"),
            ]
        )
        bounded = f"{step} = max(0, min({step}, {size}))" if not self.facts.risky else f"{step} = min({step}, {size})"
        lines = [f"{name} = {'1.5' if a.is_float else '3'}", f"{step} = {value}", bounded]
        place = f"{a.name}[{w} - {step}]"
        writes = a.writable and self.chance(0.5)
        volatile = i.volatile or a.volatile or not a.steady
        inner = self.assignment(place, a.is_float) if writes else f"{name} = {place}"
        a.volatile |= writes
        self.define(step, False, i.volatile, assignable=False)
        if a.is_float:
            self.define(name, True, volatile, assignable=False)
        return [*lines, f"for {w} in {loop}:", f"    if {guard}:", f"        {inner}"]

    def assigned_again(self) -> Lines:
        """An index that changes between two uses, as Numba renames it there, and may become negative."""
        a = self.rng.choice([a for a in self._vectors() if a.shortest >= 2])
        index, name, size = self.facts.fresh("i"), self.facts.fresh("x" if a.is_float else "i"), len_of(a.name)
        i, c = self.int_(2), self.condition()
        again = [f"{index} -= 1", f"{index} = {index} - {size}", f"{index} = min(max({index} - 1, 0), {size} - 1)"]
        lines = [f"{index} = ({i.text}) % {size}", f"{name} = {a.name}[{index}]", self.rng.choice(again)]
        if self.chance(0.6):
            lines += [f"if {c.text}:", f"    {index} = {index} % {size}"]
        lines.append(f"{name} = {a.name}[{index}]")
        volatile = i.volatile or c.volatile or a.volatile or not a.steady
        self.define(name, a.is_float, volatile, assignable=False)
        return lines

    def _neighboured(self) -> list[Arg]:
        return [a for a in self.args if a.role == "written" and a.kind in ("vec", "mat", "cube")]

    def neighbour(self) -> Lines:
        """A row some rows after or before another one, if it exists."""
        a = self.rng.choice(self._neighboured())
        pointer = self._pointer(a) or Num(f"{self.facts.index} % len({a.name})", False, 5)
        row = f"{pointer.text} {self.rng.choice(['+ 1', '- 1', '+ 2', '- 3'])}"
        guard = self.rng.choice([f"0 <= {row} < len({a.name})", f"{row} >= 0 and {row} < len({a.name})"])
        cell = {"vec": "{}[{}]", "mat": "{}[{}, 0]", "cube": "{}[{}, 1, 0]"}[a.kind].format(a.name, row)
        return [f"if {guard}:", "    " + self._in(self.scope.nested(), lambda: self.assignment(cell, a.is_float))]

    def best(self) -> Lines:
        """The place of the largest element, found in a loop."""
        a = self.rng.choice(self._vectors())
        if a.shortest == 0:
            return self.guarded()
        best, j = self.facts.fresh("i"), self.facts.fresh("j")
        value = f"{a.name}[{best}]"
        lines = [f"{best} = 0", f"for {j} in range(1, len({a.name})):"]
        lines += [f"    if {a.name}[{j}] {self.rng.choice('<>')} {value}:", f"        {best} = {j}"]
        self.define(best, False, a.volatile or not a.steady, assignable=False)
        self.scope.within.append((best, a.name))
        return lines

    def _element_loop(self, a: Array) -> Lines:
        index = self.facts.fresh("j")
        scope = self.scope.nested(in_loop=True)
        scope.within.append((index, a.name))
        scope.ints.append(Num(index, not a.steady, 4))
        outer, self.scope = self.scope, scope
        second = ", 1" if a.dimensions == 2 else ""
        line = self.assignment(f"{a.name}[{index}{second}]", a.is_float)
        self.scope = outer
        a.volatile = a.volatile or not _is_plain(line)
        return [f"for {index} in range(len({a.name})):", f"    {line}"]

    def whole_array(self) -> Lines:
        """Array expressions, `out=`, np.copyto, fill."""
        arrays = [a for a in self.scope.arrays if a.writable and not a.growable and a.dimensions == 1]
        if not arrays:
            return self.variable()
        a = self.rng.choice(arrays)
        same = [x for x in self.scope.arrays if x.dimensions == 1 and x.origin == a.origin and x.shortest == a.shortest]
        same = [x for x in same if x.is_float == a.is_float and not x.growable]
        x = self.rng.choice(same)
        a.volatile |= x.volatile or self.scope.volatile
        s, x = self.small(a.is_float).text, x.name
        fit = "np.floor(({0}) * 2.0) % 16.0 * 0.5" if a.is_float else "({0}) % 97"
        return [
            self.rng.choice(
                [
                    f"{a.name} += {s}",
                    f"{a.name}[:] = {fit.format(f'{x} + {s}')}",
                    f"{a.name}[:] = {s}",
                    f"{a.name}[:] = {x}",
                    f"{a.name}[1:] = {s}",
                    f"{a.name}[:] = {x}[::-1].copy()",
                    f"np.add({x}, {s}, {a.name})",
                    f"np.subtract({x}, {s}, {a.name})",
                    f"np.copyto({a.name}, {x})",
                    f"{a.name}.fill({s})",
                    f"{a.name}[::2] = {s}",
                    f"{a.name}[1:] += {s}",
                    f"{a.name}[:2] = {x}[:2]",
                    f"{a.name} -= {s}",
                ]
            )
        ]

    # -- local arrays, lists ---------------------------------------------------------------------------------

    def local_array(self) -> Lines:
        rng, facts = self.rng, self.facts
        name = facts.fresh("u")
        local = [a for a in self.scope.arrays if a.origin == "local" and a.dimensions == 1]
        if local and self.chance(0.35):
            a = rng.choice(local)
            copy = Array(name, a.is_float, a.volatile, a.shortest, True, 1, a.origin, False, a.steady)
            match rng.choice(["alias", "slice", "copy"]):
                case "alias":
                    self.scope.arrays.append(copy)
                    return [f"{name} = {a.name}"]
                case "slice":
                    text, copy = self._sliced(a.name, copy)
                    self.scope.arrays.append(copy)
                    return [f"{name} = {text}"]
            self.scope.arrays.append(copy)
            return [f"{name} = {a.name}.copy()"]
        n, exact = self._length()
        is_float = self.chance(0.5)
        dtype = f"np.float{facts.floating[1]}".replace("4", "32").replace("8", "64") if is_float else "np.int64"
        fill = "1.5" if is_float else "2"
        kinds = [f"np.zeros({n.text}, {dtype})", f"np.ones({n.text}, {dtype})", f"np.full({n.text}, {fill})"]
        if not is_float:
            kinds += [f"np.arange({n.text})", f"np.repeat(2, {n.text})"]
        array = Array(name, is_float, False, exact, True, 1, "local", False, not n.volatile)
        self.scope.arrays.append(array)
        if self.chance(0.15):
            return [f"{name} = np.empty({n.text}, {dtype})", f"{name}[:] = {fill}"]
        text = rng.choice(kinds)
        if self.chance(0.2):  # the same expression twice makes two arrays
            other = facts.fresh("u")
            self.scope.arrays.append(Array(other, is_float, False, exact, True, 1, "local", False, not n.volatile))
            return [f"{name} = {text}", f"{other} = {text}"]
        return [f"{name} = {text}"]

    def grid(self) -> Lines:
        """A local array of two dimensions, filled and summed up in loops over its sizes."""
        rng, facts = self.rng, self.facts
        name, total, i, j = (facts.fresh(prefix) for prefix in ("u", "i", "j", "j"))
        lengths = [self._length()[0], self._length()[0]]
        n, m = (facts.fresh("n"), facts.fresh("n")) if self.chance(0.6) else (lengths[0].text, lengths[1].text)
        lines = [f"{n}, {m} = {lengths[0].text}, {lengths[1].text}"] if n != lengths[0].text else []
        made = ["np.zeros(({}, {}), np.int64)", "np.full(({}, {}), 2)", "np.ones(({}, {}), np.int64)"]
        lines.append(f"{name} = {rng.choice(made).format(n, m)}")
        if self.chance(0.3):
            copy = facts.fresh("u")
            like = ["np.zeros_like({})", "np.ones({}.shape, np.int64)", "{}.copy()", "{} + 1"]
            lines.append(f"{copy} = {rng.choice(like).format(name)}")
            name = copy
        rows = [n, f"len({name})", f"{name}.shape[0]", f"{name}.shape[-2]"]
        columns = [m, f"{name}.shape[1]", f"{name}.shape[-1]"]
        if facts.risky and self.chance(0.2):
            rows, columns = rng.choice([(columns, rows), (rows, ["3", *rows])])
        scope = self.scope.nested(in_loop=True)
        scope.ints += [Num(i, False, 4), Num(j, False, 4)]
        outer, self.scope = self.scope, scope
        value = self.stored(False, 1)
        self.scope = outer
        cell = rng.choice(["{}[{}, {}]", "{}[{}][{}]"]).format(name, i, j)
        lines += [
            f"{total} = 0",
            f"for {i} in range({rng.choice(rows)}):",
            f"    for {j} in range({rng.choice(columns)}):",
            f"        {cell} += {value.text}",
            f"        {total} = ({total} + {cell}) % 1000",
        ]
        self.define(total, False, value.volatile or any(length.volatile for length in lengths), assignable=False)
        return lines

    def _length(self) -> tuple[Num, int]:
        """A length, and what it is at least."""
        if self.chance(0.6):
            n = self.rng.randint(1, 4)
            return Num(str(n)), n
        if self.scope.arrays and self.chance(0.5):
            a = self.rng.choice(self.scope.arrays)
            return Num(f"len({a.name})", not a.steady), a.shortest
        i = self.int_(1)
        low = self.rng.choice([0, 1, 2])
        return Num(f"({i.text}) % 3 + {low}", i.volatile), low

    def local_list(self) -> Lines:
        name, is_float = self.facts.fresh("l"), False
        a, b = self.stored(is_float, 1), self.stored(is_float, 1)
        volatile = a.volatile or b.volatile or self.scope.volatile
        kind = self.rng.choice(["literal", "comprehension", "append", "rows"])
        array = Array(name, is_float, volatile, 2, True, 1, "list", True)
        match kind:
            case "literal":
                lines = [f"{name} = [{a.text}, {b.text}]"]
            case "comprehension":
                array.shortest = 3
                lines = [f"{name} = [({a.text}) % 5 + e for e in range(3)]"]
            case "append":
                c = self.condition()
                array.shortest, array.steady = 1, not c.volatile
                array.volatile |= c.volatile
                lines = [f"{name} = [{a.text}]", f"if {c.text}:", f"    {name}.append({b.text})"]
            case "rows":
                return self._list_of_rows(name)
        self.scope.arrays.append(array)
        return lines

    def _list_of_rows(self, name: str) -> Lines:
        rows = [x for x in self.scope.arrays if x.origin == "row" and x.dimensions == 1 and x.writable]
        if not rows:
            return self.variable()
        a = self.rng.choice(rows)
        b = self.rng.choice([x for x in rows if x.is_float == a.is_float])
        row = self.facts.fresh("w")
        shortest = min(a.shortest, b.shortest)
        lines = [f"for {row} in {self.rng.choice(['({}, {})', '[{}, {}]']).format(a.name, b.name)}:"]
        scope = self.scope.nested(in_loop=True)
        scope.arrays.append(Array(row, a.is_float, True, shortest, True, origin="row"))
        return [*lines, *indented(self.block(1, scope))]

    def exchange(self) -> Lines:
        """`a, b = (w, h) if c else (h, w)`, or one of two arrays by a condition."""
        arrays = [a for a in self.scope.arrays if a.dimensions == 1 and not a.growable]
        a = self.rng.choice(arrays) if arrays else None
        same = [x for x in arrays if x.is_float == a.is_float and x.origin == a.origin and x is not a] if a else []
        if not same:
            return self.variable()
        b, c = self.rng.choice(same), self.condition()
        first, second = self.facts.fresh("w"), self.facts.fresh("w")
        lines = [f"{first}, {second} = ({a.name}, {b.name}) if {c.text} else ({b.name}, {a.name})"]
        names = [first, second]
        if self.chance(0.5):
            lines, names = [f"{first} = {a.name} if {c.text} else {b.name}"], [first]
        for name in names:
            volatile = a.volatile or b.volatile or c.volatile
            steady = a.steady and b.steady and not c.volatile
            shortest, writable = min(a.shortest, b.shortest), a.writable and b.writable
            self.scope.arrays.append(Array(name, a.is_float, volatile, shortest, writable, 1, a.origin, False, steady))
        return lines

    # -- control ---------------------------------------------------------------------------------------------

    def branch(self) -> Lines:
        c = self.condition()
        inner = self.block(self.rng.choice([1, 1, 2]), self.scope.nested(volatile=c.volatile))
        lines = [f"if {c.text}:", *indented(inner)]
        if self.chance(0.25):
            d = self.condition()
            c.volatile |= d.volatile
            scope = self.scope.nested(volatile=c.volatile)
            lines += [f"elif {d.text}:", *indented(self.block(1, scope))]
        if self.chance(0.4):
            lines += ["else:", *indented(self.block(1, self.scope.nested(volatile=c.volatile)))]
        return lines

    def for_loop(self) -> Lines:
        index = self.facts.fresh("f")
        scope = self.scope.nested(in_loop=True)
        head, volatile, lines = self._loop_head(index, scope)
        scope.volatile |= volatile
        leave = None
        if self.chance(0.35):
            leave = self._in(scope, self.condition)
            word = self.rng.choice(["break", "break", "continue"])
            scope.volatile |= leave.volatile
        inner = self.block(self.rng.choice([1, 1, 2]), scope)
        if leave is not None:
            at = self.rng.choice([0, len(inner)])
            if at and any(not line.startswith(" ") for line in inner):
                inner = [*inner, f"if {leave.text}:", f"    {word}"]
            else:
                inner = [f"if {leave.text}:", f"    {word}", *inner]
        lines += [head, *indented(inner)]
        if leave is not None and word == "break" and self.chance(0.3):
            lines += ["else:", *indented(self.block(1, self.scope.nested(volatile=leave.volatile)))]
        if lines[0].startswith(f"{index} = "):  # defined before the loop, so it may be used after it
            self.define(index, False, scope.volatile, assignable=False)
        return lines

    def _in(self, scope: Scope, make):
        outer, self.scope = self.scope, scope
        made = make()
        self.scope = outer
        return made

    def _loop_head(self, index: str, scope: Scope) -> tuple[str, bool, Lines]:
        """`for …:`, whether its length depends on what the loop changes, and lines before it."""
        rng = self.rng
        before = [f"{index} = {rng.randint(0, 1)}"] if self.chance(0.25) else []
        arrays = [a for a in self.scope.arrays if a.dimensions == 1]
        if arrays and self.chance(0.65):
            a = rng.choice(arrays)
            if self.chance(0.2) and not a.growable:
                x = self.facts.fresh("x" if a.is_float else "i")
                number = Num(x, a.volatile, STORED_BITS, STORED_FRACTION if a.is_float else 0)
                (scope.floats if a.is_float else scope.ints).append(number)
                if self.chance(0.5):
                    return f"for {x} in {a.name}:", not a.steady, []
                scope.ints.append(Num(index, not a.steady, 3))
                scope.within.append((index, a.name))
                return f"for {index}, {x} in enumerate({a.name}):", not a.steady, []
            if a.growable:
                return f"for {index} in range(2):", False, before
            scope.ints.append(Num(index, not a.steady, 4))
            scope.within.append((index, a.name))
            span = f"range({len_of(a.name)})" if self.chance(0.8) else f"range({len_of(a.name)} - 1, -1, -1)"
            return f"for {index} in {span}:", not a.steady, before
        n = Num(str(rng.randint(1, 3)))
        if self.chance(0.3):
            i = self.int_(1)
            n = Num(f"({i.text}) % 4", i.volatile)
        scope.ints.append(Num(index, n.volatile, 3))
        span = f"range({n.text})" if self.chance(0.8) else f"range(1, {n.text} + 1)"
        return f"for {index} in {span}:", n.volatile, before

    def while_loop(self) -> Lines:
        """A loop that ends: its counter only rises."""
        counter, scope = self.facts.fresh("n"), self.scope.nested(in_loop=True)
        c = self.condition()
        i = self.int_(1)
        limit, volatile = self.rng.choice([("2", False), ("3", False), (f"({i.text}) % 3", i.volatile)])
        head = f"while {counter} < {limit}:"
        if self.chance(0.4):
            head, volatile = f"while {counter} < {limit} and {c.text}:", volatile or c.volatile
            head = f"while {counter} < 3 and ({c.text}):"
        scope.volatile |= volatile
        scope.ints.append(Num(counter, volatile, 3))
        inner = [f"{counter} += 1", *self.block(1, scope)]
        self.define(counter, False, volatile, assignable=False)
        if self.chance(0.3):  # a flag, asked for at the end of a turn
            flag = self.facts.fresh("b")
            inner.append(f"{flag} = {head.removeprefix('while ').removesuffix(':')}")
            return [f"{counter}, {flag} = 0, True", f"while {flag}:", *indented(inner)]
        return [f"{counter} = 0", head, *indented(inner)]

    # -- sums, relaxed tables, maps --------------------------------------------------------------------------

    def add(self) -> Lines:
        a = self.rng.choice([a for a in self.args if a.kind == "acc"])
        if self.chance(0.2) and len(self.facts.helpers) < 2:
            name = self.facts.fresh("h")
            self.facts.helpers.append(f"def {name}(total, x):\n    if x > 1:\n        total.add(x)")
            return [f"{name}({a.name}, {self.stored(a.is_float, 1).text})"]
        return [f"{a.name}.add({self.stored(a.is_float, 1).text})"]

    def relaxed_add(self) -> Lines:
        a = self.rng.choice([a for a in self.args if a.role == "relaxed"])
        row, value = self.row_of(a).text, self.stored(a.is_float, 1).text
        cell = f"{a.name}[{row}]" if a.kind in ("vec", "map") else f"{a.name}[{row}, {self.column(a)}]"
        if a.kind == "rowmap":
            cell = f"{a.name}[{row}][{self.rng.choice([0, 1, -1])}]"
        return [f"{cell} += {value}"]

    def guarded_key(self) -> Lines:
        """`if key in m: …`, where the key may not be there."""
        maps = [a for a in self.args if a.is_map and a.role == "written"]
        m = self.rng.choice(maps)
        key = self.key(m)
        if key.volatile:
            self.facts.obeys = False
        name = self.facts.fresh("i")
        lines = [f"{name} = {key.text}", f"if {name} in {m.name}:"]
        match m.kind:
            case "map":
                return [*lines, "    " + self.assignment(f"{m.name}[{name}]", m.is_float)]
            case "recmap":
                return [*lines, "    " + self._field_store(f"{m.name}[{name}]")]
        return [*lines, "    " + self.assignment(f"{m.name}[{name}][0]", m.is_float)]

    def call_statement(self) -> Lines:
        """The call of a helper that writes, or that returns several values; see `helpers`."""
        return self.variable()


def len_of(name: str) -> str:
    return f"len({name})"


def _is_plain(line: str) -> bool:
    """Whether a line only adds or sets a constant, so that it makes nothing volatile."""
    return line.split("= ", 1)[1].replace(".", "").replace("-", "").isdigit()
