"""The error of a factorization on held-out ratings, measured where the factors are stored."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.cluster import Node, ThreadTeam
from strads.dds import RaggedArray, dvector
from strads.dds.ragged import offsets_of
from strads.dds.shard import Shard, gather_all_rows
from strads.models.factorization.factor_tables import FactorTables
from strads.models.kernels.matrix_factorization import squared_errors

_CHUNK = 1 << 16  # ratings that a thread predicts at a time


class HeldOut:
    """Held-out ratings, grouped by the row of the larger table, whose rows need not be moved for the measurement.

    The error is first summed per row, so that it is bitwise identical for any number of nodes and threads.

    Parameters
    ----------
    ratings : records of shape (n,) with the fields user, item, score
        Ids are rows of the tables.
    tables : FactorTables
        Tables of the same shapes as those to be measured.
    """

    def __init__(self, ratings: NDArray[np.void], tables: FactorTables):
        self._by_user = len(tables.users) >= len(tables.items)
        first, second = ("user", "item") if self._by_user else ("item", "user")
        rows = ratings[first]
        order = np.argsort(rows, kind="stable")
        offsets = offsets_of(np.bincount(rows, minlength=len(self._ordered(tables)[0])))
        self._count = len(ratings)
        self._partners = dvector(RaggedArray(ratings[second][order].astype(np.int32), offsets), copy=False)
        self._scores = dvector(RaggedArray(np.ascontiguousarray(ratings["score"][order]), offsets.copy()), copy=False)

    def rmse(self, tables: FactorTables, threads: int | None) -> float:
        """Root mean squared error of the tables' predictions.

        Parameters
        ----------
        tables : FactorTables
            On several nodes they stay in place; only the smaller one is copied from node to node.
        threads : int or None
            Number of threads on a single process; None: those of `strads.init`.
        """
        runtime = cluster.current()
        tables_of_rows = (*self._ordered(tables), self._partners, self._scores)
        mean, rank = np.float32(tables.mean), tables.rank
        if runtime.is_local:
            storages = [table.storage for table in tables_of_rows]
            sums = _sums(storages, mean, rank, 0, len(tables_of_rows[0]), runtime.team(threads))
        else:
            rows, *others = tables_of_rows
            names = [rows.distribute(runtime.cluster), others[0].distribute(runtime.cluster)]
            names += [table.distribute(runtime.cluster, rows.bounds) for table in others[1:]]
            sums = np.concatenate(runtime.run(_sums_of_node, names, mean, rank))
        return math.sqrt(float(sums.sum()) / self._count)

    def _ordered(self, tables: FactorTables) -> tuple[dvector, dvector]:
        return (tables.users, tables.items) if self._by_user else (tables.items, tables.users)


def _sums_of_node(node: Node, names: list[str], mean: np.float32, rank: int) -> NDArray[np.float64]:
    """Node program: the summed squared errors of each row on this node."""
    shards: list[Shard] = [node.store[name] for name in names]
    gather_all_rows(node, shards[1])
    return _sums([shard.whole for shard in shards], mean, rank, shards[0].low, shards[0].high, node.team)


def _sums(
    storages: list[Any], mean: np.float32, rank: int, low: int, high: int, team: ThreadTeam
) -> NDArray[np.float64]:
    """Return the summed squared errors of the rows `low..high - 1`.

    The storages are those of the rows, of the other table, and of each row's partners and scores.
    """
    rows, others, partners, scores = storages
    sums = np.zeros(high - low)
    offsets = partners.offsets
    count = max(1, -(-int(offsets[high] - offsets[low]) // _CHUNK))
    cuts = np.searchsorted(offsets[low : high + 1], np.linspace(offsets[low], offsets[high], count + 1))
    cuts[0], cuts[-1] = 0, high - low

    def work(chunk: int) -> None:
        first, last = low + int(cuts[chunk]), low + int(cuts[chunk + 1])
        squared_errors(rows, others, mean, rank, offsets, partners.values, scores.values, sums, low, first, last)

    team.for_each(work, count)
    return sums
