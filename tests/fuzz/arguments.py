"""The arguments of a random loop: what kinds there are, random contents for them, and how both sides see them."""

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import strads

from .model import Draws, Map, Ragged, Record, Records, Sum, Table, Unsigned

# Records that bodies write, and those that they only read; `a` and `b` are row numbers of other tables.
STATE = [("n", "i8"), ("x", "F"), ("v", "F", (3,)), ("c", "i4", (2,))]
DATUM = [("a", "i4"), ("b", "i8"), ("x", "F"), ("v", "F", (2,))]

DENSE = ("vec", "mat", "cube", "rec")  # kinds of dvectors from which `rng.near` draws rows
SMALLEST_WIDTH = 2  # of rows: second indices below it are always in range
LARGEST_FACTOR = 5  # of task numbers, by which tables of blocks are long enough


@dataclass(frozen=True)
class Arg:
    """One argument.

    `kind`: vec, mat, cube, rec, ragged (dvectors);
    map, rowmap, recmap, multimap (maps); acc, int, unsigned, float, tuple, array, array2, random;
    offsets (a dvector P of k and k + 1) and items (one that is read from P[k] to P[k + 1]).
    `role`: written, read, relaxed or readonly; of whole numbers also factor (of task numbers) or bound (of columns).
    `size`: "tasks" rows, so that a[k] exists, "blocks" of them for each task, or "small".
    `points`: the table of which it has row numbers or keys; empty if it has values.
    """

    name: str
    kind: str
    dtype: str = ""
    role: str = "read"
    size: str = "small"
    points: str = ""
    points_too: str = ""  # second field of records

    @property
    def is_table(self) -> bool:
        return self.kind not in ("acc", "int", "unsigned", "float", "tuple", "array", "array2", "random")

    @property
    def is_map(self) -> bool:
        return self.kind in ("map", "rowmap", "recmap", "multimap")

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("f")


def fields(arg: Arg) -> list[tuple[Any, ...]]:
    """The dtype of its records, whose floats are those of the other tables."""
    layout = STATE if arg.role == "written" else DATUM
    if arg.role == "written" and arg.points_too:
        layout = [*DATUM[:2], *STATE]  # programs write the others only
    return [(name, arg.dtype if kind == "F" else kind, *shape) for name, kind, *shape in layout]


# -- random contents -----------------------------------------------------------------------------------------


@dataclass
class Sizes:
    """What one scenario chooses before it makes contents."""

    tasks: int  # rows of the tables that are read as a[k]
    rows: dict[str, int]
    width: int
    keys: dict[str, list[int]]
    bad: str = ""  # the argument that gets one row number out of range
    risky: bool = False


def choose_sizes(args: list[Arg], rng: Random, risky: bool) -> Sizes:
    tasks = rng.choice([1, 3, 8, 8, 16, 16, 16, 30, 30, 100])
    few = rng.choice([2, 4, 9, 20]) if tasks < 100 else 60
    have_rows = [a for a in args if a.is_table or a.kind.startswith("array")]
    rows = {a.name: _length(a, tasks, few, rng) for a in have_rows}
    keys = {}
    for a in args:
        if a.is_map:
            step, first = rng.choice([(1, 0), (10, 3), (-7, 5), (100, -1)])
            keys[a.name] = [first + step * row for row in range(rows[a.name])]
    pointers = [a.name for a in args if a.points]
    bad = rng.choice(pointers) if risky and pointers and rng.random() < 0.15 else ""
    return Sizes(tasks, rows, rng.choice([2, 3, 3, 4]), keys, bad, risky)


def _length(a: Arg, tasks: int, few: int, rng: Random) -> int:
    match a.size:
        case "tasks":
            return tasks + (a.kind == "offsets")
        case "blocks":
            return LARGEST_FACTOR * (tasks + LARGEST_FACTOR)
    return rng.randint(1, few)


