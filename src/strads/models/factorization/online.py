"""Tables of factors that continue learning: batches touch only their own rows, and bring new ones."""

import numpy as np
from numpy.typing import NDArray

from strads.dds import dvector
from strads.models._growth import GrowingArray, check_growth
from strads.models.factorization.factor_tables import FactorTables, InitialFactors
from strads.models.factorization.ratings import RATING


class OnlineTables:
    """Tables with room for more users and items.

    Parameters
    ----------
    tables : FactorTables
        Held in this process; their memory is used, and changed, until there are too many rows.
    start : InitialFactors
        Of new rows.

    Attributes
    ----------
    mean : float
        μ of the tables.
    """

    def __init__(self, tables: FactorTables, start: InitialFactors):
        self._memory = tuple(GrowingArray(table) for table in tables.arrays)
        self._rank, self.mean, self.start = tables.rank, tables.mean, start

    @property
    def tables(self) -> FactorTables:
        """The tables, as views."""
        users, items = (memory.rows for memory in self._memory)
        return FactorTables.from_arrays(users, items, self._rank, self.mean)

    def prepare(self, ratings: NDArray[np.void], shape: tuple[int, int]) -> "Batch":
        """Return the rows that ratings touch; the tables are to have at least `shape` rows.

        Raises
        ------
        InputError
            If they would grow out of proportion.
        """
        for what, memory, wanted in zip(("user", "item"), self._memory, shape, strict=True):
            check_growth(what, len(memory), wanted, len(ratings))
        return Batch(ratings, [self._grown(*each) for each in enumerate(shape)], self._rank, self.mean)

    def _grown(self, number: int, wanted: int) -> NDArray[np.float32]:
        """Make new rows ready in a table's memory, beyond its end, and return all."""
        memory = self._memory[number]
        rows = memory.room(max(wanted, len(memory)))
        self.start.fill(rows[len(memory) :], self._rank, number, len(memory))
        return rows

    def take(self, batch: "Batch") -> None:
        """Take over what was learnt from a batch."""
        for memory, rows, ids, learnt in zip(self._memory, batch.rows, batch.ids, batch.tables.arrays, strict=True):
            rows[ids] = learnt
            memory.resize(len(rows))


class Batch:
    """Ratings and copies of the rows that they touch, renumbered: rows that are not touched cost nothing.

    Attributes
    ----------
    rows : list of two float32 ndarrays
        All users and items, old and new.
    ids : list of two int64 ndarrays
        Which of them the ratings touch.
    tables : FactorTables
        These rows.
    ratings : dvector
        In terms of these rows.
    """

    def __init__(self, ratings: NDArray[np.void], rows: list[NDArray[np.float32]], rank: int, mean: float):
        self.rows, self.ids = rows, []
        records = np.empty(len(ratings), RATING)
        records["score"] = ratings["score"]
        for name in ("user", "item"):
            ids, records[name] = np.unique(ratings[name], return_inverse=True)
            self.ids.append(ids)
        users, items = (table[ids] for table, ids in zip(rows, self.ids, strict=True))
        self.tables = FactorTables.from_arrays(users, items, rank, mean)
        self.ratings = dvector(records, copy=False)
