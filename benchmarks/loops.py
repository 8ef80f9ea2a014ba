"""The loops of `examples/loops` by `async_for` against the same bodies as plain Numba loops on one thread.

The plain side is `numba.njit(fastmath=True)` of the body and of a loop over it, on plain arrays; float literals and
Python floats have the tables' precision on both sides. A loop has a process of its own, in which the sides take turns,
an epoch each; a figure is that of the best epoch after the first. Usage:

    python benchmarks/loops.py [--only mf kaczmarz] [--scale 1.0] [--threads 1 2] [--epochs 3] [--json FILE]

wall, CPU    seconds of the plain loop over those of strads: 2.00 is twice as fast
first call   without compiling, in epochs of the plain loop; the tables' memory has been touched before
peak         most memory after the first call over that of the imports, with what compiling takes: MiB, and × the tables
replay       whether the plain loop gives the same bits in the order that strads says its result is that of, without
             `fastmath`; where the order of the loop matters, in the loop's own order; not if the body draws numbers

Plain Numba loops check for division by zero, which may keep LLVM from vectorizing them; with `--error-model numpy` they
give infinity, as the bodies of `async_for` do.
"""

import argparse
import gc
import importlib
import inspect
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import _loops_plain
import numpy as np
from _memory import resident
from numba import njit, typed
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.untyped_passes import IRProcessing

import strads
from strads.bodies.functions import Rewriting
from strads.bodies.passes.literals import make_literals_weak
from strads.dds import Accumulator, Readonly, Relaxed
from strads.dds.ragged import RaggedArray
from strads.engine.views.python_floats import WeakFloat
from strads.rng.numbers import RandomNumbers

LOOPS = Path(__file__).parent.parent / "examples" / "loops"
SMALL = 0.05  # scale of the replay
SLOW = 0.95
HAS_ORDER = "order" in inspect.signature(strads.async_for).parameters

# -- the plain side ----------------------------------------------------------------------------------------------


class SinglePrecision(CompilerBase):
    """Numba's compiler, float literals made float32 beside such tables as `async_for` does."""

    rewrites = (make_literals_weak,)

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(Rewriting, IRProcessing)
        pipeline.finalize()
        return [pipeline]


def unwrapped(argument: Any) -> Any:
    return argument.table if isinstance(argument, Relaxed | Readonly) else argument


def float_dtype(arguments: tuple[Any, ...]) -> np.dtype[Any]:
    """The widest floating dtype of the tables and their fields."""
    dtypes = [a.dtype for a in map(unwrapped, arguments) if isinstance(a, strads.dvector | strads.dmap)]
    values = [field[0].base for dtype in dtypes for field in (dtype.fields or {"": (dtype,)}).values()]
    found = [dtype for dtype in values if dtype.kind == "f"]
    return np.result_type(*found) if found else np.dtype("f8")


def plain_arguments(arguments: tuple[Any, ...]) -> list[Any]:
    """Arrays that share memory with the tables, except for maps."""
    dtype, plain = float_dtype(arguments), []
    for argument in map(unwrapped, arguments):
        if isinstance(argument, strads.dvector) and isinstance(argument.storage, RaggedArray):
            plain += [argument.storage.values, argument.storage.offsets]
        elif isinstance(argument, strads.dvector):
            plain.append(argument.storage)
        elif isinstance(argument, strads.dmap):
            values = argument.table.to_numpy()
            found = typed.Dict()
            for key, value in zip(argument.keys(), values, strict=True):
                found[np.int64(key)] = value
            plain.append(found)
        elif isinstance(argument, Accumulator):
            plain.append(np.zeros(1, argument.dtype))
        elif isinstance(argument, RandomNumbers):
            plain.append(argument.seed)
        else:
            is_weak = type(argument) is float and dtype == np.float32
            plain.append(WeakFloat(argument) if is_weak else argument)
    return plain


