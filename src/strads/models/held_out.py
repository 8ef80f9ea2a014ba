"""Which samples are held out, to measure on."""

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError


def held_out(
    count: int, share: float, seed: int | np.random.Generator | None, what: str = "samples"
) -> NDArray[np.bool_]:
    """Return a mask of shape (count,) of randomly chosen samples: at least one, and never all.

    Raises
    ------
    InputError
        If there are fewer than 2.
    """
    if count < 2:
        raise InputError(f"give at least 2 {what}, one to hold out")
    held = np.zeros(count, bool)
    chosen = min(max(1, round(share * count)), count - 1)
    held[np.random.default_rng(seed).choice(count, chosen, replace=False)] = True
    return held
