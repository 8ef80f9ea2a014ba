"""Runs a case on both sides, strads and plain Python, and compares them after every call."""

import copy
import importlib.util
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

import strads
from strads.loops.program import LoopProgram
from strads.loops.recorder import CHUNK
from strads.schedule.strategies import rotation

from .arguments import Arg, contents_like, hinted, state_of_model, state_of_strads, to_model, to_strads
from .model import Draws, Map, Record
from .scenario import Case, Step

EQUAL, EXPECTED, REFUSED, NOT_COMPILED = "equal", "error expected", "refused by the rule", "not compiled"
UNDECIDED = "refused, maybe by the rule"
WRONG, MISSED = "wrong numbers", "error missed"
CHANGED, FOREIGN = "tables changed after an error", "exception that is no StradsError"
REFUSED_THOUGH_DOCUMENTED, BAD_ORDER = "refused though documented", "order is no permutation"
FAILURES = (WRONG, MISSED, CHANGED, FOREIGN, REFUSED_THOUGH_DOCUMENTED, BAD_ORDER)
GRAMMAR = "plain Python fails: a mistake of the fuzzer"
INDEX_ERRORS = (IndexError, KeyError, ValueError)

IN_PASSES = {
    "VISITS": 0,
    "MIN_TASKS": 0.001,
    "MIN_BYTES": 0,
    "STRETCH_BITS": 0,
    "STRETCH_BITS_BESIDE_PRIVATE": 0,
}  # short loops, too
_OF_LONG_LOOPS = {name: getattr(rotation, name) for name in IN_PASSES}
_numbers = count()
_modules: dict[str, ModuleType] = {}
_folder = tempfile.TemporaryDirectory(prefix="strads-fuzz-")


@dataclass
class Outcome:
    """What came of one call, or why the case stopped."""

    kind: str
    detail: str = ""
    call: int = 0

    @property
    def failed(self) -> bool:
        return self.kind in FAILURES or self.kind == GRAMMAR


def module_of(source: str) -> ModuleType:
    """The module of this source text, from a file as users have it; made once, so that strads compiles it once."""
    if source not in _modules:
        if len(_modules) > 50:
            _modules.clear()
        path = Path(_folder.name) / f"fuzzed_{next(_numbers)}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        _modules[source] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return _modules[source]


def add_one(k: int, table: Any) -> None:
    """The other loop, which writes a table between two calls."""
    table[k] += 1


class Side:
    """One side: its tables by name, and the body."""

    def __init__(self, case: Case, module: ModuleType):
        self.case, self.module = case, module
        self.by_name = {a.name: a for a in case.args}
        self.closure(case.closure)
        for name, value in case.globals.items():
            setattr(module, name, value)

    def closure(self, value: int | None) -> None:
        self.body: Callable[..., None] = self.module.body if value is None else self.module.make(value)


class Parallel(Side):
    """strads."""

    def __init__(self, case: Case, module: ModuleType):
        super().__init__(case, module)
        self.tables = {a.name: to_strads(a, case.values[a.name]) for a in case.args}

    def state(self) -> dict[str, Any]:
        return {name: state_of_strads(self.by_name[name], table) for name, table in self.tables.items()}

    def call(self, indices: Any) -> Any:
        arguments = [hinted(a, self.tables[a.name]) for a in self.case.args]
        return strads.async_for(indices, self.body, *arguments, record_order=True, **self.case.options)

    def change(self, step: Step) -> None:
        a = self.by_name.get(step.name)
        match step.what:
            case "set" | "key":
                self.tables[step.name][step.index] = step.value
            case "value" if a.kind in ("array", "array2") and self.tables[a.name].shape == step.value.shape:
                self.tables[a.name][...] = step.value  # in place: no table that knows of changes
            case "value" | "replace":
                self.tables[step.name] = to_strads(a, step.value)
            case "global":
                setattr(self.module, step.name, step.value)
            case "closure":
                self.closure(step.value)
            case "distribute":
                self.tables[step.name].distribute(strads.cluster.current().cluster, step.value)
            case "between":
                strads.async_for(len(self.tables[step.name]), add_one, self.tables[step.name])


class Plain(Side):
    """The interpreter; its module is shared with the other side, so globals and closures are set there."""

    def __init__(self, case: Case, module: ModuleType):
        super().__init__(case, module)
        self.tables = {a.name: to_model(a, case.values[a.name]) for a in case.args}

    def state(self) -> dict[str, Any]:
        return {name: state_of_model(self.by_name[name], table) for name, table in self.tables.items()}

    def run(self, order: Any, tables: dict[str, Any] | None = None, plan: Any = None) -> None:
        tables = self.tables if tables is None else tables
        pools = {} if plan is None else plan.details.near
        jobs = [] if plan is None else np.repeat(np.arange(plan.jobs), np.diff(plan.offsets))
        arguments = [tables[a.name] for a in self.case.args]
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error", RuntimeWarning)
            for place, k in enumerate(order):
                for name, drawn in pools.items():
                    own = slice(drawn.low[jobs[place]], drawn.high[jobs[place]])
                    tables[name].near_pool = drawn.rows[own], drawn.share[own], drawn.other[own]
                for position, argument in enumerate(arguments):
                    if isinstance(argument, Draws):
                        argument.begin(position, int(k))
                self.body(int(k), *arguments)
        for name in pools:
            tables[name].near_pool = None

    def count_call(self) -> None:
        for table in self.tables.values():
            if isinstance(table, Draws):
                table.calls += 1

    def change(self, step: Step) -> None:
        a = self.by_name.get(step.name)
        match step.what:
            case "set" | "key":
                table = self.tables[step.name]
                if isinstance(table, Map):
                    table.data[step.index] = copy.deepcopy(step.value)
                else:
                    table[step.index] = step.value
            case "value" | "replace":
                self.tables[step.name] = to_model(a, step.value)
            case "closure":
                self.closure(step.value)
            case "between":
                for k in range(len(self.tables[step.name])):
                    add_one(k, self.tables[step.name])


