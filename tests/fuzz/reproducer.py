"""Writes a failing case as a script that needs nothing but strads."""

from typing import Any

import numpy as np

from .arguments import Arg
from .runner import IN_PASSES, Outcome
from .scenario import Case, Step


def script(case: Case, outcome: Outcome, seed: str) -> str:
    """The script; what plain Python gives is in its docstring."""
    names = [a.name for a in case.args]
    passed = ", ".join(f"strads.{a.role}({a.name})" if a.role in ("relaxed", "readonly") else a.name for a in case.args)
    options = "".join(f", {name}={value!r}" for name, value in case.options.items())
    lines = [
        f'"""{outcome.kind} (call {outcome.call}, seed {seed})',
        "",
        outcome.detail.replace("\\", "\\\\"),
        '"""',
        "",
        "import strads",
        case.source,
        f'strads.init("threads", nodes={case.nodes}, threads={case.threads})',
    ]
    if case.passes:
        lines += [f"strads.schedule.strategies.rotation.{name} = {value}" for name, value in IN_PASSES.items()]
    if case.chunk is not None:
        lines.append(f"strads.loops.program.LoopProgram._chunk = {case.chunk}")
    lines += [f"{name} = {value}" for name, value in case.globals.items() if name in case.source]
    if case.closure is not None:
        lines.append(f"body = make({case.closure})")
    lines += [f"{a.name} = {made(a, case.values[a.name])}" for a in case.args]
    lines += [f"strads.register_aggregation({name}, {how!r})" for name, how in case.aggregations.items()]
    by_name = {a.name: a for a in case.args}
    for step in case.steps:
        lines.append(_line(step, by_name.get(step.name), passed + options))
        if step.what == "call" and case.minibatches:
            lines.append(f"print({', '.join(a.name for a in case.args)}, sep='\\n')")
        elif step.what == "call":
            shown = [a.name for a in case.args if a.role in ("written", "relaxed", "acc") and a.name in names]
            lines.append(f"print(stats.order.tolist(), stats.strategy, {', '.join(shown)}, sep='\\n')")
    return "\n".join(lines) + "\n"


def made(a: Arg, value: Any) -> str:
    """The expression that makes an argument."""
    match a.kind:
        case "acc":
            return f"strads.accumulator({value})"
        case "random":
            return f"strads.random({value})"
        case "int" | "float" | "tuple":
            return str(value)
        case "unsigned":
            return f"np.{value.dtype.name}({value})"
        case "array" | "array2":
            return _array(value)
        case "ragged":
            return f"strads.dvector({[row.tolist() for row in value]}, {a.dtype!r})"
        case "map" | "rowmap" | "recmap":
            return f"strads.dmap({list(value)}, {_array(np.array(list(value.values())))})"
        case "multimap":
            keys = [key for key, values in value.items() for _ in values]
            return f"strads.dmultimap({keys}, {_array(np.concatenate(list(value.values())))})"
    return f"strads.dvector({_array(value)})"


def _array(value: np.ndarray) -> str:
    dtype = value.dtype.descr if value.dtype.names else f"{value.dtype.kind}{value.dtype.itemsize}"
    if value.dtype.names:
        return f"np.array({[_record(row) for row in value]}, {dtype})"
    empty = f".reshape({value.shape})" if value.size == 0 and value.ndim > 1 else ""
    return f"np.array({value.tolist()}, {dtype!r}){empty}"


def _record(row: Any) -> tuple:
    return tuple(row[name].tolist() for name in row.dtype.names)


def _value(value: Any) -> str:
    return _array(value) if isinstance(value, np.ndarray) else str(value)


def _line(step: Step, a: Arg | None, passed: str) -> str:
    match step.what:
        case "call" if passed.startswith("data, "):
            return f"strads.sync_for({passed.replace('data, ', 'data, body, ', 1)})"
        case "call":
            return f"stats = strads.async_for({_value(step.value)}, body, {passed}, record_order=True)"
        case "set" | "key":
            return f"{step.name}[{step.index}] = {_value(step.value)}"
        case "value" if a.kind in ("array", "array2"):
            return f"{step.name}[...] = {_array(step.value)}"
        case "value" | "replace":
            return f"{step.name} = {made(a, step.value)}"  # of sync_for: register its aggregation again
        case "global":
            return f"{step.name} = {step.value}"
        case "closure":
            return f"body = make({step.value})"
        case "distribute":
            return f"{step.name}.distribute(strads.cluster.current().cluster, {step.value})"
    return f"def add_one(k, table):\n    table[k] += 1\nstrads.async_for(len({step.name}), add_one, {step.name})"
