"""`sync_for` on minibatch logistic regression against hand-written Numba: Hogwild! on two threads (Niu et al. 2011).

All variants run in one process, one epoch each in turn, so that drifts of the machine's speed hit all alike; a
variant's figure is its median epoch. Hand-written code has features and labels in an array each; `sync_for` also goes
through records of both, as a table is commonly kept. BSP, which copies the weights for each minibatch, is there for
comparison. Usage:

    python benchmarks/sync_for.py [--rows 400000] [--features 100 1000] [--batches 64 256] [--epochs 9] [--all]
"""

import argparse
import threading
import time
from collections.abc import Callable

import numpy as np
from numba import njit

import strads

RATE = 0.01


def logistic_of_arrays(batch, X, Y, w, rate, loss):
    gradient = np.zeros(len(w), w.dtype)
    total = 0.0
    for i in batch:
        x, y = X[i], Y[i]
        margin = 0.0
        for f in range(len(w)):
            margin += w[f] * x[f]
        e = np.exp(-y * margin)
        total += np.log1p(e)
        weight = y * e / (1.0 + e)
        for f in range(len(w)):
            gradient[f] += weight * x[f]
    for f in range(len(w)):
        w[f] += rate * gradient[f]
    loss.add(total)


def logistic_of_records(batch, w, rate, loss):
    gradient = np.zeros(len(w), w.dtype)
    total = 0.0
    for i in range(len(batch)):
        x, y = batch[i].x, batch[i].y
        margin = 0.0
        for f in range(len(w)):
            margin += w[f] * x[f]
        e = np.exp(-y * margin)
        total += np.log1p(e)
        weight = y * e / (1.0 + e)
        for f in range(len(w)):
            gradient[f] += weight * x[f]
    for f in range(len(w)):
        w[f] += rate * gradient[f]
    loss.add(total)


@njit(nogil=True, fastmath=True)
def hogwild(first, last, size, X, Y, w, rate):
    loss = 0.0
    gradient = np.zeros(len(w), np.float32)
    for start in range(first, last, size):
        gradient[:] = 0
        for i in range(start, min(start + size, last)):
            x, y = X[i], Y[i]
            margin = np.float32(0.0)
            for f in range(len(w)):
                margin += w[f] * x[f]
            e = np.exp(-y * margin)
            loss += np.log1p(e)
            weight = y * e / (np.float32(1.0) + e)
            for f in range(len(w)):
                gradient[f] += weight * x[f]
        for f in range(len(w)):
            w[f] += rate * gradient[f]
    return loss


class HandWritten:
    """Each thread passes over its rows and writes to the shared weights."""

    def __init__(self, rows: np.ndarray, size: int, threads: int):
        self.X, self.Y = np.ascontiguousarray(rows["x"]), np.ascontiguousarray(rows["y"])
        self.w = np.zeros(self.X.shape[1], np.float32)
        self.size = size
        batches = -(-len(rows) // size)
        self.bounds = np.minimum(np.arange(threads + 1) * batches // threads * size, len(rows))
        self.losses = np.zeros(threads)

    def epoch(self) -> float:
        threads = [threading.Thread(target=self._part, args=(t,)) for t in range(len(self.losses))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return float(self.losses.sum())

    def _part(self, t: int) -> None:
        first, last = self.bounds[t : t + 2]
        self.losses[t] = hogwild(first, last, self.size, self.X, self.Y, self.w, np.float32(RATE))


class Strads:
    """The same loop under a consistency model, over records or over the numbers of rows of two arrays."""

    def __init__(self, data: np.ndarray, size: int, rules: object, *, arrays: bool = False):
        self.size, self.rules = size, rules
        self.w = strads.dvector.zeros(data["x"].shape[1])
        self.rows = range(len(data)) if arrays else strads.dvector(data)
        self.body = logistic_of_arrays if arrays else logistic_of_records
        self.arrays = [strads.dvector(np.ascontiguousarray(data[name])) for name in ("x", "y")] if arrays else []

    def epoch(self) -> float:
        loss = strads.accumulator(0.0)
        strads.sync_for(
            self.rows, self.body, *self.arrays, self.w, RATE, loss, batch_size=self.size, consistency=self.rules
        )
        return loss.value


def generate(rows: int, features: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    data = np.zeros(rows, [("x", "f4", (features,)), ("y", "f4")])
    data["x"] = rng.standard_normal((rows, features), np.float32) / np.sqrt(features)
    margins = data["x"] @ rng.standard_normal(features).astype(np.float32) * 3
    data["y"] = np.where(rng.random(rows) < 1 / (1 + np.exp(-margins)), 1, -1)
    return data


def measure(variants: dict[str, Callable[[], float]], epochs: int) -> dict[str, tuple[float, float, float]]:
    """Median seconds and processor seconds of an epoch, and the last loss, of each variant."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
    losses = {name: run() for name, run in variants.items()}  # compiles
    for _ in range(epochs):
        for name, run in variants.items():
            start, busy = time.perf_counter(), time.process_time()
            losses[name] = run()
            times[name].append((time.perf_counter() - start, time.process_time() - busy))
    return {name: (*np.median(of_variant, axis=0), losses[name]) for name, of_variant in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000, help="of 100 features; of more features, fewer rows")
    parser.add_argument("--features", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="also the models that exchange messages")
    options = parser.parse_args()
    strads.init("threads", threads=options.threads)
    rules: list[object] = [strads.Hybrid(), strads.BSP()]
    if options.all:
        rules += [strads.SSP(2), strads.ESSP(2), strads.ASP()]
    for features in options.features:
        data = generate(options.rows * 100 // features, features)
        for size in options.batches:
            variants = {"by hand": HandWritten(data, size, options.threads).epoch}
            variants["Hybrid(), arrays"] = Strads(data, size, strads.Hybrid(), arrays=True).epoch
            variants |= {f"{rule}, records": Strads(data, size, rule).epoch for rule in rules}
            found = measure(variants, options.epochs)
            by_hand = found["by hand"]
            print(f"{len(data)} rows of {features} features, minibatches of {size}:")
            for name, (seconds, busy, loss) in found.items():
                print(
                    f"  {name:19s} {seconds * 1e3:8.2f} ms  {len(data) / seconds / 1e6:7.2f} M rows/s  "
                    f"loss {loss / len(data):.4f}  speed {by_hand[0] / seconds:5.2f} of by hand, "
                    f"{by_hand[1] / busy:5.2f} by processor time"
                )


if __name__ == "__main__":
    main()