def plain_loop(module: ModuleType, arguments: tuple[Any, ...], *, listed: bool, **options: Any) -> Callable[..., None]:
    """Compile the loop over a range, or over an array of indices where they are `listed`."""
    name = module.__name__
    function = getattr(_loops_plain, name, module.body)
    if float_dtype(arguments) == np.float32:
        options["pipeline_class"] = SinglePrecision
    body = njit(forceinline=True, **options)(function)
    names = ", ".join(list(inspect.signature(function).parameters)[1:])
    turns = "for t in range(len(ks)): body(ks[t]" if listed else "for k in range(ks[0], ks[1], ks[2]): body(k"
    scope = {"body": body}
    # The loop is written out, as a user would write it; the names are those of parameters of our own functions.
    exec(f"def loop(ks, {names}):\n    {turns}, {names})", scope)
    return njit(**options)(scope["loop"])


# -- one loop, in a process of its own ---------------------------------------------------------------------------


class Problem:
    """A loop's tables, and its epochs."""

    def __init__(self, module: ModuleType, scale: float):
        self.module, self.epoch = module, 0
        self.indices, self.arguments = module.make(scale)
        self.tables = [a.table if isinstance(a, strads.dmap) else a for a in map(unwrapped, self.arguments)]
        self.tables = [table for table in self.tables if isinstance(table, strads.dvector)]
        for table in self.tables:
            array = table.storage.values if table.is_ragged else table.storage
            pages = array.reshape(-1).view(np.uint8)[::4096]
            pages += 0  # the system gives memory when it is first written, whichever side does that

    def draw(self) -> None:
        """Make ready for the next epoch."""
        if self.epoch > 0 and hasattr(self.module, "next_epoch"):
            self.module.next_epoch(self.epoch, *self.arguments)
        self.epoch += 1

    def objective(self) -> float | None:
        return self.module.objective(*self.arguments) if hasattr(self.module, "objective") else None

    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables)


class Plain(Problem):
    """The plain loop."""

    def __init__(self, module: ModuleType, scale: float, **options: Any):
        super().__init__(module, scale)
        if isinstance(self.indices, int):
            self.indices = range(self.indices)
        listed = not isinstance(self.indices, range)
        self.plain = plain_arguments(self.arguments)
        self.loop = plain_loop(module, self.arguments, listed=listed, **options)
        self.loop(self.indices[:0] if listed else (0, 0, 1), *self.plain)  # compiles

    def run(self) -> dict[str, float]:
        self.draw()
        ks = self.indices
        if isinstance(ks, range):
            ks = (ks.start, ks.stop, ks.step)
        wall, cpu = time.perf_counter(), time.thread_time()
        self.loop(ks, *self.plain)
        return {"wall": time.perf_counter() - wall, "cpu": time.thread_time() - cpu}


class Strads(Problem):
    """The same by `async_for`."""

    def __init__(self, module: ModuleType, scale: float, threads: int, **options: Any):
        super().__init__(module, scale)
        self.options = options | {"threads": threads}
        if HAS_ORDER and getattr(module, "ORDER_MATTERS", False):
            self.options["order"] = "sequential"

    def run(self) -> dict[str, float]:
        self.draw()
        wall, cpu = time.perf_counter(), time.process_time()
        self.stats = strads.async_for(self.indices, self.module.body, *self.arguments, **self.options)
        found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        preparation = self.stats.reconnaissance_seconds + self.stats.planning_seconds
        return found | {"execution": self.stats.execution_seconds, "preparation": preparation}


def first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def replay(module: ModuleType, scale: float) -> str:
    """Whether the plain loop gives the same bits in the order that strads says it is equivalent to."""
    plain = Problem(module, scale)
    if any(isinstance(a, RandomNumbers) for a in plain.arguments):
        return "draws"
    relaxed = any(isinstance(a, Relaxed) for a in plain.arguments)  # replicas differ while threads run
    ours = Strads(module, scale, 1 if relaxed else 2, fastmath=False, record_order=True)
    arrays = plain_arguments(plain.arguments)
    loop = plain_loop(module, plain.arguments, listed=True, error_model="numpy")
    for _ in range(2):
        ours.run()
        plain.draw()
        in_order = np.arange(plain.indices) if isinstance(plain.indices, int) else np.asarray(plain.indices)
        sequential = HAS_ORDER and getattr(module, "ORDER_MATTERS", False)
        loop(in_order if sequential else ours.stats.order, *arrays)
    wrong = []
    for position, (mine, other) in enumerate(zip(ours.arguments, plain.arguments, strict=True)):
        one, two = unwrapped(mine), unwrapped(other)
        if isinstance(one, strads.dmap):
            found = next(a for a in arrays if isinstance(a, typed.Dict))
            equal = all(found[key] == value for key, value in zip(one.keys(), one.table.to_numpy(), strict=True))
        elif isinstance(one, strads.dvector):
            a, b = one.storage, two.storage
            equal = (a.values.tobytes() if one.is_ragged else a.tobytes()) == (
                b.values.tobytes() if one.is_ragged else b.tobytes()
            )
        else:
            continue
        if not equal:
            wrong.append(list(inspect.signature(module.body).parameters)[position + 1])
    return "OTHER: " + ",".join(wrong) if wrong else "same"