def contents(arg: Arg, sizes: Sizes, rng: Random) -> Any:
    """Random contents: a NumPy array, a list of arrays (ragged), a dict (maps) or a number."""
    count = sizes.rows.get(arg.name, 0)
    match arg.kind:
        case "int" if arg.role == "factor":
            return rng.randint(-2 if sizes.risky else 0, LARGEST_FACTOR)
        case "int" if arg.role == "bound":
            return rng.randint(0, 5 if sizes.risky else SMALLEST_WIDTH)
        case "int":
            return rng.randint(0, _rows(arg.points, sizes) - 1) if arg.points else rng.randint(0, 5)
        case "unsigned":
            return np.dtype(arg.dtype).type(rng.randint(0, 5))
        case "float":
            return rng.randint(-8, 8) / 4
        case "random":
            return rng.randint(0, 99)
        case "acc":
            return 0.0 if arg.is_float else 0
        case "tuple":
            return tuple(int(v) for v in _pointers(arg, arg.points, sizes, rng, 3))
        case "vec" | "array" | "items":
            return _numbers(arg, sizes, rng, (count,))
        case "offsets":
            return np.array(sorted(rng.randint(0, sizes.rows[arg.points]) for _ in range(count)), arg.dtype)
        case "mat" | "array2":
            return _numbers(arg, sizes, rng, (count, sizes.width))
        case "cube":
            return _numbers(arg, sizes, rng, (count, 2, sizes.width))
        case "rec":
            return _records(arg, sizes, rng, count)
        case "ragged":
            return [_numbers(arg, sizes, rng, (length,)) for length in _lengths(rng, count)]
        case "map":
            return dict(zip(sizes.keys[arg.name], _numbers(arg, sizes, rng, (count,)), strict=True))
        case "rowmap":
            return dict(zip(sizes.keys[arg.name], _numbers(arg, sizes, rng, (count, sizes.width)), strict=True))
        case "recmap":
            return dict(zip(sizes.keys[arg.name], _records(arg, sizes, rng, count), strict=True))
        case "multimap":
            return {key: _numbers(arg, sizes, rng, (rng.choice([1, 2, 3]),)) for key in sizes.keys[arg.name]}
    raise AssertionError(arg.kind)


def _lengths(rng: Random, count: int) -> list[int]:
    """Of ragged rows; seldom all alike, which makes a dense table, for which the body compiles anew."""
    lengths = [rng.choice([0, 1, 2, 2, 3, 5]) for _ in range(count)]
    if count > 1 and len(set(lengths)) == 1 and rng.random() < 0.9:
        lengths[-1] += 1
    return lengths


def _rows(table: str, sizes: Sizes) -> int:
    return sizes.rows.get(table, 1)


def _pointers(arg: Arg, table: str, sizes: Sizes, rng: Random, count: int) -> list[int]:
    rows = [rng.randrange(_rows(table, sizes)) for _ in range(count)]
    if rng.random() < 0.2 and not arg.dtype.startswith("u"):  # from the end
        rows = [row - _rows(table, sizes) if rng.random() < 0.5 else row for row in rows]
    if table in sizes.keys:
        rows = [sizes.keys[table][row] for row in rows]
    if sizes.bad == arg.name and rows:
        beyond = [_rows(table, sizes), 200] if arg.dtype.startswith("u") else [-_rows(table, sizes) - 1, 3000]
        rows[rng.randrange(count)] = rng.choice(beyond)
    return rows


