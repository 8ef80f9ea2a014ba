"""Steps of Bayesian personalized ranking (Rendle et al. 2009) for the liked items of one cell: some users × some items.

A cell is processed in batches of `_BATCH` likes: first the other item of each triple is drawn, for the whole batch;
then the steps are made. Drawing has no branches, so that the processor overlaps the memory accesses of many draws.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels.alias_tables import drawn_row
from strads.rng.philox import random_words
from strads.rng.splitmix import GAMMA

_BATCH = 128  # likes
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_BITS_A_LIKE = 16  # of the filter, where it hashes: one pair in 16 or more is excluded by chance
_MAX_EXACT_BITS = 1 << 21  # a quarter of a megabyte: fits in a core's cache

LOG_LIKELIHOOD, CORRECT, SKIPPED = range(3)  # entries of a job's figures


class Filter(NamedTuple):
    """Which pairs of a cell are likes: a bit for each pair or, in a large sparse cell, for each of its hash values.

    Attributes
    ----------
    bits : uint32 ndarray
    shift : uint64
        Hash values are the highest 64 − `shift` bits of a product; 64 means that there is a bit for each pair.
    """

    bits: NDArray[np.uint32]
    shift: np.uint64


NO_FILTER = Filter(np.zeros(1, np.uint32), np.uint64(64))


def make_filter(users: NDArray[np.int32], rows: NDArray[np.int32], n_users: int, n_rows: int) -> Filter:
    """Return the filter of the likes (users[k], rows[k]) of a cell.

    Hash values of different pairs may agree: then a pair that is no like counts as one. After the items are dealt anew,
    the rows are others, and so are these pairs.
    """
    pairs = n_users * n_rows
    hashed = max(10, (_BITS_A_LIKE * len(users) - 1).bit_length())
    if pairs <= max(1 << hashed, _MAX_EXACT_BITS):
        hashed = 0
    bits = np.zeros(((1 << hashed if hashed else pairs) >> 5) + 1, np.uint32)
    made = Filter(bits, np.uint64(64 - hashed))
    _set_bits(users, rows, n_rows, made)
    return made


@njit(nogil=True, cache=True, inline="always")
def _place(user, row, n_rows, shift):  # type: ignore[no-untyped-def]
    """Number of the bit of the pair (`user`, `row`) in a cell with `n_rows` rows; `shift` is that of its `Filter`."""
    pair = np.uint64(user) * np.uint64(n_rows) + np.uint64(row)
    return pair if shift == np.uint64(64) else (pair * GAMMA) >> shift


@njit(nogil=True, cache=True)
def _set_bits(users, rows, n_rows, likes):  # type: ignore[no-untyped-def]
    """Set the bits of the pairs (`users[k]`, `rows[k]`) in the filter `likes` of a cell with `n_rows` rows."""
    for k in range(len(users)):
        place = _place(users[k], rows[k], n_rows, likes.shift)
        likes.bits[place >> np.uint64(5)] |= np.uint32(1) << np.uint32(place & np.uint64(31))


@njit(nogil=True, cache=True, inline="always")
def _is_like(user, row, n_rows, likes):  # type: ignore[no-untyped-def]
    """Whether the pair (`user`, `row`) is in the filter `likes` of a cell with `n_rows` rows."""
    place = _place(user, row, n_rows, likes.shift)
    return (likes.bits[place >> np.uint64(5)] >> np.uint32(place & np.uint64(31))) & np.uint32(1) != 0


@njit(nogil=True, cache=True)
def _draw(table, key, first, others):  # type: ignore[no-untyped-def]
    """Draw a row from `table` for each of the likes from number `first` on, into `others` (int32).

    A random word of 64 bits serves two of them. `first` and the length of `others` are multiples of 4; `key` is as in
    `rank_cell`.
    """
    rows = np.uint64(len(table.shares))
    for four in range(len(others) // 4):
        words = random_words(key, np.uint64(0), np.uint64(first // 4 + four))
        for place in range(4):
            word = words[place // 2]
            bits = (word & _LOW) if place % 2 else (word >> _HALF)
            others[4 * four + place] = drawn_row(table, bits * rows)


@njit(nogil=True, cache=True)
def _reject_likes(users, n_rows, likes, others):  # type: ignore[no-untyped-def]
    """Replace `others[k]` by −1 where the user `users[k]` likes it according to the filter `likes`.

    `n_rows` is the number of items of the cell.
    """
    for k in range(len(users)):
        others[k] = -1 if _is_like(users[k], others[k], n_rows, likes) else others[k]


@njit(nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"}, cache=True, error_model="numpy", forceinline=True)
def make_steps(users, rows, others, W, H, biases, rate, regularization, figures):  # type: ignore[no-untyped-def]
    """Make a step for each triple (u, i, j): with x = w_u·(h_i − h_j) + b_i − b_j, ascend ln σ(x) − λ/2 ‖θ‖².

    Rendle et al. 2009, figure 4. Triple k consists of row `users[k]` of `W`, and of the rows i = `rows[k]` and
    j = `others[k]` of `H` and `biases` (all int32); there is no step where j is −1 or i. The arrays, η (`rate`), λ
    (`regularization`) and `figures` are as in `rank_cell`. Σ ln σ(x) is computed as logarithms of products, of which
    there are few.
    """
    width = W.shape[1]
    keep = np.float32(1.0) - rate * regularization
    total, likelihood, margins, correct, skipped = 0.0, 1.0, 0.0, 0, 0
    for k in range(len(users)):
        liked, other = rows[k], others[k]
        if other < 0 or other == liked:
            skipped += 1
            continue
        w, i, j = W[users[k]], H[liked], H[other]
        x = np.float32(0.0)
        for f in range(width):
            x += w[f] * (i[f] - j[f])
        x += biases[liked] - biases[other]
        wrong = np.float32(1.0) / (np.float32(1.0) + math.exp(x))  # σ(−x)
        gain = rate * wrong
        for f in range(width):
            wf, hi, hj = w[f], i[f], j[f]
            w[f] = keep * wf + gain * (hi - hj)
            i[f] = keep * hi + gain * wf
            j[f] = keep * hj - gain * wf
        biases[liked] = keep * biases[liked] + gain
        biases[other] = keep * biases[other] - gain
        margins += x
        correct += 1 if x > np.float32(0.0) else 0
        likelihood *= max(1.0 - float(wrong), 1e-38)
        if likelihood < 1e-200:
            total += math.log(likelihood)
            likelihood = 1.0
    figures[LOG_LIKELIHOOD] += total + math.log(likelihood) if math.isfinite(margins) else math.nan
    figures[CORRECT] += correct
    figures[SKIPPED] += skipped


@njit(nogil=True, cache=True)
def rank_cell(users, rows, W, H, biases, table, likes, verify, rate, regularization, key, figures):  # type: ignore[no-untyped-def]
    """Make a step for each like of a cell, in order.

    Parameters
    ----------
    users, rows : int32 ndarrays of shape (n,)
        Rows of `W` and of `H`.
    W : float32 ndarray of shape (users, width)
        Factors of users.
    H : float32 ndarray of shape (items, width)
        Factors of items.
    biases : float32 ndarray of shape (items,)
    table : AliasTable
        From which the other items are drawn.
    likes : Filter
        Used if `verify`.
    verify : bool
        Whether the other item must not be a like.
    rate, regularization : float32
        η and λ.
    key : uint64
        Key of the job's random numbers.
    figures : float64 ndarray of shape (3,)
        To which Σ ln σ(x), the number of triples with x > 0 and the number of likes without a step are added.
    """
    others = np.empty(_BATCH, np.int32)
    for first in range(0, len(users), _BATCH):
        some = slice(first, min(first + _BATCH, len(users)))
        _draw(table, key, first, others)
        if verify:
            _reject_likes(users[some], len(H), likes, others)
        make_steps(users[some], rows[some], others, W, H, biases, rate, regularization, figures)
