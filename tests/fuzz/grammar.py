"""A random program: the arguments, globals and helpers of a loop, and its body, as source text."""

import ast
from dataclasses import dataclass, field
from random import Random

from .arguments import SMALLEST_WIDTH, Arg
from .helpers import Helpers
from .scope import Array, Facts, Num, Rec, Scope
from .statements import indented


@dataclass
class Program:
    """One loop body and what it needs."""

    source: str  # defines body(k, …), or make(c) that returns it
    args: list[Arg]
    obeys: bool  # as far as the generator sees: refusing it is a mistake
    risky: bool
    changing: list[str] = field(default_factory=list)  # globals whose value may be changed between calls
    closure: bool = False
    minibatches: bool = False  # for sync_for: the first argument is the data, or a number of rows


class Body(Helpers):
    """Writes the body itself."""

    def write(self) -> str:
        facts, rng = self.facts, self.rng
        lines = []
        for a in facts.args:  # each written table is touched at least once
            if a.role == "written":
                lines += self.block(rng.choice([0, 0, 1]))
                lines += self.store() if self.chance(0.5) else self._touch(a)
        if self.chance(0.15):
            c = self.condition()
            lines += [f"if {c.text}:", "    return"]
            self.scope.volatile |= c.volatile
        lines += self.block(rng.choice([1, 1, 2, 2, 3, 4]))
        names = ", ".join(["k", *(a.name for a in facts.args)])
        return "\n".join([f"def body({names}):", *indented(lines)])

    def _touch(self, a: Arg) -> list[str]:
        others = [b for b in self.facts.args if b.role == "written" and b is not a]
        for b in others:
            self.facts.args.remove(b)
        lines = self.store()
        self.facts.args += others
        return lines


def generate(seed: int) -> Program:
    """The program of a seed."""
    rng = Random(seed)
    if rng.random() < 0.12:
        return _of_minibatches(rng)
    facts = Facts(rng, _arguments(rng), rng.choice(["f4", "f8"]))
    facts.args = [_float_as(a, facts.floating) for a in facts.args]
    facts.risky = rng.random() < 0.3
    facts.obeys = not facts.randoms  # the generator does not know what a draw depends on
    head = ["import numpy as np", ""]
    if rng.random() < 0.25:
        facts.constants.append("G")
        head += [f"G = {rng.randint(1, 3)}"]
        facts.changing.append("G")
    if rng.random() < 0.1:
        facts.constants.append("LARGE")
        head += ["LARGE = np.arange(1500) % 11"]
    if rng.random() < 0.15:
        facts.constants.append("TRIPLE")
        head += ["TRIPLE = (1, 4, 2)"]
    order = list(facts.args)
    scope = Scope(ints=[Num("k", False, 6)])
    if rng.random() < 0.1:
        facts.closure = True
        scope.ints.append(Num("c", False, 4))
    text = Body(facts, scope).write()
    facts.args.sort(key=lambda a: order.index(a))
    text = f"def body({', '.join(['k', *(a.name for a in order)])}):\n" + text.split("\n", 1)[1]
    if facts.closure:
        text = "\n".join(["def make(c):", *indented(text.split("\n")), "    return body"])
    source = ast.unparse(ast.parse("\n".join([*head, *facts.helpers, text]))) + "\n"  # without needless parentheses
    return Program(source, order, facts.obeys, facts.risky, facts.changing, facts.closure)


def _of_minibatches(rng: Random) -> Program:
    """A body of sync_for, which loops over the rows of its minibatch."""
    args: list[Arg] = []
    for name in "WH"[: rng.choice([1, 2])]:
        args.append(Arg(name, rng.choice(["vec", "mat", "mat"]), rng.choice(["f8", "f8", "i8"]), "written"))
    kind = rng.choice(["rec", "mat", "vec", "ragged", "int"])
    target = rng.choice(args).name
    if kind in ("rec", "int"):
        data = Arg("data", kind, "f8", "data", "tasks", *([target, args[0].name] if kind == "rec" else []))
    else:
        data = Arg("data", kind, "i8", "data", "tasks", target)
    if rng.random() < 0.5:
        args.append(Arg("p", rng.choice(["vec", "array", "ragged"]), "i8", "read", "tasks", target))
    if rng.random() < 0.5:
        args.append(Arg("acc", "acc", rng.choice(["f8", "i8"]), "acc"))
    if rng.random() < 0.5:
        args.append(Arg("y", "float"))
    facts = Facts(rng, args, "f8", risky=rng.random() < 0.3, index="n")
    scope, row = Scope(in_loop=True, loops=1), "r"
    scope.ints.append(Num("n", False, 4))
    match kind:
        case "rec":
            scope.records.append(Rec(row, data, False))
        case "mat" | "ragged":
            shortest = SMALLEST_WIDTH if kind == "mat" else 0
            scope.arrays.append(Array(row, False, False, shortest, False, 1, f"->{target}"))
            scope.within.append(("j", row))
        case "vec":
            facts.own_row = (target, row)
        case "int":
            facts.index, row = "k", "k"
            scope.ints.append(Num("k", False, 6))
    body = Body(facts, scope)
    lines = [line for a in list(facts.args) if a.role == "written" for line in body._touch(a)]
    lines += body.block(rng.randint(0, 2))
    if kind in ("mat", "ragged"):
        lines = [f"for j in range(len({row})):", *indented(lines)]
    lines = ["for n in range(len(batch)):", f"    {row} = batch[n]", *indented(lines)]
    if rng.random() < 0.2:
        whole = next(a.name for a in args if a.role == "written")
        lines.append(f"{whole} += 1")  # a table as a whole
    names = ", ".join(["batch", *(a.name for a in args)])
    text = "\n".join(["import numpy as np", *facts.helpers, f"def body({names}):", *indented(lines)])
    source = ast.unparse(ast.parse(text)) + "\n"
    return Program(source, [data, *args], facts.obeys, facts.risky, minibatches=True)


