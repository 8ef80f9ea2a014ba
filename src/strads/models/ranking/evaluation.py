"""Scores of all items for many users at a time: what is best for each of them, and how well held-out likes rank."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.models._blas_threads import one_blas_thread
from strads.models.kernels.rankings import areas_under_curve, top_items
from strads.models.ranking.likes import Likes

_USERS_AT_A_TIME = 64  # a matrix product is faster than as many products with a vector
_BYTES_AT_A_TIME = 1 << 26

Scores = NDArray[np.float32]


def _for_chunks(count: int, items: int, team: ThreadTeam, work: Callable[[slice], None]) -> None:
    """Call `work` for slices of `count` users, on the team's threads; products of matrices use one thread each."""
    size = max(1, min(_USERS_AT_A_TIME, _BYTES_AT_A_TIME // (4 * max(items, 1))))
    with one_blas_thread():
        team.for_each(lambda chunk: work(slice(chunk * size, min((chunk + 1) * size, count))), -(-count // size))


def best_of_all(
    queries: Scores, rows: Scores, biases: Scores | None, most: int, excluded: Likes, team: ThreadTeam
) -> tuple[NDArray[np.int64], Scores]:
    """Return the rows with the highest scores queries·rowsᵀ + biases.

    Parameters
    ----------
    queries : float32 ndarray of shape (n, factors)
    rows : float32 ndarray of shape (n_rows, factors)
    biases : float32 ndarray of shape (n_rows,), optional
    most : int
        N, how many.
    excluded : Likes
        Rows not to return, of each query.

    Returns
    -------
    numbers : int64 ndarray of shape (n, N)
        The best first, of equal ones the lower number; −1 where there are fewer than N.
    scores : float32 ndarray of shape (n, N)
        −∞ where there are fewer.
    """
    numbers, scores = np.empty((len(queries), most), np.int64), np.empty((len(queries), most), np.float32)

    def work(some: slice) -> None:
        found = queries[some] @ rows.T
        if biases is not None:
            found += biases
        offsets = excluded.offsets[some.start : some.stop + 1]
        top_items(found, offsets, excluded.items, numbers[some], scores[some])

    _for_chunks(len(queries), len(rows), team, work)
    return numbers, scores


def mean_auc(factors: Any, known: Likes, held_out: Likes, team: ThreadTeam) -> float:
    """Mean AUC of the users with held-out likes (Rendle et al. 2009, §6.2); NaN if there are none.

    A user's AUC is the probability that a held-out like has a higher score than an item that is neither a held-out
    like nor a known one.

    Parameters
    ----------
    factors : RankingFactors
    known, held_out : Likes
        Of the same users and items. Held-out likes that are known are left out.
    """
    held_out = held_out.without(known)
    users = np.flatnonzero(held_out.of_users)
    held, seen = held_out.select(users), known.select(users)
    areas = np.empty(len(users))

    def work(some: slice) -> None:
        scores = factors.users[users[some]] @ factors.items.T + factors.biases
        bounds = slice(some.start, some.stop + 1)
        areas_under_curve(scores, seen.offsets[bounds], seen.items, held.offsets[bounds], held.items, areas[some])

    _for_chunks(len(users), known.n_items, team, work)
    areas = areas[~np.isnan(areas)]
    return float(areas.mean()) if len(areas) else float("nan")
