"""Random scenarios of a program: contents, where it runs, and several calls with changes in between."""

import inspect
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import strads

from .arguments import Arg, Sizes, choose_sizes, contents
from .grammar import Program

# Nodes, and threads of each. A body runs on nodes or without: its compiled code differs.
LOCAL = [(1, 1), (1, 2), (1, 2)]
PLACES = [LOCAL, LOCAL, [(2, 1), (2, 1), (3, 1)], [(1, 2), (2, 1), (3, 1), (2, 2)]]


@dataclass
class Step:
    """One line of a scenario.

    `what`: call (value: indices), set (a row), value (a scalar, or a NumPy array in place), replace (a table), global,
    closure, key (a new one of a map), distribute (bounds of rows on nodes), between (another loop writes the table).
    """

    what: str
    name: str = ""
    index: Any = None
    value: Any = None


@dataclass
class Case:
    """A program with one scenario: all that a reproducer needs."""

    source: str
    args: list[Arg]
    values: dict[str, Any]
    steps: list[Step]
    nodes: int = 1
    threads: int = 1
    closure: int | None = None  # the number that `make` gets
    globals: dict[str, int] = field(default_factory=dict)
    obeys: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # of async_for, or of sync_for
    minibatches: bool = False
    aggregations: dict[str, str] = field(default_factory=dict)
    chunk: int | None = None  # tasks that a thread records at a time; None: as many as outside of tests
    passes: bool = False  # whether rotations pass several times over their grids, as those of long loops do


