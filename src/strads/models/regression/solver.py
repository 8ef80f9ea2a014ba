"""The contract of solvers of linear models: small immutable objects that minimize a `Problem` to a duality gap."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from strads.models._stopping import wants_to_stop
from strads.models.arrays import Array
from strads.models.regression.problem import Problem

_IDLE = 1e-6  # of the gap: a decrease of the objective, or of the gap, that leads nowhere
_MAX_IDLE = 5


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


def halved_length(objective: Callable[[float], float], start: float, promised: float) -> float:
    """Return the first of 1, ½, ¼ … at which a step decreases the objective sufficiently (Armijo's rule), or 0.

    Parameters
    ----------
    objective
        Returns the objective after a share of the step.
    start, promised
        The objective before the step, and the slope there, which is at most 0 but for rounding.
    """
    length = 1.0
    while length > 1e-10:
        if objective(length) <= start + 1e-4 * length * min(promised, 0.0) + 1e-15 * abs(start):
            return length
        length *= 0.5
    return 0.0


OnProgress = Callable[[Progress], bool | None]


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimizer, to within a duality gap.

    Attributes
    ----------
    coef
        float64 array of shape (features,).
    intercept
        The intercept; 0 if none is fitted.
    progress
        The last report.
    null_objective
        The objective at w = 0 with the best intercept.
    goal
        The duality gap to reach.
    """

    coef: Array
    intercept: float
    progress: Progress
    null_objective: float
    goal: float

    @property
    def converged(self) -> bool:
        """Whether the goal was reached."""
        return self.progress.gap <= self.goal

    @property
    def gap(self) -> float:
        """Upper bound on the suboptimality of the objective."""
        return self.progress.gap

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective at w = 0; 0 if that is 0, as w = 0 is then optimal."""
        return self.progress.gap / self.null_objective if self.null_objective > 0.0 else 0.0


class Stagnation:
    """Counts the iterations in a row that lower neither the objective nor the gap: only rounding errors are left."""

    def __init__(self) -> None:
        self._objective = self._gap = math.inf  # the lowest so far
        self._idle = 0

    def see(self, objective: float, gap: float) -> None:
        """Note what an iteration has reached."""
        is_idle = objective >= self._objective - _IDLE * gap and gap >= (1.0 - _IDLE) * self._gap
        self._idle = self._idle + 1 if is_idle else 0
        self._objective, self._gap = min(objective, self._objective), min(gap, self._gap)

    @property
    def is_over(self) -> bool:
        """Whether further iterations are in vain."""
        return self._idle >= _MAX_IDLE


class Descent(ABC):
    """A problem being solved, at a starting point at first."""

    @abstractmethod
    def advance(self, iteration: int) -> Progress:
        """Improve the coefficients and measure them; iteration 1 only measures the starting point."""

    @abstractmethod
    def solution(self) -> Solution:
        """Return the coefficients that were measured last."""

    @property
    def is_stuck(self) -> bool:
        """Whether only rounding errors are left, so that no further iteration will improve the coefficients."""
        return False

    def close(self) -> None:  # noqa: B027 – not every solver has something to release
        """Release everything on the nodes."""


class LinearSolver(ABC):
    """How a problem is minimized."""

    @abstractmethod
    def start(self, problem: Problem, goal: float, coef: Array | None = None, intercept: float = 0.0) -> Descent:
        """Begin with a problem.

        Parameters
        ----------
        problem
            What to minimize.
        goal
            Duality gap at which the solver may stop.
        coef, intercept
            Starting point; by default 0, with the best intercept.
        """

    def minimize(
        self,
        problem: Problem,
        *,
        tol: float = 1e-6,
        max_iter: int = 1000,
        coef: Array | None = None,
        intercept: float = 0.0,
        on_progress: OnProgress | None = None,
    ) -> Solution:
        """Minimize to a duality gap of `tol` times the objective at w = 0.

        Parameters
        ----------
        problem, coef, intercept
            As in `start`.
        tol
            Relative duality gap to reach.
        max_iter
            Largest number of iterations.
        on_progress
            Called after each iteration; the solver stops if it returns True.

        Raises
        ------
        ArgumentError, InputError
            If X holds NaN or infinity, or the objective overflows or diverges.
        """
        goal = tol * problem.null_objective
        with closing(self.start(problem, goal, coef, intercept)) as descent:
            for iteration in range(1, max_iter + 1):
                progress = descent.advance(iteration)
                stops = on_progress is not None and wants_to_stop(on_progress(progress))
                if stops or progress.gap <= goal or descent.is_stuck:
                    break
            return descent.solution()
