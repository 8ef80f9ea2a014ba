"""Multinomial logistic regression by minibatches, as a serial program; `mlr.py` beside it is the same in parallel."""

import numpy as np
from numba import njit


@njit(fastmath=True)
def step(batch, W, rate, loss):
    """Step along the mean gradient of a minibatch."""
    classes, features = len(W), len(W[0])
    gradient = np.zeros((classes, features), np.float32)
    z = np.zeros(classes, np.float32)
    for i in range(len(batch)):
        x, y = batch[i].x, batch[i].y
        largest = -np.inf
        for k in range(classes):
            z[k] = 0.0
            for f in range(features):
                z[k] += W[k, f] * x[f]
            largest = max(largest, z[k])
        total = 0.0
        for k in range(classes):
            total += np.exp(z[k] - largest)
        loss[0] += np.log(total) + largest - z[y]
        for k in range(classes):
            slope = np.exp(z[k] - largest) / total
            if k == y:
                slope -= 1.0
            for f in range(features):
                gradient[k, f] += slope * x[f]
    for k in range(classes):
        for f in range(features):
            W[k, f] -= rate / len(batch) * gradient[k, f]


def generate(rows, features, classes):
    """Labels drawn from a multinomial logistic model."""
    rng = np.random.default_rng(0)
    data = np.zeros(rows, [("x", "f4", (features,)), ("y", "i4")])
    data["x"] = rng.standard_normal((rows, features))
    planted = rng.standard_normal((features, classes)) / 4
    data["y"] = (data["x"] @ planted + rng.gumbel(size=(rows, classes))).argmax(axis=1)
    return data


def main():
    """Train, and show the mean loss of each epoch."""
    rows = generate(20_000, 50, 10)
    W = np.zeros((10, 50), np.float32)
    for epoch in range(10):
        loss = np.zeros(1)
        for start in range(0, len(rows), 100):
            step(rows[start : start + 100], W, 0.5, loss)
        print(f"epoch {epoch}: loss {loss[0] / len(rows):.4f}")


if __name__ == "__main__":
    main()