def _options(program: Program, rng: Random) -> dict[str, Any]:
    """None, or the one of this body, as each compiles anew. A strategy may be one that cannot serve the loop."""
    if rng.random() < 0.6:
        return {}
    rng = Random(len(program.source) // len(PLACES))
    if rng.random() < 0.5:
        return {}
    made: list[dict[str, Any]] = [{"mode": "python"}, {"fastmath": False}, {"strategy": "locked"}]
    made += [{"strategy": name} for name in ("components", "buckets", "rotation", "independent")]
    if "order" in inspect.signature(strads.async_for).parameters:
        made += [{"order": "sequential"}] * 2
    return rng.choice(made)


def scenario(program: Program, seed: int) -> Case:
    """A scenario of this program."""
    rng = Random(seed)
    places = PLACES[len(program.source) % len(PLACES)]
    if program.minibatches:
        places = [(1, 1), (1, 2), (2, 1)]
    sizes = choose_sizes(program.args, rng, program.risky)
    values = {a.name: contents(a, sizes, rng) for a in program.args}
    nodes, threads = rng.choice(places)
    case = Case(program.source, program.args, values, [], nodes, threads, 2 if program.closure else None)
    case.obeys = program.obeys
    case.chunk = 3 if len(program.source) % 3 else None  # of the body, whose compiled recorder has it
    case.globals = dict.fromkeys(program.changing, 1)
    case.minibatches = program.minibatches
    case.options = {"batch_size": rng.choice([1, 2, 3, 5, 40])} if program.minibatches else _options(program, rng)
    if program.minibatches:
        _prepare_minibatches(case, sizes, rng)
    indices = _indices(sizes, rng, program.risky)
    for number in range(rng.choice([1, 2, 2, 3, 4])):
        if number:
            for _ in range(rng.choice([0, 1, 1, 2])):
                case.steps += _change(program, sizes, nodes, rng)
            if rng.random() < 0.25:
                indices = _indices(sizes, rng, program.risky)
        elif nodes > 1 and rng.random() < 0.3:
            case.steps += _distribution(program, sizes, nodes, rng)
        case.steps.append(Step("call", value=indices))
    case.passes = rng.random() < 0.5
    return case


def _prepare_minibatches(case: Case, sizes: Sizes, rng: Random) -> None:
    if not case.source.endswith(" += 1\n"):  # where a table is used as a whole, no rows can be found
        case.options["recon"] = rng.random() < 0.3
    if rng.random() < 0.2:
        case.options["seed"] = rng.randint(0, 5)
    case.options["workers"] = rng.choice([case.nodes, 2])  # at most two: their average is exact
    for a in case.args:
        if a.role == "written":
            case.aggregations[a.name] = "average" if a.is_float and rng.random() < 0.5 else "sum"
        elif a.name == "data" and a.kind == "int":
            case.values["data"] = sizes.tasks


def _indices(sizes: Sizes, rng: Random, risky: bool) -> Any:
    """A range, a number of tasks, or an array of row numbers."""
    n = sizes.tasks
    if risky and rng.random() < 0.05:
        n += 1
    match rng.choice(["number", "number", "range", "step", "back", "array", "some", "negative", "twice"]):
        case "range":
            return range(rng.randrange(n), n)
        case "step":
            return range(rng.randrange(2), n, rng.choice([2, 3]))
        case "back":
            return range(n - 1, -1, -1)
        case "array":
            return np.array(rng.sample(range(n), n))
        case "some":
            return np.array(rng.sample(range(n), rng.randint(0, n)), np.int32)
        case "negative":
            return range(-n, 0)
        case "twice":
            return np.array([rng.randrange(n) for _ in range(n)])
    return n


def _change(program: Program, sizes: Sizes, nodes: int, rng: Random) -> list[Step]:
    """Something that changes between two calls."""
    args = program.args
    plain = [a for a in args if a.kind in ("vec", "mat", "cube", "map", "rowmap") and sizes.rows[a.name]]
    arrays = [a for a in args if a.kind in ("array", "array2")]
    scalars = [a for a in args if a.kind in ("int", "unsigned", "float", "tuple") and a.role != "data"]
    replaceable = [a for a in args if a.is_table or a in arrays]
    written = [a for a in args if a.role == "written" and a.kind in ("vec", "mat")]
    maps = [a for a in args if a.kind in ("map", "rowmap")]
    options = {
        "set": 4 * bool(plain),
        "array": 3 * bool(arrays),
        "scalar": 2 * bool(scalars) + 3 * any(a.role in ("factor", "bound") for a in scalars),
        "replace": 2,
        "width": 0.5,
        "length": 1,
        "between": 1.5 * bool(written),
        "key": 1.5 * bool(maps),
        "distribute": 3 * (nodes > 1),
        "global": 0.3 * bool(program.changing),
        "closure": 0.3 * program.closure,
    }
    match rng.choices(list(options), list(options.values()))[0]:
        case "set":
            a = rng.choice(plain)
            made = contents(a, sizes, rng)
            index = rng.choice(list(made)) if a.is_map else rng.randrange(len(made))
            return [Step("set", a.name, index, made[index])]
        case "array":
            a = rng.choice(arrays)
            return [Step("value", a.name, None, contents(a, sizes, rng))]
        case "scalar":
            a = rng.choice(scalars)
            return [Step("value", a.name, None, contents(a, sizes, rng))]
        case "replace":
            a = rng.choice(replaceable)
            return [Step("replace", a.name, None, contents(a, sizes, rng))]
        case "width":
            sizes.width = rng.choice([2, 3, 4])
            wide = [a for a in args if a.kind in ("mat", "cube", "rowmap", "array2")]
            return [Step("replace", a.name, None, contents(a, sizes, rng)) for a in wide]
        case "length":
            a = rng.choice(replaceable)
            if a.is_map or a.size != "small":
                return [Step("replace", a.name, None, contents(a, sizes, rng))]
            sizes.rows[a.name] = rng.randint(1, 12)
            pointing = [b for b in args if a.name in (b.points, b.points_too)]
            if program.risky and rng.random() < 0.2:
                pointing = []  # which leaves row numbers out of range
            return [Step("replace", b.name, None, contents(b, sizes, rng)) for b in [a, *pointing]]
        case "between":
            return [Step("between", rng.choice(written).name)]
        case "key":
            a = rng.choice(maps)
            key = max(sizes.keys[a.name]) + rng.choice([1, 5])
            value = contents(a, sizes, rng)[sizes.keys[a.name][0]]
            sizes.keys[a.name].append(key)
            sizes.rows[a.name] += 1
            return [Step("key", a.name, key, value)]
        case "distribute":
            return _distribution(program, sizes, nodes, rng)
        case "global":
            return [Step("global", rng.choice(program.changing), None, rng.randint(1, 3))]
        case "closure":
            return [Step("closure", "", None, rng.randint(1, 3))]
    raise AssertionError


def _distribution(program: Program, sizes: Sizes, nodes: int, rng: Random) -> list[Step]:
    tables = [a for a in program.args if a.is_table and not a.is_map]
    if not tables:
        return []
    a = rng.choice(tables)
    rows = sizes.rows[a.name]
    inner = sorted(rng.randint(0, rows) for _ in range(nodes - 1))
    return [Step("distribute", a.name, None, [0, *inner, rows])]
