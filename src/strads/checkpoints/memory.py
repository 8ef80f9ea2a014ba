"""What other code can see of an array's memory, and a checksum of it."""

import sys
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from strads.checkpoints.storage import checksum_of

_OWN = 3  # references to an array that only its table has: the table, the parameter, the argument of getrefcount


def contents_checksum(*arrays: NDArray[Any] | None) -> str:
    """Return a checksum of some arrays."""
    found = xxhash.xxh3_128()
    for array in arrays:
        found.update(b"-" if array is None else checksum_of(np.ascontiguousarray(array)).encode())
    return found.hexdigest()


def is_shared(array: NDArray[Any]) -> bool:
    """Whether there may be views of a table's array, or of the memory that it is a view of. Errs on the safe side."""
    if sys.getrefcount(array) > _OWN + 1:  # the caller's variable
        return True
    base = array.base
    return isinstance(base, np.ndarray) and sys.getrefcount(base) > _OWN
