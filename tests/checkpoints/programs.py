"""Random programs of operators, reads and writes, run straight through or with restarts."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from strads.checkpoints import Operator, Session


class Table:
    """A root: an array and its version."""

    def __init__(self, session: Session | None, size: int):
        self._session, self.version = session, 0
        self.array = np.arange(size, dtype=np.int64)

    def look(self, *, writes: bool = False) -> np.ndarray:
        if self._session is not None:
            self._session.observe(self, writes=writes)
        return self.array

    def fixed_content(self) -> str:
        return str(self.array.tolist())

    def checkpoint_state(self, save: Any) -> Any:
        return save(self.array)

    def restore_state(self, tree: Any, load: Any) -> None:
        self.array = load(tree, self.array)
        self.version += 1


class Counter:
    """A small thing."""

    def __init__(self) -> None:
        self.value = 0

    def small_state(self) -> int:
        return self.value

    def restore_small_state(self, state: int) -> None:
        self.value = state


@dataclass(frozen=True)
class Step:
    """One step: kind, and the numbers that it works with."""

    kind: str
    table: int
    other: int
    number: int


def random_program(seed: int, *, length: int = 25) -> list[Step]:
    rng = random.Random(seed)
    kinds = ["update"] * 6 + ["mix"] * 2 + ["count"] * 2 + ["read", "write", "new", "drop", "fails"]
    return [Step(rng.choice(kinds), rng.randrange(4), rng.randrange(4), rng.randrange(1, 9)) for _ in range(length)]


class Stopped(BaseException):
    """In place of a kill."""


def run(program: list[Step], session: Session | None, stop_at: int | None = None) -> list[Any]:
    """Run a program; returns what its own code has seen."""
    tables = [Table(session, 50 + number) for number in range(4)]
    counter = Counter()
    seen: list[Any] = []

    def perform(name: str, function: Any, roots: list[Table], number: int, values: Any = ()) -> Any:
        if session is None:
            return function()
        return session.perform(Operator(name, function, lambda: number, roots, values))

    for place, step in enumerate(program):
        if place == stop_at:
            raise Stopped
        table, other = tables[step.table], tables[step.other]
        if step.kind == "update":

            def update(table: Table = table, step: Step = step) -> int:
                table.array *= 3
                table.array += step.number
                table.version += 1
                return int(table.array[0] % 1000)

            seen.append(perform("update", update, [table], step.number))
        elif step.kind == "mix":

            def mix(table: Table = table, other: Table = other) -> None:
                table.array += other.array.sum()
                table.version += 1

            perform("mix", mix, [table, other], step.number)
        elif step.kind == "count":

            def count(table: Table = table, step: Step = step) -> None:
                counter.value += step.number
                table.array[counter.value % len(table.array)] += counter.value
                table.version += 1

            perform("count", count, [table], step.number, [counter])
            seen.append(counter.value)
        elif step.kind == "read":
            seen.append(table.look().tolist())
        elif step.kind == "write":
            table.look(writes=True)[step.number] = step.number
            table.version += 1
        elif step.kind == "new":
            tables[step.table] = Table(session, 60 + step.number)
        elif step.kind == "drop":
            tables[step.table] = Table(session, 10)
        else:

            def fail() -> None:
                raise ValueError("as asked for")

            try:
                perform("fail", fail, [table], step.number)
            except ValueError as error:
                seen.append(str(error))
    seen += [table.look().tolist() for table in tables]
    return seen
