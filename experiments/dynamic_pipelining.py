"""Pipelining in the Dynamic Engine (thesis fig. 5.6, EuroSys fig. 12): throughput against progress per sample.

Lasso on block-correlated columns, rows over 4 logical nodes behind an imitated network. A deeper pipeline hides
latency, but updates see older residuals. A plan has one subplan for each that is in flight, all of the same size, so
every depth exchanges equally large messages. Then, at depth 3, progress per sample, which does not depend on time: with
and without priority reordering (fig. 5.3), and with whole plans in flight, which no check of dependencies covers.

Usage:
    python experiments/dynamic_pipelining.py [--latency 3] [--concurrency 64] [--depths 1 2 3 4] [--target 1.001]
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from _distributed_lasso import Change, DistributedLasso, Problem, block_correlated, subtract

import strads
from strads import schmp

_CHECK = 10  # subplans between two looks at the objective


@dataclass
class Curve:
    """Objective as it was after so many updates and seconds."""

    problem: Problem
    updates: int = 0
    seconds: float = 0.0
    best: float = np.inf
    reached: bool = False

    def __post_init__(self) -> None:
        self._residual, self._coef = self.problem.y.copy(), np.zeros(self.problem.X.shape[1])
        self._subplans = 0

    def follow(self, history: list[Change], begin: float, target: float) -> bool:
        """Go through what a run has changed, up to the target; returns whether it is reached."""
        before = self.seconds
        for moment, parameters, changes in history:
            subtract(self.problem.X, self._residual, parameters, changes)
            self._coef[parameters] += changes
            self.updates += len(parameters)
            self._subplans += 1
            self.seconds = before + moment - begin
            if self._subplans % _CHECK == 0:
                self.best = min(self.best, self.problem.objective(self._residual, self._coef) / self.problem.optimum)
                if self.best <= target:
                    return True
        return False


def measure(
    problem: Problem,
    options: argparse.Namespace,
    depth: int,
    subplans: int,
    reorder: bool = True,
    seed: int = 0,
    instances: int = 4,
) -> Curve:
    """Run until the objective is `target` times the optimum, or until `seconds` are over."""
    samples, nodes = len(problem.y), options.nodes
    rows = [slice(node * samples // nodes, (node + 1) * samples // nodes) for node in range(nodes)]
    data = [(np.asfortranarray(problem.X[part]), problem.y[part].copy()) for part in rows]
    program = DistributedLasso(problem, nodes, options.concurrency * subplans, seed)
    curve = Curve(problem)
    scheduling = {"instances": instances, "pipeline_depth": depth, "subplans": subplans, "reorder": reorder}
    with schmp.DynamicEngine(program, data, **scheduling) as engine:
        reached = False
        while not reached and curve.seconds < options.seconds:
            begin = time.perf_counter()
            engine.run(max(1, 300 // subplans))
            history = engine.program.history
            reached = curve.follow(history, begin, options.target)
            history.clear()
    curve.reached = reached
    return curve


def show_depths(problem: Problem, options: argparse.Namespace) -> None:
    """Print throughput and progress behind the network, and name the best depth."""
    print(f"{'':24}{'subplans/s':>12}{'M samples/s':>14}{'M samples':>14}{'seconds':>12}")
    seconds = {}
    with strads.init("threads", nodes=options.nodes, threads=1, latency=options.latency / 1e3):
        for depth in options.depths:
            curve = measure(problem, options, depth, depth)
            samples, rate = curve.updates * len(problem.y) / 1e6, curve.updates / curve.seconds
            end = "" if curve.reached else f"   not reached: {curve.best:.4f}"
            print(
                f"depth {depth:<18}{rate / options.concurrency:12.0f}{samples / curve.seconds:14.1f}{samples:14.1f}"
                f"{curve.seconds:12.2f}{end}",
                flush=True,
            )
            if curve.reached:
                seconds[depth] = curve.seconds
    if seconds:
        best = min(seconds, key=lambda depth: seconds[depth])
        print(f"quickest: depth {best}")


def show_orders(problem: Problem, options: argparse.Namespace) -> None:
    """Print progress per sample, at depth 3 where nothing else is said, of several seeds."""
    print(f"\n{'M samples':26}" + "".join(f"{f'seed {seed}':>10}" for seed in range(options.seeds)))
    ways = (
        ("depth 1, split in three", 1, 3, True, 4),
        ("reordered", 3, 3, True, 4),
        ("not reordered", 3, 3, False, 4),
        ("whole plans", 3, 1, True, 4),
        ("reordered, one instance", 3, 3, True, 1),
        ("whole plans, one instance", 3, 1, True, 1),
    )
    with strads.init("threads", nodes=options.nodes, threads=1):
        for name, depth, subplans, reorder, instances in ways:
            each_seed = range(options.seeds)
            curves = [measure(problem, options, depth, subplans, reorder, seed, instances) for seed in each_seed]
            shown = [f"{c.updates * len(problem.y) / 1e6:.1f}" if c.reached else f"({c.best:.3f})" for c in curves]
            print(f"{name:26}" + "".join(f"{each:>10}" for each in shown), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--latency", type=float, default=3.0, help="of a message, in ms")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--features", type=int, default=12_000)
    parser.add_argument("--ratio", type=float, default=0.1, help="λ / λmax")
    parser.add_argument("--concurrency", type=int, default=64, help="parameters of a subplan")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--target", type=float, default=1.001, help="objective, in optima")
    parser.add_argument("--seconds", type=float, default=20.0, help="most for each run")
    options = parser.parse_args()
    problem = block_correlated(options.samples, options.features, options.ratio)
    print(
        f"{options.samples} × {options.features} block-correlated, λmax × {options.ratio:g}, {options.nodes} nodes, "
        f"{options.latency:g} ms a message, {options.concurrency} parameters a subplan, "
        f"to {options.target:g} × optimum\n"
    )
    with strads.init("threads", nodes=options.nodes, threads=1):
        measure(problem, argparse.Namespace(**vars(options) | {"seconds": 0.1}), 2, 2)  # compiles
    show_depths(problem, options)
    show_orders(problem, options)


if __name__ == "__main__":
    main()