def measure(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the figures of one loop, more each time; what comes next is its "stage"."""
    scale, threads = options.scale, options.threads
    before = resident("VmRSS")
    module = importlib.import_module(name)
    result: dict[str, Any] = {"name": name, "errors": {}, "order_matters": getattr(module, "ORDER_MATTERS", False)}
    sides: dict[str, Plain | Strads] = {}
    times: dict[str, list[dict[str, float]]] = {"plain": []}
    for count in threads:
        side = f"strads{count}"
        yield result | {"stage": f"first call, threads={count}"}
        try:
            sides[side] = Strads(module, scale, count)
            if count == threads[0]:
                result |= {"table_MiB": sides[side].nbytes() / 2**20, "objective_before": sides[side].objective()}
            first = sides[side].run()
        except Exception as error:
            result["errors"][side] = first_line(error)
            sides.pop(side, None)
            continue
        stats = sides[side].stats
        times[side] = []
        result[side] = {
            "compile": stats.compile_seconds,
            "first": first["wall"] - stats.compile_seconds,
            "reconnaissance": stats.reconnaissance_seconds,
            "planning": stats.planning_seconds,
        }
        if count == threads[0]:
            result["peak_MiB"] = (resident("VmHWM") - before) / 2**20
    yield result | {"stage": "epochs"}
    sides["plain"] = Plain(module, scale, fastmath=True, error_model=options.error_model)
    sides["plain"].run()
    gc.collect()
    for _ in range(options.epochs):
        for side in list(sides):
            try:
                times[side].append(sides[side].run())
            except Exception as error:
                result["errors"][side] = first_line(error)
                del sides[side]
    for side, found in times.items():
        if found:
            result.setdefault(side, {})
            result[side] |= {kind: min(turn[kind] for turn in found) for kind in ("wall", "cpu")}
            result[side]["epochs"] = found
    for side, runner in sides.items():
        result[side]["objective"] = runner.objective()
        if isinstance(runner, Strads):  # of the last call: a first one may make no plan
            result[side] |= {"strategy": runner.stats.strategy, "parallelism": runner.stats.parallelism}
    sides.clear()
    gc.collect()
    yield result | {"stage": "replay"}
    try:
        result["replay"] = replay(module, SMALL * min(1.0, scale))
    except Exception as error:
        result["errors"]["replay"] = first_line(error)
    yield result


# -- all loops ---------------------------------------------------------------------------------------------------


def measure_apart(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run `measure` in a new process; one that dies is an error like others."""
    command = [
        sys.executable,
        __file__,
        "--child",
        name,
        "--scale",
        str(options.scale),
        "--epochs",
        str(options.epochs),
    ]
    command += ["--memory", str(options.memory)]
    command += ["--threads", *map(str, options.threads), "--error-model", options.error_model]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = child.communicate(timeout=options.timeout)
        failure = f"exit {child.returncode}: {(err.strip().splitlines() or [''])[-1]}" if child.returncode else ""
    except subprocess.TimeoutExpired:
        child.kill()
        out, _ = child.communicate()
        failure = f"more than {options.timeout:.0f} s"
    found = json.loads((out.strip().splitlines() or ["{}"])[-1])
    result = {"name": name, "errors": {}} | found
    if failure:
        result["errors"][result.get("stage", "start")] = failure
    return result


def row(result: dict[str, Any], threads: list[int]) -> str:
    """One line of the table, and one for each error."""
    plain, cells = result.get("plain", {}), [f"{result['name']:<26}"]
    sides = [result.get(f"strads{count}", {}) for count in threads]
    strategies = list(dict.fromkeys(side.get("strategy", "?") for side in sides if side))
    cells.append(f"{'/'.join(s[:11] for s in strategies):<12}{sides[-1].get('parallelism', 0):>7.1f}")
    cells.append(f"{plain.get('wall', 0):>8.3f}")
    for kind in ("wall", "cpu"):
        for side in sides:
            cells.append(f"{plain[kind] / side[kind]:>6.2f}" if kind in side else f"{'-':>6}")
    for side in sides:
        cells.append(f"{side['first'] / plain['wall']:>6.1f}" if "first" in side and plain else f"{'-':>6}")
    cells.append(f"{sides[0].get('compile', 0):>5.1f}")
    peak, size = result.get("peak_MiB", 0.0), result.get("table_MiB", 1.0)
    cells.append(f"{peak:>6.0f}{peak / max(size, 1):>5.1f}")
    cells.append(
        f" {result.get('replay', '-')}" + (" (order!)" if result.get("order_matters") and not HAS_ORDER else "")
    )
    values = [side.get("objective") for side in (plain, *sides)]
    if values[0] is not None:
        cells.append("  " + " ".join("-" if v is None else f"{v:.6g}" for v in values))
    if any(epoch["preparation"] > 0 for side in sides for epoch in side.get("epochs", [])):
        alone = [min(epoch["execution"] for epoch in side["epochs"]) for side in sides if side.get("epochs")]
        speeds = " ".join(f"{plain['wall'] / seconds:.2f}" for seconds in alone)
        cells.append(f"  (prepared anew in each epoch; the run alone: {speeds})")
    lines = ["".join(cells)]
    lines += [f"    {side}: {error[:200]}" for side, error in result["errors"].items()]
    return "\n".join(lines)


def summary(results: list[dict[str, Any]], threads: list[int]) -> str:
    lines = []
    for kind in ("wall", "cpu"):
        for count in threads:
            speeds = {
                r["name"]: r["plain"][kind] / r[f"strads{count}"][kind]
                for r in results
                if kind in r.get("plain", {}) and kind in r.get(f"strads{count}", {})
            }
            if len(speeds) < 2:
                continue
            quarters = statistics.quantiles(speeds.values(), n=4)
            slow = sorted((name for name in speeds if speeds[name] < SLOW), key=speeds.__getitem__)
            lines.append(
                f"{kind}, {count} thread{'s' * (count > 1)}: quartiles {', '.join(f'{q:.2f}' for q in quarters)}; "
                f"{len(slow)} of {len(speeds)} below {SLOW}: " + ", ".join(f"{n} {speeds[n]:.2f}" for n in slow)
            )
    failed = [r["name"] for r in results if r["errors"]]
    other = [r["name"] for r in results if r.get("replay", "").startswith("OTHER")]
    lines.append(f"errors: {', '.join(failed) or 'none'}; replay not equal: {', '.join(other) or 'none'}")
    return "\n".join(lines)


def main() -> None:
    """Print a line for each loop as it is done, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--epochs", type=int, default=3, help="timed ones, after the first")
    parser.add_argument("--error-model", choices=["python", "numpy"], default="python", help="of the plain loops")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one loop")
    parser.add_argument("--memory", type=float, default=16, help="GiB at most for one loop")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sys.path.insert(0, str(LOOPS))
        limit = int(options.memory * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        for result in measure(options.child, options):
            print(json.dumps(result), flush=True)
        os._exit(0)  # what a process does at its end is not measured
    names = options.only or sorted(path.stem for path in LOOPS.glob("[!_]*.py"))
    each = "".join(f"{f'×{count}':>6}" for count in options.threads)
    above = "".join(f"{title:>{6 * len(options.threads)}}" for title in ("wall", "CPU", "first call"))
    print(f"{'':<38}{'par-':>7}{'plain':>8}{above}{'com-':>5}{'peak':>6}")
    print(f"{'loop':<26}{'strategy':<12}{'allel':>7}{'s':>8}{each * 3}{'pile':>5}{'MiB':>6}{'×':>5} replay  objectives")
    results = []
    for name in names:
        results.append(measure_apart(name, options))
        print(row(results[-1], options.threads), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    print(summary(results, options.threads))


if __name__ == "__main__":
    main()
