"""Sequential coordinate descent on the dual of a linear support vector machine, on one machine."""

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.dual_sweeps import sweep
from strads.models.regression.solver import Progress
from strads.models.regression.support_vectors import DualProblem, DualSolution, SupportVectorDescent

_FIRST_EPOCHS = 10  # before the first evaluation of the gap, which costs half an epoch
_EASE = 0.5  # share of the goal below which the sum of the gap's terms, each at its visit, is worth an evaluation


class SequentialDescent(SupportVectorDescent):
    """A dual problem being solved by sweeps over the samples in random orders, with shrinking (Hsieh et al. 2008, §3).

    The terms of the duality gap are by-products of a sweep, so the gap itself is evaluated only if their sum is small,
    or after half as many epochs again.
    """

    checkpointed = ("_variables", "_w", "_limits", "_order", "_active", "_epochs", "_touched", "_next", "_progress")

    def __init__(
        self,
        problem: DualProblem,
        goal: float,
        max_iter: int,
        seed: int,
        variables: NDArray[np.float64] | None = None,
    ):
        self._problem, self._goal, self._max_iter, self._seed = problem, goal, max_iter, seed
        self._variables = problem.start(variables)
        self._w = np.zeros(problem.design.shape[0] + 1)
        self._order = np.arange(len(self._variables))
        self._limits = np.array([-np.inf, np.inf])
        self._active = len(self._order)
        self._epochs, self._touched, self._next = 0, 0, _FIRST_EPOCHS
        self._restart()

    def _restart(self) -> None:
        """Compute w from the variables: sweeps leave rounding errors; and let all samples back in."""
        self._w[:-1] = self._problem.design.predict(self._variables)
        self._w[-1] = self._problem.constant * self._variables.sum()
        self._limits[:] = -np.inf, np.inf
        self._active = len(self._order)

    def advance(self, iteration: int) -> Progress:
        """Sweep until an evaluation of the gap is worthwhile, and make it; iterations are epochs, from 0."""
        problem = self._problem
        if iteration > 1:
            self._sweep()
        objective, dual = problem.objectives(self._w[:-1], self._variables)
        samples, active = self._touched + iteration * problem.design.entries, int(np.count_nonzero(self._variables))
        self._progress = Progress(self._epochs, samples, objective, max(objective - dual, 0.0), active)
        return self._progress

    def _sweep(self) -> None:
        problem, box = self._problem, self._problem.box
        mean = problem.design.entries / max(1, len(self._order))
        until = min(self._epochs + self._next, self._max_iter)
        while self._epochs < until:
            random = np.random.default_rng([self._seed, self._epochs])
            random.shuffle(self._order[: self._active])
            visited = self._active
            self._active, gap, changed = sweep(
                problem.design.columns,
                problem.squares,
                *box,
                problem.constant,
                self._w,
                self._variables,
                self._order,
                self._active,
                self._limits,
            )
            self._touched += int(mean * (visited + changed))
            self._epochs += 1
            if gap <= _EASE * self._goal:
                break
            least, most = self._limits
            self._limits[:] = least if least < 0.0 else -np.inf, most if most > 0.0 else np.inf
        self._next = max(_FIRST_EPOCHS, self._epochs // 2)
        self._restart()

    def solution(self) -> DualSolution:
        """Return w, the constant and the variables that were evaluated last."""
        problem = self._problem
        constant = problem.constant * float(self._w[-1])
        return DualSolution(self._w[:-1], constant, self._progress, problem.null_objective, self._goal, self._variables)
