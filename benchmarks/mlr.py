"""Multinomial logistic regression: `MultinomialLogisticRegression` beside scikit-learn, and on every backend.

Ridge: the time to the objective that scikit-learn's lbfgs ends with, plus 0.1 %; beside the time of all of its own fit,
with one BLAS thread or two, whichever is faster, in turn, median of some rounds. The whole of our fit, which goes on to
its own tolerance, is printed, too. ℓ1: the time to a relative duality gap of 1e-6, measured from the coefficients alone
by `_mlr_problems.py`; SAGA's epochs are doubled until it gets there, or its time is up.

    python benchmarks/mlr.py [--problems isolet independent correlated] [--scale 1] [--C 1] [--rounds 3]
    python benchmarks/mlr.py --l1 [--ratios 10 100] [--limit 300]      # λmax / λ
    python benchmarks/mlr.py --backends [--scale 1]                    # threads 1 × 2, MPI 2 × 1, Ray 2 × 1
"""

import argparse
import hashlib
import statistics
import time
import warnings
from typing import Any

THREADS = 2

import numpy as np  # noqa: E402
from _jobs import BASE, VARIANTS, add_job_options, finish, run_variants, started  # noqa: E402
from _mlr_problems import PROBLEMS, Samples, l1_gap, ridge_objective  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

import strads  # noqa: E402
from strads.models import MultinomialLogisticRegression  # noqa: E402

TARGETS = {"mpi 2 x 1": 0.85}


def peer_fit(X: Any, y: Any, threads: int, **options: Any) -> tuple[float, float, Any]:
    from sklearn.linear_model import LogisticRegression

    with threadpool_limits(threads):
        start, cpu = time.perf_counter(), time.process_time()
        model = LogisticRegression(**options).fit(X, y)
        return time.perf_counter() - start, time.process_time() - cpu, model


def own_fit(X: Any, y: Any, goal: float, **options: Any) -> tuple[dict[str, float], Any]:
    """Fit, and note when the objective has come down to `goal`."""
    start, cpu, found = time.perf_counter(), time.process_time(), {}

    def look(record: dict[str, Any]) -> None:
        if not found and record["objective"] <= goal:
            found.update(reached=time.perf_counter() - start, reached_cpu=time.process_time() - cpu)
            found.update(iteration=record["iteration"])

    model = MultinomialLogisticRegression(**options).fit(X, y, on_iteration=look)
    return {**found, "whole": time.perf_counter() - start, "whole_cpu": time.process_time() - cpu}, model


