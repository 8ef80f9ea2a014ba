"""Several classes, each separated from the rest by a problem of its own, as the iterations of one estimator."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints import Load, Save, Tree
from strads.models._iterative import Epoch, Solver
from strads.models.regression.support_vectors import DualSolution, SupportVectorDescent


class OneVsRest(Solver):
    """Solves one problem after the other.

    Parameters
    ----------
    start : callable
        Begins with a problem, given it, `tol` and its starting point.
    problems : list of DualProblem or Problem
        As that needs them.
    tol : float
        Duality gap to reach, relative to the objective at w = 0.
    variables : list of arrays of shape (samples,), or None
        Starting point of each problem.
    """

    is_intact = False  # only between iterations

    def __init__(
        self,
        start: Callable[..., SupportVectorDescent],
        problems: Sequence[Any],
        tol: float,
        variables: Sequence[NDArray[np.float64] | None],
    ):
        self._starts = [partial(start, problem, tol, given) for problem, given in zip(problems, variables, strict=True)]
        self._dtype = problems[0].design.dtype
        self._solved: list[DualSolution] = []
        self._descent: SupportVectorDescent | None = None
        self._step = self._samples = 0

    def run_epoch(self, number: int) -> Epoch:
        """Run some epochs of the current problem."""
        if self._descent is None:
            self._descent, self._step = self._starts[len(self._solved)](), 0
        self._step += 1
        progress, index = self._descent.advance(self._step), len(self._solved)
        solution, samples = self._descent.solution(), self._samples + progress.samples
        figures = {
            "class_index": index,
            "iteration": progress.iteration,
            "gap": progress.gap,
            "relative_gap": solution.relative_gap,
            "active": progress.active,
        }
        if self._descent.is_over:
            self._samples = samples
            self._solved.append(solution)
            self.close()
        return Epoch(samples, progress.objective, figures, is_last=len(self._solved) == len(self._starts))

    def verdict(self) -> dict[str, float]:
        """Return whether all problems are solved, and the largest relative gap."""
        found, _ = self.learnt()
        converged = all(solution.converged for solution in found)
        return {"converged": converged, "reached": max(solution.relative_gap for solution in found)}

    def checkpoint_state(self, save: Save) -> Tree:
        """Return the solutions so far, and the state of the current problem."""
        descent = self._descent
        return [save([self._solved, self._step, self._samples]), descent is not None, save(descent)]

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore the state; an engine is started first if its state is there."""
        self.close()
        solutions, is_running, descent = tree
        load.know(DualSolution)
        self._solved, self._step, self._samples = load(solutions)
        if is_running:
            self._descent = self._starts[len(self._solved)]()
            if dict(descent["state"]).get("_engine") is not None:
                self._descent.start_engine()
        load(descent, self._descent)

    def learnt(self) -> tuple[list[DualSolution], np.dtype[Any]]:
        """Return a solution for each problem, and the dtype of X; of problems not reached, the starting point."""
        found = list(self._solved)
        if self._descent is not None:
            found.append(self._descent.solution())
        for start in self._starts[len(found) :]:
            with closing(start()) as descent:
                descent.advance(1)
                found.append(descent.solution())
        return found, self._dtype

    def close(self) -> None:
        """Release everything on the nodes."""
        if self._descent is not None:
            self._descent.close()
            self._descent = None
