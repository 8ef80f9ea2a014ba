"""Lasso, ℓ1 logistic regression, LinearSVC: time to a relative duality gap of 1e-6 beside other solvers, on 2 threads.

The gap is measured from the coefficients alone by `_regression_gaps.py`, relative to the objective at 0; no side's own
number counts. A tolerance means something else to each solver, so each variant (a solver with options,
`_regression_peers.py`) tries its own from loose to tight, two a power of ten, up to the first that reaches the gap.
Then the fastest variant of each solver solves again, all in turn, those of milliseconds more often, and medians are
compared. First calls, which may compile, are printed apart. Each variant runs in a process of its own, which is ended
after a time limit; what it has got by then is printed.

strads is there twice: as it is, and with the original's schedule (`priority`; thesis §5.1). A ratio is
λmax / λ, or C of a support vector machine.

    pip install celer==0.7.4 skglm==0.5 adelie==1.1.52
    python benchmarks/regression.py [--problems imdb sentiment sentiment-svm genes …] [--ratios 10 100]
    python benchmarks/regression.py --memory        # peak memory on 463 × 500,000 in single precision
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

THREADS = 2
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = str(THREADS)  # read when libraries are loaded

import numpy as np  # noqa: E402
from _regression_gaps import relative_gap  # noqa: E402
from _regression_peers import Variant, tolerances, variants  # noqa: E402
from _regression_problems import Problem, correlated, genes, imdb, tall  # noqa: E402

GOAL, QUICK_SECONDS, MAX_REPEATS = 1e-6, 0.3, 50
CACHE = Path(tempfile.gettempdir()) / "strads-benchmark-reviews.npz"
PROBLEMS: dict[str, Callable[[], Problem]] = {
    "imdb": partial(imdb, "quadratic", CACHE),
    "sentiment": partial(imdb, "logistic", CACHE),
    "sentiment-svm": partial(imdb, "squared_hinge", CACHE),
    "tall-svm": tall,
    "genes": partial(genes, "quadratic"),
    "gene-labels": partial(genes, "logistic"),
    "correlated": correlated,
}
RATIOS = {"correlated": (10, 50, 100), "sentiment-svm": (0.1, 1, 10), "tall-svm": (0.1, 1, 10)}


@cache
def start_strads() -> None:
    import strads

    strads.init("threads", threads=THREADS)


def strads_solve(problem: Problem, penalty: float, tol: float, *, schedule: str | None = None) -> np.ndarray:
    from strads.models import CoordinateDescent, Lasso, LogisticRegression

    start_strads()
    solver = None if schedule is None else CoordinateDescent(schedule)
    options: dict[str, Any] = {"tol": tol, "fit_intercept": False, "solver": solver, "max_iter": 1_000_000}
    if problem.loss == "quadratic":
        model: Any = Lasso(penalty / len(problem.y), **options)
    else:
        model = LogisticRegression(C=1.0 / penalty, **options)
    return np.ravel(model.fit(problem.X, problem.y).coef_)


def strads_svc(problem: Problem, penalty: float, tol: float) -> np.ndarray:
    from strads.models import LinearSVC

    start_strads()
    model = LinearSVC(C=1.0 / penalty, tol=tol, fit_intercept=False, max_iter=1_000_000)
    return model.fit(problem.X_by_rows, problem.y).coef_.ravel()


def strads_variants(loss: str) -> list[Variant]:
    if loss == "squared_hinge":
        return [Variant("strads", "", strads_svc, tolerances(4, 8))]
    own, original = (partial(strads_solve, schedule=name) for name in (None, "priority"))
    return [
        Variant("strads", "", own, tolerances(5, 9)),
        Variant("strads, priority", "", original, tolerances(2, 8)),
    ]


@dataclass
class Trial:
    """One call with one tolerance."""

    tol: float
    seconds: float
    gap: float
    nonzero: int


@dataclass
class Side:
    """A variant in its process."""

    variant: Variant
    process: BaseProcess
    pipe: Connection
    trials: list[Trial] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def has_reached(self) -> bool:
        return bool(self.trials) and self.trials[-1].gap <= GOAL

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def attempt(variant: Variant, problem: Problem, penalty: float, tol: float) -> Trial:
    start = time.perf_counter()
    coef = variant.solve(problem, penalty, tol)
    seconds = time.perf_counter() - start
    gap = relative_gap(problem, penalty, coef)
    return Trial(tol, seconds, gap, int(np.count_nonzero(coef)))


def attempt_in_turn(variant: Variant, problem: Problem, penalty: float, tol: float) -> Trial:
    """Attempt, three times where it is quick: after the other sides' turns the caches are cold."""
    trial = attempt(variant, problem, penalty, tol)
    if trial.seconds > QUICK_SECONDS:
        return trial
    return min((attempt(variant, problem, penalty, tol) for _ in range(3)), key=lambda trial: trial.seconds)


def serve(pipe: Connection, variant: Variant, problem: Problem, penalty: float) -> None:
    """Look for a tolerance, call again since that call may have compiled; then solve whenever asked to."""
    warnings.simplefilter("ignore")  # of tolerances that were not reached
    try:
        for tol in variant.tolerances:
            trial = attempt(variant, problem, penalty, tol)
            pipe.send(trial)
            if trial.gap <= GOAL:
                pipe.send(attempt_in_turn(variant, problem, penalty, tol))
                break
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
    pipe.send(None)
    while pipe.recv():
        pipe.send(attempt_in_turn(variant, problem, penalty, tol))


