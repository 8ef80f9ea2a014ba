"""What other code can see of an array's memory."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_shared(array: NDArray[Any]) -> bool:
    """Whether there may be views of a table's array, or of the memory that it is a view of. Errs on the safe side.

    Call it with an attribute, or what a function returns: a variable is a reference too.
    """
    references, of_base = _references(array)
    if references > _ALONE[0]:
        return True
    base = array.base
    if base is None:
        return False
    # Memory that others have allocated, such as a bytearray or a shared segment, may be seen by anything.
    return not isinstance(base, np.ndarray) or not _is_private(base) or of_base > _ALONE[1]


def _references(array: NDArray[Any]) -> tuple[int, int]:
    """Return the number of references to an array, and to what it is a view of."""
    return sys.getrefcount(array), sys.getrefcount(array.base)


def _is_private(array: NDArray[Any]) -> bool:
    """Whether an array's memory was allocated for arrays only: by NumPy, or by what says so (`is_private`)."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    memory = array.base.obj if isinstance(array.base, memoryview) else array.base
    return memory is None or getattr(memory, "is_private", False)


def _of_alone(array: NDArray[Any]) -> tuple[int, int]:
    return _references(array)


_alone = [np.zeros(2)[:1]]
_ALONE = _of_alone(_alone[0])  # what `is_shared` counts then, which depends on the version of Python
