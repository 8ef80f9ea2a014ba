"""The common base of Lasso, ElasticNet and LogisticRegression: parameters, training, history."""

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints import learned_data
from strads.errors import ArgumentError, InputError
from strads.models._iterative import Epoch, OnIteration, Solver
from strads.models._parameters import check_positive, check_switches, check_whole_numbers, is_number
from strads.models.arrays import Array
from strads.models.kernels.datafits import Datafit
from strads.models.regression.centring import NO_SHIFT, centre_far_columns, warn_of_rounding
from strads.models.regression.coordinate_descent import CoordinateDescent
from strads.models.regression.design import Design
from strads.models.regression.fitting import Regression, standard_deviations
from strads.models.regression.inputs import as_design, as_features, refuse_not_finite
from strads.models.regression.linear_estimator import LinearEstimator
from strads.models.regression.solver import Descent, LinearSolver, Solution
from strads.models.regression.working_set import WorkingSet
from strads.progress import Shown


class PenalizedLinearModel(LinearEstimator):
    """A linear model with an elastic-net penalty; subclasses define the loss and the meaning of `alpha` or `C`."""

    _parameter_classes = (WorkingSet, CoordinateDescent)
    shown: ClassVar = Shown(
        {"objective": "objective", "relative_gap": "duality gap", "active": "nonzero"},
        "entries",
        "iteration",
        "looking at all columns",
        has_plan=False,
    )

    _penalized_by: ClassVar[str]

    positive: bool = False  # whether no coefficient may be negative
    solver: LinearSolver | None  # None: `WorkingSet()`
    l1_ratio: float  # share of the ℓ1 norm in the penalty, from 0 to 1
    fit_intercept: bool  # whether there is an intercept, which is not penalized
    standardize: bool  # whether to penalize coefficients as if columns were divided by their standard deviations
    tol: float  # duality gap to reach, relative to the objective at w = 0
    warm_start: bool  # whether `fit` starts from the coefficients of an earlier one

    @abstractmethod
    def _datafit(self, X: Any, y: Any, sample_weight: Any) -> Datafit:
        """Check y and the weights, and return the loss; sets attributes that depend on y."""

    @abstractmethod
    def _strength_of(self, value: float, regression: Regression) -> float:
        """The penalty strength in the problem that is solved, for a value of `alpha` or `C`."""

    @abstractmethod
    def _parameter(self, strength: float, regression: Regression) -> float:
        """The value of `alpha` or `C` for a penalty strength."""

    @abstractmethod
    def _unit(self, regression: Regression) -> float:
        """The factor that converts the solver's objective to the user's."""

    @abstractmethod
    def _set_coefficients(self, coef: NDArray[Any], intercept: np.floating) -> None:
        """Set the coefficients, of shape (features,), as attributes with scikit-learn's shapes."""

    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None, start: float) -> None:
        X, regression = self._prepare(X, y, sample_weight)
        strength = self._strength_of(getattr(self, self._penalized_by), regression)
        self._solve(X, regression, strength, self._begin(regression), on_iteration, time.perf_counter() - start)

    def _solve(
        self,
        X: Any,
        regression: Regression,
        strength: float,
        begin: tuple[Array | None, float],
        on_iteration: OnIteration | None = None,
        seconds: float = 0.0,
    ) -> Descent:
        """Fit with a strength of the penalty, after some seconds of preparation; warn unless that has converged."""
        start = time.perf_counter()
        problem = regression.problem(strength)
        solver = WorkingSet() if self.solver is None else self.solver
        with self._explained(X):
            descent = solver.start(problem, float(self.tol) * problem.null_objective, *begin)
        with _Fit(self, X, regression, descent) as run:
            seconds += time.perf_counter() - start
            data = learned_data(X, regression.datafit, getattr(self, "classes_", None))
            stopped = self._train(run, on_iteration, seconds=seconds, data=data)
        warn_of_rounding(self, self._verdict["rounding"], regression.design.dtype)
        advice = "only rounding errors are left: scale the columns, or increase" if descent.is_stuck else "increase"
        self._warn_unless_converged(stopped, f"{advice} max_iter={self.max_iter}, tol or the penalty")
        return descent

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, make_design: Callable[[Any], Design] | None = None
    ) -> tuple[Any, Regression]:
        """Check all input; return the converted X and the regression."""
        self._check_parameters()
        if self.is_smooth:
            raise ArgumentError(
                f"l1_ratio={self.l1_ratio!r}: an ℓ1 penalty is needed: without one no coefficient becomes 0"
            )
        X = as_features(self, X)
        datafit = self._datafit(X, y, sample_weight)
        centred, shift = X, NO_SHIFT
        if self.fit_intercept:
            centred, shift = centre_far_columns(X, datafit.weights)
            datafit, target = datafit.centred()
            shift = replace(shift, target=target)
        design = (make_design or as_design)(centred)
        scales = np.ones(design.shape[1])
        if self.standardize:
            scales = standard_deviations(design, datafit.weights)
            if not np.isfinite(scales).all():
                refuse_not_finite(self, X)
        kind = float(self.l1_ratio), bool(self.fit_intercept), bool(self.positive)
        return X, Regression(design, datafit, scales, *kind, shift)

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty lacks an ℓ1 norm, of an estimator that can do without."""
        return False

    def _refuse_options(self, what: str) -> None:
        """Reject options that only `solver` knows."""
        for name in ("standardize", "solver"):
            if getattr(self, name):
                advice = "; put a StandardScaler in front" if name == "standardize" else ""
                raise ArgumentError(f"{name}={getattr(self, name)!r} is {what}{advice}")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_switches(self, "fit_intercept", "standardize", "positive", "warm_start")
        if not (is_number(self.l1_ratio) and 0 <= self.l1_ratio <= 1):
            raise ArgumentError(f"l1_ratio={self.l1_ratio!r}: give a number from 0 to 1")
        if self.is_smooth:
            self._refuse_options("for penalties with an ℓ1 norm")
        if self.solver is not None and not isinstance(self.solver, LinearSolver):
            raise ArgumentError(f"solver={self.solver!r}: give WorkingSet(), CoordinateDescent(…) or None")
        check_whole_numbers(self, "max_iter")
        check_positive(self, "tol", or_zero=True)

    def _begin(self, regression: Regression) -> tuple[Array | None, float]:
        """Return the starting point: 0 or, with `warm_start`, the result of an earlier fit, which is then discarded."""
        start: tuple[Array | None, float] = None, 0.0
        coefs = self._earlier((1, regression.design.shape[1]))
        if coefs is not None:
            coef = coefs[0]
            intercept = float(np.ravel(getattr(self, "intercept_", 0.0))[0])  # a user may have set the former alone
            intercept = float(regression.shift.inside(coef, intercept)) if self.fit_intercept else 0.0
            coef = coef.astype(np.float64)
            start = np.maximum(coef, 0.0) if self.positive else coef, intercept
        self._forget("coef_")
        return start

    @contextmanager
    def _explained(self, X: Any) -> Iterator[None]:
        """After a solver has failed on a non-finite number, find the entry of X that caused it."""
        try:
            yield
        except (InputError, ArgumentError, FloatingPointError, OverflowError):
            refuse_not_finite(self, X)
            raise

    def _publish(self, learnt: tuple[Solution, Regression]) -> None:
        solution, regression = learnt
        dtype = regression.design.dtype
        self.dual_gap_ = solution.gap * self._unit(regression)
        self._set_coefficients(solution.coef.astype(dtype), dtype.type(regression.intercept(solution)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file (NumPy's `.npz`, no pickle); `load` of its class reads it.

        Raises
        ------
        ArgumentError
            If the solver's schedule is a function: files do not store code.
        """
        if callable(getattr(self.solver, "schedule", None)):
            raise ArgumentError(
                "solver.schedule is a function, which a file cannot hold: set_params(solver=None) before saving"
            )
        super().save(path)


