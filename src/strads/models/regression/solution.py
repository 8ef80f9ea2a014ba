"""What a solver returns, and what it tells while it runs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Progress:
    """One look at a solver's progress.

    Attributes
    ----------
    iteration
        From 1.
    samples
        Entries of X touched so far: one for each stored entry that a pass over a column reads.
    objective, gap
        The primal objective, and its distance to a dual objective: to the minimum it is not farther.
    active
        Coefficients that are not 0.
    """

    iteration: int
    samples: int
    objective: float
    gap: float
    active: int


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimizer, to within a duality gap.

    Attributes
    ----------
    coef
        float64 array of shape (features,).
    intercept
        0 where none was asked for.
    objective, gap
        As in `Progress`, at the end.
    null_objective
        The objective at w = 0 with the best intercept: what a relative gap is relative to.
    iterations
        Looks that were taken.
    samples
        As in `Progress`.
    converged
        Whether gap ≤ tol · null_objective.
    """

    coef: NDArray[np.float64]
    intercept: float
    objective: float
    gap: float
    null_objective: float
    iterations: int
    samples: int
    converged: bool


OnProgress = Callable[[Progress], bool | None]
