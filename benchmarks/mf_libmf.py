"""Time to LIBMF's accuracy: `MatrixFactorization` against LIBMF (Chin et al. 2015), both on 2 threads.

LIBMF runs 10 iterations; its time is that of the iterations alone, without reading and gridding the ratings. The time
of strads is that of whole epochs until its held-out RMSE is as low, with reconnaissance and planning, without compiling
(printed apart). Both start from the same ratings in memory. Usage, with LIBMF built for this machine:

    CFLAGS="-O3 -march=native -DUSEAVX -DUSEOMP -fopenmp" LDFLAGS=-fopenmp \\
        pip install --no-build-isolation --no-binary libmf libmf==0.9.2      # needs setuptools
    python benchmarks/mf_libmf.py [--ratings 10000000] [--ranks 40 128]
"""

import argparse
import ctypes
import statistics
import time

import numpy as np
from _ratings import generate_ratings

from strads.models import MatrixFactorization

THREADS, ITERATIONS, HELD_OUT = 2, 10, 0.01
LIBMF_RATE, STRADS_RATE, REGULARIZATION = 0.1, 0.2, 0.05
EPOCHS = 6  # over which the step of strads falls to 0


class Libmf:
    """LIBMF by its C interface, so that no conversion is timed."""

    def __init__(self, train: np.ndarray):
        from libmf import mf

        self.library = mf
        triples = np.stack([train["user"], train["item"], train["score"]], 1)
        self.triples = np.ascontiguousarray(triples, np.float32)

    def fit(self, rank: int, iterations: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return seconds and both factor matrices."""
        model = self.library.MF(
            fun=0,
            k=rank,
            nr_threads=THREADS,
            nr_bins=20,
            nr_iters=iterations,
            lambda_p1=0.0,
            lambda_q1=0.0,
            lambda_p2=REGULARIZATION,
            lambda_q2=REGULARIZATION,
            eta=LIBMF_RATE,
            quiet=True,
        )
        function = self.library.mf.fit_interface
        function.restype = ctypes.POINTER(self.library.MFModel)
        floats = ctypes.POINTER(ctypes.c_float)
        function.argtypes = (ctypes.c_int, floats, self.library.options_ptr)
        pointer = self.triples.ctypes.data_as(floats)
        start = time.perf_counter()
        result = function(len(self.triples), pointer, model._options)
        seconds = time.perf_counter() - start
        model.model = result.contents
        return seconds, model.p_factors(), model.q_factors()


def rmse(test: np.ndarray, P: np.ndarray, Q: np.ndarray) -> float:
    known = (test["user"] < len(P)) & (test["item"] < len(Q))
    test = test[known]
    predicted = np.einsum("nf,nf->n", P[test["user"]], Q[test["item"]])
    usable = np.isfinite(predicted)  # LIBMF marks ids without ratings by NaN
    return float(np.sqrt(np.mean((test["score"][usable] - predicted[usable]) ** 2)))


def strads_run(train: np.ndarray, test: np.ndarray, rank: int, goal: float) -> tuple[float, list[dict[str, float]]]:
    """Return the seconds until the goal, and the history."""
    model = MatrixFactorization(
        rank,
        max_iter=EPOCHS,
        learning_rate=STRADS_RATE,
        regularization=REGULARIZATION,
        biases=False,
        remember_ratings=False,
        n_jobs=THREADS,
    )
    validation = np.stack([test["user"], test["item"]], 1), test["score"]
    model.fit(
        (train["user"], train["item"]),
        train["score"],
        validation=validation,
        on_epoch=lambda record: record["validation_rmse"] <= goal,
    )
    return model.history_[-1]["seconds"], model.history_


def compare(train: np.ndarray, test: np.ndarray, rank: int, repeats: int) -> None:
    libmf = Libmf(train)
    pairs: list[tuple[float, float]] = []
    for repeat in range(repeats + 1):
        whole, P, Q = libmf.fit(rank, ITERATIONS)
        one, _, _ = libmf.fit(rank, 1)
        iterations = (whole - one) * ITERATIONS / (ITERATIONS - 1)
        goal = rmse(test, P, Q)
        start = time.perf_counter()
        seconds, history = strads_run(train, test, rank, goal)
        if repeat == 0:
            print(f"\nrank {rank}: first fit, with compiling, {time.perf_counter() - start:.1f} s", flush=True)
        else:
            pairs.append((seconds, iterations))
    theirs = statistics.median(pair[1] for pair in pairs)
    ours = statistics.median(pair[0] for pair in pairs)
    ratio = statistics.median(a / b for a, b in pairs)
    reached = history[-1]["validation_rmse"]
    speed = len(train) * (len(history) - 1) / (history[-1]["seconds"] - history[0]["seconds"] + 1e-9) / 1e6
    print(f"  LIBMF    {ITERATIONS} iterations {theirs:6.2f} s  RMSE {goal:.4f}  {len(train) * 10 / theirs / 1e6:6.1f} M ratings/s")
    print(f"  strads   {len(history):2} epochs     {ours:6.2f} s  RMSE {reached:.4f}  {speed:6.1f} M ratings/s after the first")
    print(f"  strads / LIBMF, time to LIBMF's RMSE: {ratio:.2f} (target ≤ 0.8)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[40, 128])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    data = generate_ratings(options.ratings)
    held = np.random.default_rng(1).random(len(data)) < HELD_OUT
    for rank in options.ranks:
        compare(data[~held], data[held], rank, options.repeats)


if __name__ == "__main__":
    main()
