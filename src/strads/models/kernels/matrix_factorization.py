"""Stochastic gradient steps of biased matrix factorization, as loop bodies.

A row of either table, `users` or `items`, holds the `rank` factors, then the columns below: everything that a step
touches is contiguous. Tables are float32 of shape (rows, rank + 3).
"""

import math

from numba import njit

BIAS = 0  # the row's bias
SQUARES = 1  # sum of the mean squared gradients of the row's factors, for AdaGrad
NORM = 2  # squared norm of the factors, updated incrementally so that AdaGrad needs no extra pass over them
EXTRA_COLUMNS = 3


def adagrad_step(k, ratings, users, items, mean, rank, share, rate, regularization, bias_rate, loss):  # type: ignore[no-untyped-def]
    """Step for one rating with a step size per row: η / √G, with G the summed mean squared gradients of its factors.

    AdaGrad (Duchi et al. 2011) in the form of Chin et al. 2015, where a row shares one step. With e the error, the
    gradients of the factors are e·h − λw and e·w − λh, so their squared norms, and the new norms of w and h, follow
    from ‖w‖², ‖h‖² and ⟨w, h⟩. Biases are updated with `bias_rate` times the row's step; 0 disables them. `share`
    is 1 / rank.
    """
    r = ratings[k]
    w, h = users[r.user], items[r.item]
    # All loads and square roots come before the loops, so that the processor overlaps them.
    bias_w, sum_w, ww = w[rank + BIAS], w[rank + SQUARES], w[rank + NORM]
    bias_h, sum_h, hh = h[rank + BIAS], h[rank + SQUARES], h[rank + NORM]
    step_w = rate / math.sqrt(sum_w)
    step_h = rate / math.sqrt(sum_h)
    keep_w, keep_h = 1.0 - step_w * regularization, 1.0 - step_h * regularization
    dot = 0.0
    for f in range(rank):
        dot += w[f] * h[f]
    error = r.score - mean - bias_w - bias_h - dot
    loss.add(error * error)
    gain_w, gain_h = step_w * error, step_h * error
    for f in range(rank):
        wf, hf = w[f], h[f]
        w[f] = keep_w * wf + gain_w * hf
        h[f] = keep_h * hf + gain_h * wf
    mixed = 2.0 * error * regularization * dot
    squares_w = error * error * hh - mixed + regularization * regularization * ww
    squares_h = error * error * ww - mixed + regularization * regularization * hh
    w[rank + SQUARES] = sum_w + max(0.0, squares_w) * share
    h[rank + SQUARES] = sum_h + max(0.0, squares_h) * share
    w[rank + NORM] = max(0.0, keep_w * keep_w * ww + 2.0 * keep_w * gain_w * dot + gain_w * gain_w * hh)
    h[rank + NORM] = max(0.0, keep_h * keep_h * hh + 2.0 * keep_h * gain_h * dot + gain_h * gain_h * ww)
    w[rank + BIAS] = bias_w + bias_rate * step_w * (error - regularization * bias_w)
    h[rank + BIAS] = bias_h + bias_rate * step_h * (error - regularization * bias_h)


def constant_step(k, ratings, users, items, mean, rank, share, rate, regularization, bias_rate, loss):  # type: ignore[no-untyped-def]
    """Step for one rating with the same step size for all (thesis §6.1.2; Koren et al. 2009); `share` is not used."""
    r = ratings[k]
    w, h = users[r.user], items[r.item]
    bias_w, bias_h = w[rank + BIAS], h[rank + BIAS]
    dot = 0.0
    for f in range(rank):
        dot += w[f] * h[f]
    error = r.score - mean - bias_w - bias_h - dot
    loss.add(error * error)
    for f in range(rank):
        wf, hf = w[f], h[f]
        w[f] = wf + rate * (error * hf - regularization * wf)
        h[f] = hf + rate * (error * wf - regularization * hf)
    w[rank + BIAS] = bias_w + bias_rate * rate * (error - regularization * bias_w)
    h[rank + BIAS] = bias_h + bias_rate * rate * (error - regularization * bias_h)


@njit(nogil=True, fastmath=True, cache=True)
def predict_pairs(users, items, mean, rank, user_ids, item_ids, scores, first, last):  # type: ignore[no-untyped-def]
    """Write the predicted scores of the pairs `first:last` to `scores` (float32).

    Pair p consists of row `user_ids[p]` of `users` and row `item_ids[p]` of `items` (both int32); `mean` is the
    constant term of all predictions.
    """
    for pair in range(first, last):
        w, h = users[user_ids[pair]], items[item_ids[pair]]
        score = mean + w[rank + BIAS] + h[rank + BIAS]
        for f in range(rank):
            score += w[f] * h[f]
        scores[pair] = score


@njit(nogil=True, fastmath=True, cache=True)
def squared_errors(rows, others, mean, rank, offsets, partners, scores, sums, low, first, last):  # type: ignore[no-untyped-def]
    """Σ (score − prediction)² over the ratings of each of the rows `first..last - 1`, into `sums[row - low]`.

    Row r of `rows` is rated together with the rows `partners[offsets[r]:offsets[r + 1]]` of `others`.
    """
    for row in range(first, last):
        w = rows[row]
        total = 0.0
        for place in range(offsets[row], offsets[row + 1]):
            h = others[partners[place]]
            score = mean + w[rank + BIAS] + h[rank + BIAS]
            for f in range(rank):
                score += w[f] * h[f]
            error = float(scores[place]) - float(score)
            total += error * error
        sums[row - low] = total