def _float_as(a: Arg, floating: str) -> Arg:
    return Arg(a.name, a.kind, floating if a.dtype == "F" else a.dtype, a.role, a.size, a.points, a.points_too)


def _arguments(rng: Random) -> list[Arg]:
    """One to three tables that are written, tables of their row numbers, and some of everything else."""
    kinds = {"vec": 4, "mat": 5, "cube": 1, "rec": 2.5, "ragged": 1.5}
    kinds |= {"map": 1.5, "rowmap": 1, "recmap": 0.7, "multimap": 0.7}
    args, written = [], []
    for name in "WHV"[: rng.choice([1, 1, 2, 2, 3])]:
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        dtype = "F" if kind in ("rec", "recmap") else rng.choice(["F", "F", "i8", "i4"])
        size = "tasks" if rng.random() < 0.3 and kind not in ("map", "rowmap", "recmap", "multimap") else "small"
        written.append(Arg(name, kind, dtype, "written", size))
    targets = list(written)
    if rng.random() < 0.3:
        kind = rng.choice(["vec", "mat", "map", "rowmap"])
        relaxed = Arg("Z", kind, rng.choice(["F", "i8"]), "relaxed", rng.choice(["small", "tasks"]))
        args.append(relaxed)
        targets.append(relaxed)
    if rng.random() < 0.5:
        kind = rng.choice(["vec", "mat", "ragged", "map", "rowmap", "multimap"])
        read = Arg("A", kind, rng.choice(["F", "i8"]), rng.choice(["read", "read", "readonly"]), "small")
        args.append(read)
        targets.append(read)
    if rng.random() < 0.4:
        args.append(Arg("B", rng.choice(["vec", "mat", "array"]), rng.choice(["F", "i8"]), "read", "tasks"))
    for number, target in enumerate(targets):
        if target.size == "tasks" and not target.is_map and rng.random() < 0.7:
            continue  # by k
        if rng.random() < 0.25 and not target.is_map:
            continue  # by arithmetic
        pointers = {"vec": 5, "mat": 2, "rec": 3, "ragged": 2, "array": 3, "array2": 1, "int": 1, "tuple": 1}
        kind = rng.choices(list(pointers), list(pointers.values()))[0]
        dtype = "F" if kind == "rec" else rng.choice(["i8", "i8", "i4"])
        if target.is_map and kind not in ("rec",):
            dtype = "i8"
        other = rng.choice([t for t in targets if not t.is_map] or [target])
        if kind == "rec" and target.is_map:  # keys need 64 bits, which field b has
            target, other = other, target
        too = other.name if kind == "rec" else ""
        points = "" if kind == "rec" and target.is_map else target.name
        role = "written" if kind == "rec" and rng.random() < 0.5 else "read"
        if kind == "vec" and not target.is_map and rng.random() < 0.2:
            dtype = rng.choice(["u1", "u4"])
        args.append(Arg("pqrtu"[number], kind, dtype, role, rng.choice(["tasks", "tasks", "small"]), points, too))
    if rng.random() < 0.25:
        target = rng.choice([t for t in targets if not t.is_map] or [Arg("", "vec")]).name
        args.append(Arg("J", "items", rng.choice(["i8", "i4"]), "read", "small", target))
        args.append(Arg("P", "offsets", rng.choice(["i8", "i4"]), "read", "tasks", "J"))
    if rng.random() < 0.35:
        args.append(Arg("acc", "acc", rng.choice(["f8", "i8"]), "acc"))
    if rng.random() < 0.2:
        args += _blocks(rng)
    if rng.random() < 0.1:
        args += [Arg(name, "vec", rng.choice(["u1", "u4", "u8"]), "read", "tasks") for name in "lm"]
        args += [Arg("o", "unsigned", rng.choice(["u4", "u8"]))] * (rng.random() < 0.5)
    if rng.random() < 0.2:
        args.append(Arg("M", "int", role="bound"))
    if rng.random() < 0.3:
        args.append(Arg("s", "int"))
    if rng.random() < 0.3:
        args.append(Arg("y", "float"))
    if rng.random() < 0.2:
        args.append(Arg("rng", "random"))
    args += written
    rng.shuffle(args)
    return args


def _blocks(rng: Random) -> list[Arg]:
    """A table with blocks of rows of each task, and the factors by which their places are computed."""
    args = [Arg("F", "vec", rng.choice(["F", "i8", "i4"]), rng.choice(["written", "written", "read"]), "blocks")]
    return args + [Arg(name, "int", role="factor") for name in rng.choice(["S", "S", "ST"])]
