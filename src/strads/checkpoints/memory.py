"""What other code can see of an array's memory."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OWN = 3  # references to an array that only its table has: the table, the parameter, the argument of getrefcount


def is_shared(array: NDArray[Any]) -> bool:
    """Whether there may be views of a table's array, or of the memory that it is a view of. Errs on the safe side."""
    if sys.getrefcount(array) > _OWN + 1:  # the caller's variable
        return True
    base = array.base
    if base is None:
        return False
    # Memory that is not NumPy's, such as a bytearray or a shared segment, may be seen by anything.
    return not isinstance(base, np.ndarray) or not _is_of_numpy(base) or sys.getrefcount(base) > _OWN


def _is_of_numpy(array: NDArray[Any]) -> bool:
    """Whether NumPy itself has allocated an array's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base is None