def look(variant: Variant, problem: Problem, penalty: float, limit: float) -> Side:
    """Start a variant, and wait until it has found its tolerance, but not longer than the limit."""
    context = multiprocessing.get_context("fork")  # the problem is shared with the processes, not sent
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, variant, problem, penalty), daemon=True)
    process.start()
    theirs.close()
    side = Side(variant, process, ours)
    end = time.monotonic() + limit
    try:
        while ours.poll(max(0.0, end - time.monotonic())):
            news = ours.recv()
            if news is None:
                break
            if isinstance(news, str):
                side.error = news
            else:
                side.trials.append(news)
        else:
            side.error = f"ended after {limit:g} s"
    except EOFError:
        side.error = "its process died"
    if side.error and side.has_reached:
        side.seconds.append(side.trials[-1].seconds)
    if side.error or not side.has_reached:
        side.end()
    return side


def fastest_of_each_solver(sides: Iterable[Side]) -> list[Side]:
    """Keep a side a solver: the fastest of those that have reached the gap, or that with the smallest gap."""
    best: dict[str, Side] = {}
    for side in sorted(sides, key=_rank):
        if best.setdefault(side.variant.solver, side) is not side:
            side.end()
    return list(best.values())


def _rank(side: Side) -> tuple[bool, float]:
    if side.has_reached:
        return False, side.trials[-1].seconds
    return True, side.trials[-1].gap if side.trials else float("inf")


def compare(problem: Problem, ratio: float, options: argparse.Namespace) -> None:
    """Print the table of a problem at one penalty."""
    penalty = problem.largest_penalty / ratio
    print(
        f"\n{problem.name}, {problem.loss}, {problem.X.shape[0]:,} × {problem.X.shape[1]:,}, ratio {ratio:g}",
        flush=True,
    )
    wanted = [
        v
        for v in strads_variants(problem.loss) + variants(problem.loss)
        if not options.sides or v.solver in options.sides
    ]
    relative_gap(problem, penalty, np.zeros(problem.X.shape[1]))  # what it keeps is found once, in nobody's time
    every = []
    for variant in wanted:
        side = look(variant, problem, penalty, options.limit)
        every.append(side)
        if options.verbose:
            print(f"    {variant.solver} [{variant.options}]", _figures(side), flush=True)
    sides = fastest_of_each_solver(every)
    for turn in range(max(options.repeats, MAX_REPEATS)):
        for side in sides:
            wanted_seconds = options.limit / 2 if turn < options.repeats else QUICK_SECONDS
            if side.has_reached and not side.error and sum(side.seconds) < wanted_seconds:
                side.pipe.send(True)
                side.seconds.append(side.pipe.recv().seconds)
    ours = next((side for side in sides if side.variant.solver == "strads"), None)
    for side in sides:
        show(side, ours)
        side.end()
    peers = [side for side in sides if not side.variant.solver.startswith("strads") and side.seconds]
    if ours is not None and ours.seconds and peers:
        fastest = min(peers, key=lambda side: statistics.median(side.seconds))
        value = statistics.median(ours.seconds) / statistics.median(fastest.seconds)
        print(f"  strads / fastest peer ({fastest.variant.solver}): {value:.2f} (target ≤ 0.8)", flush=True)


def show(side: Side, ours: Side | None) -> None:
    name = f"{side.variant.solver} {side.variant.options}".strip()
    if not side.seconds:
        print(f"  {name:44} does not reach it: {_figures(side)}", flush=True)
        return
    median = statistics.median(side.seconds)
    against = f", strads / it {statistics.median(ours.seconds) / median:.2f}" if ours and ours.seconds else ""
    print(f"  {name:44} {median:8.4f} s (best {min(side.seconds):.4f}) {_figures(side)}{against}", flush=True)


def _figures(side: Side) -> str:
    if not side.trials:
        return side.error
    last, first = side.trials[-1], side.trials[0]
    reached = f"tol {last.tol:g}, gap {last.gap:.1e}, {last.nonzero} nonzero"
    return f"{reached}, {last.seconds:.3f} s, first call {first.seconds:.2f} s {side.error}".strip()


def peak_memory() -> None:
    """Print the peak resident memory of strads as a multiple of the size of X, of a process that does nothing else."""
    import strads.models  # noqa: F401 – what the libraries take is not the solver's

    before = _peak()
    problem = correlated(463, 500_000, dtype=np.float32)
    size = problem.X.nbytes
    generated = _peak()
    for ratio in (10, 100):
        penalty = problem.largest_penalty / ratio
        trial = attempt(strads_variants(problem.loss)[0], problem, penalty, GOAL)
        print(
            f"{problem.name}, float32, λmax/{ratio}: {trial.seconds:.2f} s, gap {trial.gap:.1e}; "
            f"X {size / 1e6:.0f} MB, peak {_peak() / size:.2f} × X (target ≤ 3), "
            f"less libraries {(_peak() - before) / size:.2f} ×; "
            f"generating X had {generated / size:.2f} ×",
            flush=True,
        )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--ratios", type=float, nargs="+", help="λmax / λ or C; by default some of each")
    parser.add_argument("--sides", nargs="+", help="solvers; all by default")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for all tolerances of a variant")
    parser.add_argument("--repeats", type=int, default=5, help="at least")
    parser.add_argument("--verbose", action="store_true", help="print every variant, not only each solver's fastest")
    parser.add_argument("--memory", action="store_true", help="measure memory instead")
    options = parser.parse_args()
    if options.memory:
        peak_memory()
        return
    for name in options.problems:
        problem = PROBLEMS[name]()
        for ratio in options.ratios or RATIOS.get(name, (10, 100)):
            compare(problem, ratio, options)


if __name__ == "__main__":
    main()
