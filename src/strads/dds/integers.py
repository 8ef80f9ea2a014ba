"""Integers and the dtypes that have to hold them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError


def check_integers_fit(values: NDArray[Any], dtype: np.dtype) -> None:
    """Raise InputError if whole numbers are beyond the limits of an integer dtype: a conversion would wrap them."""
    if values.dtype.kind not in "iu" or dtype.kind not in "iu" or np.can_cast(values.dtype, dtype) or not values.size:
        return
    limits = np.iinfo(dtype)
    for value in (int(values.min()), int(values.max())):
        if not limits.min <= value <= limits.max:
            raise InputError(f"{value} does not fit {dtype}, which holds {limits.min} to {limits.max}")