def compare_ridge(name: str, samples: Samples, options: argparse.Namespace) -> None:
    X, y = samples
    sides: dict[int, list[tuple[float, float, Any]]] = {1: [], 2: []}
    ours: list[dict[str, float]] = []
    goal = np.inf
    own_fit(X[: len(X) // 10 + 100], y[: len(X) // 10 + 100], goal, C=options.C, max_iter=2)  # compiles
    for _ in range(options.rounds):
        for threads, runs in sides.items():
            runs.append(peer_fit(X, y, threads, C=options.C, max_iter=1000))
        peer = sides[1][-1][2]
        objective = ridge_objective(X, y, options.C, peer.coef_, peer.intercept_)
        goal = 1.001 * objective
        found, model = own_fit(X, y, goal, C=options.C)
        ours.append(found)
    print(f"\n{name}, {X.shape[0]:,} × {X.shape[1]:,}, {len(peer.classes_)} classes, C = {options.C:g}")
    for threads, runs in sides.items():
        seconds, cpu = (statistics.median(run[place] for run in runs) for place in (0, 1))
        print(f"  scikit-learn, {threads} threads: {seconds:.3f} s ({cpu:.3f} s CPU), {peer.n_iter_[0]} iterations")
    median = {key: statistics.median(run[key] for run in ours) for key in ours[0]}
    print(
        f"  strads to it + 0.1 %: {median['reached']:.3f} s ({median['reached_cpu']:.3f} s CPU), "
        f"{median['iteration']:.0f} iterations; "
        f"the whole fit: {median['whole']:.3f} s ({median['whole_cpu']:.3f} s CPU)"
    )
    own = ridge_objective(X, y, options.C, model.coef_, model.intercept_)
    print(f"  objectives at the end: scikit-learn {objective:.6g}, strads {own:.6g}")
    fastest = min(statistics.median(run[0] for run in runs) for runs in sides.values())
    least = min(statistics.median(run[1] for run in runs) for runs in sides.values())
    print(
        f"  strads / scikit-learn: {median['reached'] / fastest:.2f} (target ≤ 0.7), whole fit "
        f"{median['whole'] / fastest:.2f}; in CPU time {median['reached_cpu'] / least:.2f}, "
        f"{median['whole_cpu'] / least:.2f}",
        flush=True,
    )


def compare_l1(name: str, samples: Samples, ratio: float, options: argparse.Namespace) -> None:
    X, y = samples
    Y = (y[:, None] == np.unique(y)).astype(np.float64)
    C = ratio / np.abs(X.T @ (Y.mean(0) - Y)).max()
    own_fit(X, y, 0.0, penalty="l1", C=C, max_iter=2)  # compiles
    runs = [own_fit(X, y, 0.0, penalty="l1", C=C, tol=1e-6) for _ in range(options.rounds)]
    model = runs[0][1]
    seconds, cpu = (statistics.median(run[0][key] for run in runs) for key in ("whole", "whole_cpu"))
    print(f"\n{name}, ℓ1, λmax / λ = {ratio:g}")
    gap = l1_gap(X, y, C, model.coef_, model.intercept_)
    nonzero = np.count_nonzero(model.coef_)
    print(f"  strads: {seconds:.3f} s ({cpu:.3f} s CPU), gap {gap:.1e}, {nonzero} nonzero", flush=True)
    epochs, took, took_cpu, gap = 100, 0.0, 0.0, np.inf
    while gap > 1e-6 and 2.0 * took <= options.limit:
        took, took_cpu, peer = peer_fit(
            X, y, 1, C=C, l1_ratio=1.0, solver="saga", tol=0.0, max_iter=epochs, random_state=0
        )
        gap = l1_gap(X, y, C, peer.coef_, peer.intercept_)
        print(f"  SAGA, {epochs} epochs: {took:.2f} s ({took_cpu:.2f} s CPU), gap {gap:.1e}", flush=True)
        epochs *= 2
    bound = "" if gap <= 1e-6 else "less than "
    print(f"  strads / SAGA: {bound}{seconds / took:.4f} (target ≤ 0.2); in CPU time {bound}{cpu / took_cpu:.4f}")


def child(options: argparse.Namespace) -> None:
    """Fit in this process (of a job); the driver writes the result."""
    X, y = PROBLEMS[options.problems[0]](options.scale)
    with started(options):
        model = MultinomialLogisticRegression(options.penalty, C=options.C)
        model.fit(X, y)
        found = model.fit(X, y)
    seconds = np.diff([0.0, *(record["seconds"] for record in found.history_)])
    figures = {
        "whole": found.history_[-1]["seconds"],
        "first": seconds[0],
        "iteration": statistics.median(seconds[1:]),
        "digest": hashlib.sha256(found.coef_.tobytes() + found.intercept_.tobytes()).hexdigest(),
    }
    finish(options, figures)


def compare_backends(options: argparse.Namespace) -> None:
    """Fit on every backend in turn; print the ratios to one process with two threads."""
    of_problem = ["--problems", options.problems[0], "--scale", options.scale]
    of_model = ["--C", options.C, "--penalty", options.penalty]
    found = run_variants(__file__, options.only, options.rounds, of_problem + of_model)
    base = statistics.median(run["whole"] for run in found[BASE])
    print(f"\n{options.problems[0]}, scale {options.scale:g}, {options.penalty}: medians of {options.rounds} fits")
    for name, runs in found.items():
        whole, iteration = (statistics.median(run[key] for run in runs) for key in ("whole", "iteration"))
        target = f" (target ≥ {TARGETS[name]})" if name in TARGETS else ""
        same = {run["digest"] for run in runs} == {found[BASE][0]["digest"]}
        print(
            f"  {name:14} {whole:.3f} s, an iteration {iteration:.4f} s; {base / whole:.2f} × {BASE}{target}; "
            f"same model: {same}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the generated samples, in each dimension")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--l1", action="store_true")
    parser.add_argument("--ratios", type=float, nargs="+", default=[10.0, 100.0])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of the last run of SAGA")
    parser.add_argument("--backends", action="store_true")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--penalty", default="l2", choices=["l2", "l1"], help="on the backends")
    add_job_options(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of SAGA's iterations
    if options.variant:
        child(options)
    elif options.backends:
        compare_backends(options)
    else:
        strads.init("threads", threads=THREADS)
        for name in options.problems:
            samples = PROBLEMS[name](options.scale)
            for ratio in options.ratios if options.l1 else [None]:
                compare_ridge(name, samples, options) if ratio is None else compare_l1(name, samples, ratio, options)


if __name__ == "__main__":
    main()
