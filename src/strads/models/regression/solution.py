"""The result of a solver, and its progress reports."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Progress:
    """One report of a solver's progress.

    Attributes
    ----------
    iteration
        Number of the iteration, from 1.
    samples
        Number of entries of X touched so far: one for each stored entry that a pass over a column reads.
    objective, gap
        The primal objective, and its distance to a dual objective: an upper bound on the suboptimality.
    active
        Number of nonzero coefficients.
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
        The intercept; 0 if none is fitted.
    objective, gap
        As in `Progress`, at the end.
    null_objective
        The objective at w = 0 with the best intercept: the denominator of the relative gap.
    iterations
        Number of progress reports.
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
