"""Bodies of minibatches for tests, and what BSP means, in NumPy."""

from itertools import pairwise

import numpy as np

import strads

RULES = [strads.BSP(), strads.Hybrid(), strads.SSP(2), strads.ESSP(2), strads.ASP(), strads.VAP(0.5)]


def logistic(batch, w, rate, loss):
    gradient = np.zeros(len(w), w.dtype)
    for i in range(len(batch)):
        x, y = batch[i].x, batch[i].y
        margin = 0.0
        for f in range(len(x)):
            margin += w[f] * x[f]
        e = np.exp(-y * margin)
        loss.add(np.log1p(e))
        for f in range(len(x)):
            gradient[f] += y * e / (1.0 + e) * x[f]
    for f in range(len(w)):
        w[f] += rate / len(batch) * gradient[f]


def relax_rows(batch, w, rate):
    """Move the rows that the records name towards their values: compiled and interpreted, the same bits."""
    for i in range(len(batch)):
        r = batch[i]
        w[r.row] += rate * (r.value - w[r.row])


def count_words(batch, counts, total):
    for i in range(len(batch)):
        words = batch[i]
        for j in range(len(words)):
            counts[words[j]] += 1
        total.add(len(words))


def add_items(batch, w):
    for i in range(len(batch)):
        w[0] += batch[i]


def generate(rows, features, seed=0):
    """Records of x and of y = ±1."""
    rng = np.random.default_rng(seed)
    data = np.zeros(rows, [("x", "f4", (features,)), ("y", "f4")])
    data["x"] = rng.standard_normal((rows, features))
    margins = data["x"] @ rng.standard_normal(features) * 2
    data["y"] = np.where(rng.random(rows) < 1 / (1 + np.exp(-margins)), 1, -1)
    return data


def sparse(count, rows, seed=0):
    """Records of a row and a value; a minibatch has few rows."""
    rng = np.random.default_rng(seed)
    data = np.zeros(count, [("row", "i4"), ("value", "f4")])
    data["row"] = (rng.random(count) ** 2 * rows).astype(int)
    data["value"] = rng.standard_normal(count)
    return data


def simulate(data, body, table, *arguments, size, workers):
    """Run a body of records as BSP defines it: a round is a minibatch of each worker, all from the same values."""
    batches = [data[i : i + size].view(np.recarray) for i in range(0, len(data), size)]
    bounds = [worker * len(batches) // workers for worker in range(workers + 1)]
    parts = [batches[a:b] for a, b in pairwise(bounds)]
    for clock in range(max(map(len, parts))):
        round_ = [part[clock] for part in parts if clock < len(part)]
        changes = []
        for batch in round_:
            replica = table.copy()
            body(batch, replica, *arguments)
            changes.append(table.dtype.type(1 / len(round_)) * (replica - table))
        for change in changes:
            table += change
