"""Stochastic gradient steps of biased matrix factorization, as loop bodies.

A row of either table holds `rank` factors, then the bias, then the sum of squared gradients of the row: all that a
step touches lies side by side in memory.
"""

import math

from numba import njit

BIAS, SQUARES = 0, 1  # columns after the factors
EXTRA_COLUMNS = 2


def adagrad_step(k, ratings, users, items, mean, rank, rate, regularization, bias_rate, loss):  # type: ignore[no-untyped-def]
    """One rating with per-row AdaGrad (Chin et al. 2015, "reduced" step sizes; Duchi et al. 2011).

    The step of a row is η / √G, where G sums the mean squared gradients of its factors. Biases move with
    `bias_rate` times the row's step; 0 leaves them out.
    """
    r = ratings[k]
    w, h = users[r.user], items[r.item]
    error = r.score - mean - w[rank + BIAS] - h[rank + BIAS]
    dot = 0.0
    for f in range(rank):
        dot += w[f] * h[f]
    error -= dot
    loss.add(error * error)
    step_w = rate / math.sqrt(w[rank + SQUARES])
    step_h = rate / math.sqrt(h[rank + SQUARES])
    squares_w = 0.0
    squares_h = 0.0
    for f in range(rank):
        wf, hf = w[f], h[f]
        gradient_w = error * hf - regularization * wf
        gradient_h = error * wf - regularization * hf
        w[f] = wf + step_w * gradient_w
        h[f] = hf + step_h * gradient_h
        squares_w += gradient_w * gradient_w
        squares_h += gradient_h * gradient_h
    w[rank + SQUARES] += squares_w / rank
    h[rank + SQUARES] += squares_h / rank
    w[rank + BIAS] += bias_rate * step_w * (error - regularization * w[rank + BIAS])
    h[rank + BIAS] += bias_rate * step_h * (error - regularization * h[rank + BIAS])


def constant_step(k, ratings, users, items, mean, rank, rate, regularization, bias_rate, loss):  # type: ignore[no-untyped-def]
    """One rating with the same step for all (thesis §6.1.2; Koren et al. 2009)."""
    r = ratings[k]
    w, h = users[r.user], items[r.item]
    error = r.score - mean - w[rank + BIAS] - h[rank + BIAS]
    dot = 0.0
    for f in range(rank):
        dot += w[f] * h[f]
    error -= dot
    loss.add(error * error)
    for f in range(rank):
        wf, hf = w[f], h[f]
        w[f] = wf + rate * (error * hf - regularization * wf)
        h[f] = hf + rate * (error * wf - regularization * hf)
    w[rank + BIAS] += bias_rate * rate * (error - regularization * w[rank + BIAS])
    h[rank + BIAS] += bias_rate * rate * (error - regularization * h[rank + BIAS])


@njit(nogil=True, fastmath=True, cache=True)
def predict_pairs(users, items, mean, rank, user_ids, item_ids, scores, first, last):  # type: ignore[no-untyped-def]
    """Predicted scores of the pairs `first:last`, into `scores` (float32)."""
    for pair in range(first, last):
        w, h = users[user_ids[pair]], items[item_ids[pair]]
        score = mean + w[rank + BIAS] + h[rank + BIAS]
        for f in range(rank):
            score += w[f] * h[f]
        scores[pair] = score


@njit(nogil=True, cache=True)
def group_items_by_user(user_ids, item_ids, offsets, items):  # type: ignore[no-untyped-def]
    """Counting sort: `items[offsets[u]:offsets[u + 1]]` become the items of user u; offsets come in as zeros."""
    for user in user_ids:
        offsets[user + 1] += 1
    for user in range(len(offsets) - 1):
        offsets[user + 1] += offsets[user]
    place = offsets[:-1].copy()
    for rating in range(len(user_ids)):
        user = user_ids[rating]
        items[place[user]] = item_ids[rating]
        place[user] += 1
