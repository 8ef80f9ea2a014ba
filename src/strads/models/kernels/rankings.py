"""The highest of many scores, without sorting all; and the ranks of some of them."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _is_worse(scores, items, a, b):  # type: ignore[no-untyped-def]
    """Whether entry a of a ranking comes after entry b: of equal scores, the higher number does."""
    return scores[a] < scores[b] or (scores[a] == scores[b] and items[a] > items[b])


@njit(nogil=True, cache=True)
def _sift_down(scores, items, size):  # type: ignore[no-untyped-def]
    """Restore a heap, the worst first, after its first entry has changed."""
    parent = 0
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and _is_worse(scores, items, child + 1, child):
            child += 1
        if not _is_worse(scores, items, child, parent):
            return
        scores[parent], scores[child] = scores[child], scores[parent]
        items[parent], items[child] = items[child], items[parent]
        parent = child


@njit(nogil=True, cache=True)
def top_items(scores, offsets, excluded, best_items, best_scores):  # type: ignore[no-untyped-def]
    """The items with the highest scores, for each of several users.

    Parameters
    ----------
    scores : float32 ndarray of shape (users, n_items)
        Those of excluded items become −∞.
    offsets : int64 ndarray of shape (users + 1,)
    excluded : int32 ndarray
        Items `excluded[offsets[u]:offsets[u + 1]]` are not for user u.
    best_items : int64 ndarray of shape (users, N)
        Receives the items, the best first; −1 where there are too few.
    best_scores : float32 ndarray of shape (users, N)
        Receives their scores; −∞ where there are too few.
    """
    best_items[:], best_scores[:] = -1, -np.inf
    most = best_items.shape[1]
    for user in range(len(scores)):
        row, items, heap = scores[user], best_items[user], best_scores[user]
        for place in range(offsets[user], offsets[user + 1]):
            row[excluded[place]] = -np.inf
        for item in range(len(row)):
            if row[item] > heap[0]:
                heap[0], items[0] = row[item], item
                _sift_down(heap, items, most)
        for size in range(most - 1, 0, -1):  # the worst of what is left comes last
            heap[0], heap[size] = heap[size], heap[0]
            items[0], items[size] = items[size], items[0]
            _sift_down(heap, items, size)


@njit(nogil=True, cache=True)
def _count_lower(row, score, items):  # type: ignore[no-untyped-def]
    """Return the number of `items` whose scores in `row` are below `score`; equal ones count half."""
    total = 0.0
    for item in items:
        if row[item] < score:
            total += 1.0
        elif row[item] == score:
            total += 0.5
    return total


@njit(nogil=True, cache=True)
def areas_under_curve(scores, known_offsets, known, held_offsets, held, areas):  # type: ignore[no-untyped-def]
    """AUC of each user: the share of pairs of a held-out item and one that is in neither list that are in right order.

    Parameters
    ----------
    scores : float32 ndarray of shape (users, n_items)
    known_offsets, held_offsets : int64 ndarrays of shape (users + 1,)
    known, held : int32 ndarrays
        Items `known[known_offsets[u]:known_offsets[u + 1]]` were seen in training, those in `held` were held out; no
        item is in both.
    areas : float64 ndarray of shape (users,)
        Receives the areas; NaN where there is no such pair. Equal scores count as half in order.
    """
    for user in range(len(scores)):
        row = scores[user]
        seen = known[known_offsets[user] : known_offsets[user + 1]]
        own = held[held_offsets[user] : held_offsets[user + 1]]
        others = len(row) - len(seen) - len(own)
        if len(own) == 0 or others == 0:
            areas[user] = np.nan
            continue
        total = 0.0
        for item in own:
            lower, equal = 0, 0
            for other in range(len(row)):
                lower += row[other] < row[item]
                equal += row[other] == row[item]
            total += lower + 0.5 * equal
            total -= _count_lower(row, row[item], seen) + _count_lower(row, row[item], own)
        areas[user] = total / (len(own) * others)
