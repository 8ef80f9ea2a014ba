"""Arrays that grow in amortized constant time per row, and how far they may grow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError

_FREE_ROWS, _ROWS_A_SAMPLE = 1_000_000, 100


class GrowingArray:
    """An array with room for more rows at its end; the memory of the first ones is used until it is too small."""

    def __init__(self, rows: NDArray[Any]):
        self._memory = rows
        self._count = len(rows)

    @property
    def rows(self) -> NDArray[Any]:
        """The rows, as a view: further changes show in it until the memory becomes too small."""
        return self._memory[: self._count]

    def __len__(self) -> int:
        return self._count

    def room(self, count: int) -> NDArray[Any]:
        """Return a view of the memory of the first `count` rows; those beyond `len` are of unknown content."""
        if count > len(self._memory):
            larger = np.empty((max(count, len(self._memory) * 3 // 2), *self._memory.shape[1:]), self._memory.dtype)
            larger[: self._count] = self.rows
            self._memory = larger
        return self._memory[:count]

    def resize(self, count: int) -> None:
        """Make `count` the number of rows, which `room` has made ready; or remove the last ones."""
        self._count = count

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        end = self._count + len(rows)
        self.room(end)[self._count :] = rows
        self._count = end


def check_growth(what: str, known: int, wanted: int, samples: int) -> None:
    """Reject ids that would make the table of `what` grow out of proportion, from `known` to `wanted` rows.

    It may grow by its own size, by a million rows, and by 100 rows for each sample, all of these added up. The bound
    depends on the data alone, not on the memory here, so that replicas agree.
    """
    most = 2 * known + _FREE_ROWS + _ROWS_A_SAMPLE * samples
    if wanted > most:
        raise InputError(
            f"{what} id {wanted - 1} is far beyond the {known:,} known and the {samples:,} samples given: every id up "
            f"to the largest one gets a row, and at most {most:,} rows are allowed here; number new ones consecutively"
        )
