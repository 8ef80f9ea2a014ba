"""Bodies of `examples/loops` for plain arrays, where these are written otherwise than strads tables.

A ragged table is two arrays, values and offsets; an accumulator is an array of one number.
"""


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
