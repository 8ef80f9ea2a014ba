"""Multinomial logistic regression by minibatches, in parallel; `mlr_serial.py` beside it is the serial program."""

import numpy as np

import strads


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
        loss.add(np.log(total) + largest - z[y])
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
    rows = strads.dvector(generate(20_000, 50, 10))
    W = strads.dvector.zeros((10, 50))
    for epoch in range(10):
        loss = strads.accumulator(0.0)
        strads.sync_for(rows, step, W, 0.5, loss, batch_size=100)
        print(f"epoch {epoch}: loss {loss.value / len(rows):.4f}")


if __name__ == "__main__":
    main()
