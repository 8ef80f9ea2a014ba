"""Cuts a range into consecutive parts."""

import numpy as np
from numpy.typing import NDArray


def even_bounds(count: int, parts: int) -> NDArray[np.int64]:
    """Return the bounds of parts of 0..count − 1 whose sizes differ by at most one.

    Returns
    -------
    int64 array of shape (parts + 1,)
        From 0 to `count`, ascending.
    """
    return np.linspace(0, count, parts + 1).astype(np.int64)