class _Fit(Solver):
    """A descent as the iterations of an estimator, with the gap in the estimator's units."""

    checkpointed = ("_descent",)
    is_intact = False  # only between iterations

    def __init__(self, model: PenalizedLinearModel, X: Any, regression: Regression, descent: Descent):
        self._model, self._X, self._regression, self._descent = model, X, regression, descent
        self._unit = model._unit(regression)

    def run_epoch(self, number: int) -> Epoch:
        """Run an iteration of the solver."""
        with self._model._explained(self._X):
            progress = self._descent.advance(number)
        solution, unit = self._descent.solution(), self._unit
        if (number == self._model.max_iter or self._descent.is_stuck) and not solution.converged:
            refuse_not_finite(self._model, self._X)
        figures = {"gap": progress.gap * unit, "relative_gap": solution.relative_gap, "active": progress.active}
        return Epoch(
            progress.samples, progress.objective * unit, figures, is_last=solution.converged or self._descent.is_stuck
        )

    def verdict(self) -> dict[str, float]:
        """Return whether the descent has converged, its relative gap, and what rounding adds to it."""
        solution = self._descent.solution()
        rounding = self._regression.rounding(solution)
        return {"converged": solution.converged, "reached": solution.relative_gap, "rounding": rounding}

    def learnt(self) -> tuple[Solution, Regression]:
        """Return the solution so far, and the data that give it its dtype and units."""
        return self._descent.solution(), self._regression

    def close(self) -> None:
        """Release everything on the nodes."""
        self._descent.close()