def run(case: Case) -> list[Outcome]:
    """The outcomes of all calls; the last one failed, or none did."""
    strads.init("threads", nodes=case.nodes, threads=case.threads)
    LoopProgram._chunk = case.chunk or CHUNK
    for name, value in (IN_PASSES if case.passes else _OF_LONG_LOOPS).items():
        setattr(rotation, name, value)
    module = module_of(case.source)
    if case.minibatches:
        from .minibatches import ParallelMinibatches, PlainMinibatches

        parallel, plain = ParallelMinibatches(case, module), PlainMinibatches(case, module)
    else:
        parallel, plain = Parallel(case, module), Plain(case, module)
    outcomes: list[Outcome] = []
    for step in case.steps:
        if step.what != "call":
            parallel.change(step)
            plain.change(step)
            continue
        outcome = _one_call(parallel, plain, step.value)
        outcome.call = len(outcomes)
        outcomes.append(outcome)
        if outcome.failed or outcome.kind == NOT_COMPILED:
            break
    return outcomes


def _one_call(parallel: Parallel, plain: Plain, indices: Any) -> Outcome:
    wanted = list(range(indices)) if isinstance(indices, int) else [int(k) for k in indices]
    before = copy.deepcopy(plain.tables)
    try:
        stats = parallel.call(indices)
    except strads.StradsError as error:
        return _refused(parallel, plain, wanted, error)
    except Exception as error:
        return Outcome(FOREIGN, f"{type(error).__name__}: {error}")
    if sorted(stats.order.tolist()) != sorted(wanted):
        return Outcome(BAD_ORDER, str(stats.order.tolist()))
    try:
        plain.run(wanted if plain.case.options.get("order") == "sequential" else stats.order, plan=stats.plan)
    except INDEX_ERRORS as error:
        plain.tables = before
        return Outcome(MISSED, f"plain Python: {type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(GRAMMAR, f"{type(error).__name__}: {error}")
    plain.count_call()
    difference = compare(parallel.state(), plain.state())
    if difference:
        return Outcome(WRONG, f"{difference} ({stats.strategy}, order {stats.order.tolist()})")
    return Outcome(EQUAL)


def _refused(parallel: Parallel, plain: Plain, wanted: list[int], error: strads.StradsError) -> Outcome:
    text = f"{type(error).__name__}: {str(error).strip()}"
    difference = compare(parallel.state(), plain.state())
    if difference:
        return Outcome(CHANGED, f"{difference} ({text})")
    rng = Random(0)
    for order in [wanted, wanted[::-1], *(rng.sample(wanted, len(wanted)) for _ in range(3))]:
        try:
            plain.run(order, copy.deepcopy(plain.tables))
        except INDEX_ERRORS:
            return Outcome(EXPECTED, text)
        except Exception as other:
            return Outcome(GRAMMAR, f"{type(other).__name__}: {other}")
    if isinstance(error, strads.CompileError):
        return Outcome(NOT_COMPILED, text)
    if isinstance(error, strads.PlanError) and "strategy" in plain.case.options:
        return Outcome(REFUSED, text)
    if isinstance(error, strads.ArgumentError):  # all that we pass is right, but `recon=True` refuses volatile rows
        return Outcome(UNDECIDED if plain.case.options.get("recon") else REFUSED_THOUGH_DOCUMENTED, text)
    if breaks_the_rule(plain, wanted):
        return Outcome(REFUSED, text)
    return Outcome(REFUSED_THOUGH_DOCUMENTED if plain.case.obeys else UNDECIDED, text)


def breaks_the_rule(plain: Plain, wanted: list[int], tries: int = 8) -> bool:
    """Whether other values of the written tables let a task touch other rows, or leave an array."""
    rng = Random(1)
    touched: dict[int, set[tuple[str, int]]] = {}
    for number in range(tries):
        tables = copy.deepcopy(plain.tables)
        seen: set[tuple[str, int]] = set()
        for a in plain.case.args:
            if a.is_table and a.role != "relaxed":
                tables[a.name].seen = seen
            if number and a.role == "written":
                _scramble(a, tables[a.name], rng)
        for k in sorted(set(wanted)):
            seen.clear()
            try:
                plain.run([k], tables if number else copy.copy(tables))
            except INDEX_ERRORS:
                return True
            if touched.setdefault(k, set(seen)) != seen:
                return True
    return False


def _scramble(a: Arg, table: Any, rng: Random) -> None:
    parts = table.data if isinstance(table.data, (list, dict)) else [table.data]
    if isinstance(parts, dict):
        for key, old in parts.items():
            if isinstance(old, Record):
                contents_like(old.row, rng)
            elif isinstance(old, np.ndarray):
                contents_like(old, rng)
            else:
                parts[key] = type(old)(rng.randint(0, 40))
        return
    for part in parts:
        contents_like(part, rng)


def compare(got: dict[str, Any], expected: dict[str, Any]) -> str:
    """The first table that differs, in words; empty if none does."""
    for name, value in expected.items():
        if got[name] != value:
            return f"{name} is {got[name]}, not {value}"
    return ""
