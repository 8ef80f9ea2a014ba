"""Minibatch logistic regression with `sync_for`: the same body under every consistency model.

On two logical nodes of this process; under `mpiexec -n 2 python examples/minibatches.py` on two processes.
"""

import os

import numpy as np

import strads


def logistic(batch, w, rate, loss):
    """Step along the mean gradient of a minibatch."""
    gradient = np.zeros(len(w), w.dtype)
    for i in range(len(batch)):
        x, y = batch[i].x, batch[i].y
        margin = 0.0
        for f in range(len(w)):
            margin += w[f] * x[f]
        e = np.exp(-y * margin)
        loss.add(np.log1p(e))
        for f in range(len(w)):
            gradient[f] += y * e / (1.0 + e) * x[f]
    for f in range(len(w)):
        w[f] += rate / len(batch) * gradient[f]


def generate(rows: int, features: int) -> np.ndarray:
    """Labels that follow a logistic model."""
    rng = np.random.default_rng(0)
    data = np.zeros(rows, [("x", "f4", (features,)), ("y", "f4")])
    data["x"] = rng.standard_normal((rows, features))
    chance = 1 / (1 + np.exp(-data["x"] @ rng.standard_normal(features)))
    data["y"] = np.where(rng.random(rows) < chance, 1, -1)
    return data


def main() -> None:
    """Train under each model, and show how old the parameters were."""
    under_mpi = "OMPI_COMM_WORLD_SIZE" in os.environ
    with strads.init(nodes=None if under_mpi else 2, threads=1):
        rows = strads.dvector(generate(20_000, 50))
        models = [strads.BSP(), strads.Hybrid(), strads.SSP(3), strads.ESSP(3), strads.ASP(), strads.VAP(0.5)]
        for consistency in models:
            w = strads.dvector.zeros(50)
            for _ in range(5):
                loss = strads.accumulator(0.0)
                statistics = strads.sync_for(rows, logistic, w, 0.5, loss, batch_size=100, consistency=consistency)
            age = -statistics.staleness[0].mean
            print(f"{consistency}: loss {loss.value / len(rows):.4f}, parameters {age:.1f} clocks old on average")


if __name__ == "__main__":
    main()
