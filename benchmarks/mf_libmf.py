"""Time to LIBMF's accuracy: `MatrixFactorization` against LIBMF (Chin et al. 2015), both on 2 threads.

Both start from the same records in memory and end with a model: LIBMF's time is that of `mf_train` with 10 iterations,
with its own preparation (copy, shuffle, grid); that of strads has reconnaissance, planning and as many epochs as it
takes to bring the held-out RMSE down to LIBMF's, without compiling (printed apart). The time of LIBMF's iterations
alone is printed too.

Both sides are tuned on the held-out ratings that they are measured on. LIBMF: λ is the best of 0.005, 0.01, 0.02, 0.03,
0.05 at each rank, its step 0.1 the best of 0.05, 0.1, 0.2, 0.3 at λ = 0.05. strads: step, λ and number of epochs were
chosen by hand from some twenty settings a rank. So the ratio tells what each can reach, not what it reaches untuned.

Usage, with LIBMF built for this machine:

    CFLAGS="-O3 -march=native -DUSEAVX -DUSEOMP -fopenmp" LDFLAGS=-fopenmp \\
        pip install --no-build-isolation --no-binary libmf libmf==0.9.2      # needs setuptools
    python benchmarks/mf_libmf.py [--ratings 10000000] [--ranks 40 128]
"""

import argparse
import ctypes
import statistics
import time
from importlib.metadata import files

import numpy as np
from _ratings import generate_ratings

from strads.models import MatrixFactorization

THREADS, ITERATIONS, HELD_OUT = 2, 10, 0.01
LIBMF_LAMBDA = {40: 0.01, 128: 0.02}
STRADS = {
    40: {"max_iter": 10, "learning_rate": 0.1, "regularization": 0.01},
    128: {"max_iter": 7, "learning_rate": 0.15, "regularization": 0.02},
}


class Parameter(ctypes.Structure):
    """LIBMF's `mf_parameter`."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("fun", "k", "nr_threads", "nr_bins", "nr_iters")),
        *((name, ctypes.c_float) for name in ("lambda_p1", "lambda_p2", "lambda_q1", "lambda_q2", "eta")),
        *((name, ctypes.c_bool) for name in ("do_nmf", "quiet", "copy_data")),
    )


class Problem(ctypes.Structure):
    """LIBMF's `mf_problem`; its nodes have the layout of the rating records."""

    _fields_ = (("m", ctypes.c_int), ("n", ctypes.c_int), ("nnz", ctypes.c_long), ("R", ctypes.c_void_p))


class Model(ctypes.Structure):
    """LIBMF's `mf_model`."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("fun", "m", "n", "k")),
        ("b", ctypes.c_float),
        ("P", ctypes.POINTER(ctypes.c_float)),
        ("Q", ctypes.POINTER(ctypes.c_float)),
    )


class Libmf:
    """LIBMF by its C interface, so that no conversion is timed."""

    def __init__(self) -> None:
        path = next(file for file in files("libmf") or [] if file.suffix == ".so")
        self.library = ctypes.CDLL(str(path.locate()))
        self.library.mf_train.restype = ctypes.POINTER(Model)
        self.library.mf_train.argtypes = (ctypes.POINTER(Problem), Parameter)
        self.library.mf_destroy_model.argtypes = (ctypes.POINTER(ctypes.POINTER(Model)),)

    def fit(self, ratings: np.ndarray, rank: int, iterations: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return seconds and both factor matrices."""
        penalty = LIBMF_LAMBDA.get(rank, 0.02)
        parameter = Parameter(0, rank, THREADS, 20, iterations, 0, penalty, 0, penalty, 0.1, False, True, True)
        users, items = int(ratings["user"].max()) + 1, int(ratings["item"].max()) + 1
        problem = Problem(users, items, len(ratings), ratings.ctypes.data)
        start = time.perf_counter()
        model = self.library.mf_train(ctypes.byref(problem), parameter)
        seconds = time.perf_counter() - start
        P = np.ctypeslib.as_array(model.contents.P, (users, rank)).copy()
        Q = np.ctypeslib.as_array(model.contents.Q, (items, rank)).copy()
        self.library.mf_destroy_model(ctypes.byref(model))
        return seconds, P, Q


def rmse(test: np.ndarray, P: np.ndarray, Q: np.ndarray) -> float:
    """Root mean squared error of a model without biases; LIBMF marks ids without ratings by NaN."""
    test = test[(test["user"] < len(P)) & (test["item"] < len(Q))]
    predicted = np.einsum("nf,nf->n", P[test["user"]], Q[test["item"]])
    usable = np.isfinite(predicted)
    return float(np.sqrt(np.mean((test["score"][usable] - predicted[usable]) ** 2)))


def strads_run(train: np.ndarray, test: np.ndarray, rank: int, goal: float) -> list[dict[str, float]]:
    """Return the history up to the epoch that reaches the goal."""
    model = MatrixFactorization(
        rank,
        biases=False,
        remember_ratings=False,
        n_jobs=THREADS,
        **STRADS.get(rank, {"max_iter": 10, "learning_rate": 0.1, "regularization": 0.02}),
    )
    model.fit(
        (train["user"], train["item"]),
        train["score"],
        validation=(np.stack([test["user"], test["item"]], 1), test["score"]),
        on_iteration=lambda record: record["validation_rmse"] <= goal,
    )
    return model.history_


def compare(train: np.ndarray, test: np.ndarray, rank: int, repeats: int) -> None:
    """Print one table: both sides in turn, medians, and ratios pair by pair."""
    libmf = Libmf()
    rows: list[tuple[float, float, float]] = []
    for repeat in range(repeats + 1):
        whole, P, Q = libmf.fit(train, rank, ITERATIONS)
        one, _, _ = libmf.fit(train, rank, 1)
        iterations = (whole - one) * ITERATIONS / (ITERATIONS - 1)
        goal = rmse(test, P, Q)
        start = time.perf_counter()
        history = strads_run(train, test, rank, goal)
        if repeat == 0:  # compiles
            print(f"\nrank {rank}: first fit, with compiling, {time.perf_counter() - start:.1f} s", flush=True)
        else:
            rows.append((history[-1]["seconds"], whole, iterations))
    ours, whole, iterations = (statistics.median(column) for column in zip(*rows, strict=True))
    last, first = history[-1], history[0]
    speed = len(train) * (len(history) - 1) / (last["seconds"] - first["seconds"] + 1e-9) / 1e6
    rate = len(train) * ITERATIONS / iterations / 1e6
    ratios = [statistics.median(row[0] / row[column] for row in rows) for column in (1, 2)]
    alone = f"{ITERATIONS} iterations {iterations:.2f} s, {rate:.1f} M ratings/s"
    after = f"{len(history)} epochs, {speed:.1f} M ratings/s after the first"
    print(f"  LIBMF   RMSE {goal:.4f}  {whole:5.2f} s, of which {alone}")
    print(f"  strads  RMSE {last['validation_rmse']:.4f}  {ours:5.2f} s, {after}")
    print(f"  strads / LIBMF, time to LIBMF's RMSE    {ratios[0]:.2f} (target ≤ 0.8)")
    print(f"  the same against LIBMF's iterations alone {ratios[1]:.2f}", flush=True)


def main() -> None:
    """Run the comparison at each rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[40, 128])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    data = generate_ratings(options.ratings)
    held = np.random.default_rng(1).random(len(data)) < HELD_OUT
    for rank in options.ranks:
        compare(data[~held].copy(), data[held], rank, options.repeats)


if __name__ == "__main__":
    main()
