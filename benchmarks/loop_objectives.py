"""Objectives of the loops of `examples/loops`, epoch by epoch: of `async_for`, and of plain loops in several orders.

Plain loops run in the order of the data, in one random order, and in a new random order in each epoch. `async_for` may
run tasks in the order of a plan, always the same; or in that of the data, where no plan is faster. Loops whose order
matters are left out. Usage:

    python benchmarks/loop_objectives.py [--only mf bpr] [--scale 0.25] [--threads 2] [--epochs 4]
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
from loops import LOOPS, Problem, Strads, plain_arguments, plain_loop
from numpy.typing import NDArray

Order = Callable[[NDArray[np.integer]], NDArray[np.integer]]


def orders() -> dict[str, Order]:
    """Return the orders of plain loops, by name."""
    anew = np.random.default_rng(1)
    return {
        "data": lambda indices: indices,
        "one random order": lambda indices: indices[np.random.default_rng(0).permutation(len(indices))],
        "new random orders": lambda indices: indices[anew.permutation(len(indices))],
    }


def plain(module: ModuleType, scale: float, epochs: int, order: Order) -> list[float | None]:
    """Objective after each epoch of the plain loop in an order."""
    problem = Problem(module, scale)
    indices = np.arange(problem.indices) if isinstance(problem.indices, int) else np.asarray(problem.indices)
    arrays = plain_arguments(problem.arguments)
    loop = plain_loop(module, problem.arguments, listed=True, fastmath=True)
    found = []
    for _ in range(epochs):
        problem.draw()
        loop(order(indices), *arrays)
        found.append(problem.objective())
    return found


def main() -> None:
    """Print all objectives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="LOOP")
    parser.add_argument("--scale", type=float, default=0.25)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    sys.path.insert(0, str(LOOPS))
    for name in options.only or sorted(path.stem for path in LOOPS.glob("[!_]*.py")):
        module = importlib.import_module(name)
        if not hasattr(module, "objective") or getattr(module, "ORDER_MATTERS", False):
            continue
        how = module, options.scale, options.epochs
        ours = Strads(module, options.scale, options.threads)
        found = []
        for _ in range(options.epochs):
            ours.run()
            found.append(ours.objective())
        print(f"{name} ({ours.stats.strategy})")
        rows = {"async_for": found} | {label: plain(*how, order) for label, order in orders().items()}
        for label, values in rows.items():
            print(f"    {label:<20}" + "".join(f"{value:>12.5g}" for value in values), flush=True)


if __name__ == "__main__":
    main()
