"""Bodies of `examples/loops` for plain arrays, where these are written otherwise than strads tables.

A ragged table is two arrays, values and offsets; an accumulator is an array of one number. Random numbers are their
seed: these bodies draw from NumPy's generator.
"""

from math import exp

import numpy as np


def kaczmarz_ragged(k, columns, starts, values, same_starts, b, x):
    residual, norm = b[k], 0.0
    for j in range(starts[k], starts[k + 1]):
        residual -= values[j] * x[columns[j]]
        norm += values[j] * values[j]
    step = residual / norm
    for j in range(starts[k], starts[k + 1]):
        x[columns[j]] += step * values[j]


def mf(k, ratings, W, H, rate, penalty, loss):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += rate * (err * h[f] - penalty * wf)
        h[f] += rate * (err * wf - penalty * h[f])
    loss[0] += err * err


def bpr_near(k, likes, W, H, rng, rate, penalty):
    like = likes[k]
    other = np.random.randint(len(H))  # noqa: NPY002 - the generator that Numba compiles
    if other != like.taken:
        w, i, j = W[like.user], H[like.taken], H[other]
        score = 0.0
        for f in range(len(w)):
            score += w[f] * (i[f] - j[f])
        step = 1.0 / (1.0 + exp(score))
        for f in range(len(w)):
            wf, difference = w[f], i[f] - j[f]
            w[f] += rate * (step * difference - penalty * wf)
            i[f] += rate * (step * wf - penalty * i[f])
            j[f] -= rate * (step * wf + penalty * j[f])
