"""Coordinate descent: its speed, and held-out RMSE over time against cmfrec's alternating least squares (Cortes 2018).

A rating-update is one rating visited in one epoch, which moves all factors once; updates by factor are `rank` times as
many. cmfrec solves each row's factors together, by Cholesky decomposition or conjugate gradients, with other rows
fixed; it minimizes the same objective, λ counted once a rating, without biases, in single precision. Both sides get the
ratings in memory and their time includes bringing them into order; compiling is left out and reported apart. cmfrec
reports nothing between iterations, so its curve is made of fits with more and more of them.

    pip install cmfrec
    python benchmarks/mf_ccd.py [--ratings 10000000] [--rank 20] [--without-peer]
"""

import argparse
import statistics
import time

import numpy as np
import scipy.sparse
from _ratings import ITEMS, USERS, generate_ratings

from strads.models import MatrixFactorization

REGULARIZATION, HELD_OUT, EPOCHS = 0.02, 0.01, 8
ITERATIONS = (1, 2, 3, 4, 5, 6)  # of cmfrec
LEVELS = (1.1, 1.03, 1.01)  # times the lower of the two final RMSEs
Curve = list[tuple[float, float]]  # seconds, held-out RMSE


def pairs(ratings: np.ndarray) -> np.ndarray:
    return np.stack([ratings["user"], ratings["item"]], 1)


def run_strads(train: np.ndarray, test: np.ndarray, rank: int, *, biases: bool, threads: int) -> tuple[Curve, float]:
    """Return the curve, and the median seconds of an epoch but the first."""
    model = MatrixFactorization(
        rank,
        solver="ccd",
        max_iter=EPOCHS,
        regularization=REGULARIZATION,
        biases=biases,
        remember_ratings=False,
        n_jobs=threads,
    )
    model.fit((train["user"], train["item"]), train["score"], validation=(pairs(test), test["score"]))
    times = [record["seconds"] for record in model.history_]
    return [(r["seconds"], r["validation_rmse"]) for r in model.history_], statistics.median(np.diff(times))


def run_cmfrec(train: np.ndarray, test: np.ndarray, rank: int, *, cg: bool, threads: int) -> Curve:
    from cmfrec import CMF

    matrix = scipy.sparse.coo_matrix((train["score"], (train["user"], train["item"])), shape=(USERS, ITEMS))
    curve = []
    for iterations in ITERATIONS:
        model = CMF(
            k=rank,
            lambda_=REGULARIZATION,
            scale_lam=True,
            niter=iterations,
            use_cg=cg,
            finalize_chol=False,
            user_bias=False,
            item_bias=False,
            center=False,
            use_float=True,
            precompute_for_predictions=False,
            nthreads=threads,
            verbose=False,
        )
        start = time.perf_counter()
        model.fit(matrix)
        seconds = time.perf_counter() - start
        predicted = np.einsum("nf,nf->n", model.A_[test["user"]], model.B_[test["item"]])
        curve.append((seconds, float(np.sqrt(np.mean((predicted - test["score"]) ** 2)))))
    return curve


def reached(curve: Curve, level: float) -> float:
    return next((seconds for seconds, rmse in curve if rmse <= level), float("inf"))


def show(label: str, curve: Curve) -> None:
    print(f"  {label:22}", "  ".join(f"{seconds:5.2f} s {rmse:.4f}" for seconds, rmse in curve), flush=True)


def speed(train: np.ndarray, test: np.ndarray, rank: int, threads: int, repeats: int) -> None:
    for biases in (False, True):
        medians = []
        for repeat in range(repeats + 1):
            start = time.perf_counter()
            _, epoch = run_strads(train, test, rank, biases=biases, threads=threads)
            if repeat == 0:
                first = time.perf_counter() - start
            else:
                medians.append(epoch)
        best, middle = min(medians), statistics.median(medians)
        rate = len(train) / middle / 1e6
        print(
            f"  {'with' if biases else 'without'} biases: {rate:5.1f} M rating-updates/s (target ≥ 20), best fit "
            f"{len(train) / best / 1e6:.1f}; {rate * rank:.0f} M by factor; epoch {middle:.3f} s; "
            f"first fit {first:.1f} s",
            flush=True,
        )


def compare(train: np.ndarray, test: np.ndarray, rank: int, threads: int, repeats: int) -> None:
    ratios: dict[tuple[str, float], list[float]] = {}
    for repeat in range(repeats):
        ours, _ = run_strads(train, test, rank, biases=False, threads=threads)
        peers = {
            "cmfrec, Cholesky": run_cmfrec(train, test, rank, cg=False, threads=threads),
            "cmfrec, CG": run_cmfrec(train, test, rank, cg=True, threads=threads),
        }
        if repeat == 0:
            show("strads, ccd", ours)
        for name, curve in peers.items():
            if repeat == 0:
                show(name, curve)
            final = min(ours[-1][1], curve[-1][1])
            for level in LEVELS:
                ratio = reached(ours, final * level) / reached(curve, final * level)
                ratios.setdefault((name, level), []).append(ratio)
    for (name, level), values in ratios.items():
        print(
            f"  time to {level:.2f} × the lower final RMSE: strads / {name} {statistics.median(values):.2f}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--rank", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without-peer", action="store_true")
    options = parser.parse_args()
    data = generate_ratings(options.ratings)
    held = np.random.default_rng(1).random(len(data)) < HELD_OUT
    train, test = data[~held].copy(), data[held]
    common = options.rank, options.threads, options.repeats
    print(f"rank {options.rank}, {len(train):,} ratings, {options.threads} threads")
    speed(train, test, *common)
    if not options.without_peer:
        compare(train, test, *common)


if __name__ == "__main__":
    main()