def _numbers(arg: Arg, sizes: Sizes, rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    if arg.points:
        return np.array(_pointers(arg, arg.points, sizes, rng, count), arg.dtype).reshape(shape)
    if arg.is_float:
        return np.array([rng.randint(-16, 31) / 4 for _ in range(count)], arg.dtype).reshape(shape)
    return np.array([rng.randint(0, 20) for _ in range(count)], arg.dtype).reshape(shape)


def _records(arg: Arg, sizes: Sizes, rng: Random, count: int) -> np.ndarray:
    made = np.zeros(count, fields(arg))
    for name in made.dtype.names:
        if name == "a":
            made[name] = _pointers(arg, arg.points, sizes, rng, count)
        elif name == "b":
            made[name] = _pointers(arg, arg.points_too, sizes, rng, count)
        else:
            scale = 4 if made.dtype[name].base.kind == "f" else 1
            numbers = [rng.randint(0, 20) / scale for _ in range(made[name].size)]
            made[name] = np.array(numbers).reshape(made[name].shape)
    return made


# -- both sides ----------------------------------------------------------------------------------------------


def to_strads(arg: Arg, value: Any) -> Any:
    """A new table of strads, without the hint that the loop wraps around it."""
    match arg.kind:
        case "acc":
            return strads.accumulator(value)
        case "random":
            return strads.random(value)
        case "int" | "unsigned" | "float" | "tuple":
            return value
        case "array" | "array2":
            return value.copy()
        case "ragged":
            return strads.dvector(value, arg.dtype)
        case "map" | "rowmap" | "recmap":
            return strads.dmap(list(value), np.array(list(value.values())))
        case "multimap":
            keys = [key for key, values in value.items() for _ in values]
            return strads.dmultimap(keys, np.concatenate(list(value.values())))
    return strads.dvector(value)


def to_model(arg: Arg, value: Any) -> Any:
    """The same for plain Python; it has a copy of the contents."""
    match arg.kind:
        case "acc":
            return Sum(value)
        case "random":
            return Draws(value)
        case "int" | "float" | "tuple":
            return value
        case "unsigned":
            return Unsigned(value)
        case "array" | "array2":
            return value.copy()
        case "ragged":
            return Ragged(arg.name, [row.copy() for row in value])
        case "map":
            return Map(arg.name, dict(value))
        case "rowmap" | "multimap":
            return Map(arg.name, {key: row.copy() for key, row in value.items()})
        case "recmap":
            return Map(arg.name, {key: Record(np.array(row)) for key, row in value.items()})
        case "rec":
            return Records(arg.name, value.copy())
    return Table(arg.name, value.copy())


def hinted(arg: Arg, table: Any) -> Any:
    """What is passed to the loop."""
    return {"relaxed": strads.relaxed, "readonly": strads.readonly}.get(arg.role, lambda v: v)(table)


def plain(value: Any) -> Any:
    """Arrays as lists; records by fields, as their sub-arrays would stay arrays."""
    value = np.asarray(value)
    if value.dtype.names is None:
        return value.tolist()
    return {name: value[name].tolist() for name in value.dtype.names}


def state_of_strads(arg: Arg, table: Any) -> Any:
    """The contents as plain lists and dicts, to be compared."""
    match arg.kind:
        case "acc":
            return table.value
        case "random":
            return table.calls
        case "map" | "rowmap" | "recmap" | "multimap":
            return {int(key): plain(table[int(key)]) for key in table.keys()}  # noqa: SIM118
        case "ragged":
            return [np.asarray(row).tolist() for row in table.to_numpy()]
        case "int" | "unsigned" | "float" | "tuple":
            return table
        case "array" | "array2":
            return table.tolist()
    return plain(table.to_numpy())


def state_of_model(arg: Arg, table: Any) -> Any:
    """The same of the model."""
    match arg.kind:
        case "acc":
            return table.value
        case "random":
            return table.calls
        case "int" | "unsigned" | "float" | "tuple":
            return table
        case "array" | "array2":
            return table.tolist()
        case "recmap":
            return {key: plain(record.row) for key, record in table.data.items()}
        case "map" | "rowmap" | "multimap":
            return {key: np.asarray(value).tolist() for key, value in table.data.items()}
        case "ragged":
            return [row.tolist() for row in table.data]
    return plain(table.data)


def contents_like(array: np.ndarray, rng: Random) -> None:
    """Other random values in place, except for row numbers, which programs never write."""
    if array.dtype.names is not None:
        for name in [name for name in array.dtype.names if name not in ("a", "b")]:
            contents_like(array[name], rng)
        return
    scale = 4 if array.dtype.kind == "f" else 1
    array[...] = np.array([rng.randint(0, 40) / scale for _ in range(array.size)]).reshape(array.shape)
