"""The common base of Lasso and LogisticRegression: parameters, training, history, files."""

import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.extmath import safe_sparse_dot

from strads.errors import ArgumentError, InputError
from strads.models._parameters import check_choice, check_positive, check_share, check_whole_numbers, is_number
from strads.models._stopping import Stopping
from strads.models.kernels.datafits import Datafit
from strads.models.model_files import load_model, plain, save_model
from strads.models.regression.fitting import SCHEDULES, Method, Regression, standard_deviations
from strads.models.regression.inputs import as_design, as_features, as_features_to_predict, refuse_not_finite
from strads.models.regression.solution import Progress, Solution

IterationRecord = dict[str, Any]
OnIteration = Callable[[IterationRecord], object]


class PenalizedLinearModel(BaseEstimator):
    """A linear model with an elastic-net penalty; subclasses define the loss and the meaning of `alpha` or `C`."""

    _penalized_by: ClassVar[str]

    schedule: Any
    concurrency: int | None
    pipeline_depth: int
    prioritize: bool
    check_dependencies: bool
    threshold: float
    reorder: bool
    l1_ratio: float
    fit_intercept: bool
    standardize: bool
    tol: float
    max_iter: int
    warm_start: bool
    random_state: int

    @abstractmethod
    def _regression(self, X: Any, y: Any, sample_weight: Any) -> Regression:
        """Check and combine the data; sets attributes that depend on y."""

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
    def _publish(self, coef: NDArray[Any], intercept: np.floating) -> None:
        """Set the coefficients, of shape (features,), as attributes with scikit-learn's shapes."""

    # -- training ------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None) -> Self:
        start = time.perf_counter()
        X, regression = self._prepare(X, y, sample_weight)
        coef, intercept = self._begin(regression)
        self.history_: list[IterationRecord] = []
        with Stopping() as stopping:

            def look(progress: Progress) -> bool:
                self._record(progress, regression, time.perf_counter() - start)
                return stopping.look(self.history_[-1], on_iteration)

            with self._explained(X):
                problem = regression.problem(self._strength_of(getattr(self, self._penalized_by), regression))
                solution = self._method().minimize(problem, coef, intercept, look)
                if not solution.converged and not stopping.is_wanted:
                    refuse_not_finite(self, X)
            self._take_over(solution, regression)
        if not solution.converged and not stopping.is_wanted:
            self._warn(solution)
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Regression]:
        """Check all input; return the converted X and the regression."""
        self._check_parameters()
        X = as_features(self, X)
        return X, self._regression(X, y, sample_weight)

    def _check_parameters(self) -> None:
        if not is_number(self.l1_ratio) or not 0 < self.l1_ratio <= 1:
            raise ArgumentError(
                f"l1_ratio={self.l1_ratio!r}: give a number above 0, at most 1; without any ℓ1 penalty nothing is "
                "sparse, and other estimators, such as sklearn.linear_model.Ridge, are faster"
            )
        if not callable(self.schedule):
            check_choice(self, "schedule", SCHEDULES)
        if self.concurrency is not None:
            check_whole_numbers(self, "concurrency")
        check_whole_numbers(self, "pipeline_depth", "max_iter")
        check_share(self, "threshold")
        check_positive(self, "tol", or_zero=True)
        check_whole_numbers(self, "random_state", least=0)

    def _method(self) -> Method:
        return Method(
            schedule=self.schedule,
            concurrency=None if self.concurrency is None else int(self.concurrency),
            pipeline_depth=int(self.pipeline_depth),
            prioritize=bool(self.prioritize),
            check_dependencies=bool(self.check_dependencies),
            threshold=float(self.threshold),
            reorder=bool(self.reorder),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            seed=int(self.random_state),
        )

    def _assemble(self, X: Any, datafit: Datafit) -> Regression:
        design = as_design(X)
        scales = np.ones(design.shape[1])
        if self.standardize:
            scales = standard_deviations(design, datafit.weights)
            if not np.isfinite(scales).all():
                refuse_not_finite(self, X)
        return Regression(design, datafit, scales, float(self.l1_ratio), bool(self.fit_intercept))

    def _begin(self, regression: Regression) -> tuple[NDArray[np.float64] | None, float]:
        """Return the starting point: 0 or, with `warm_start`, the result of an earlier fit, which is then discarded."""
        start: tuple[NDArray[np.float64] | None, float] = None, 0.0
        if self.warm_start and hasattr(self, "coef_"):
            coef, intercept = self._flat()
            features = regression.design.shape[1]
            if len(coef) != features:
                raise InputError(
                    f"warm_start=True, and the earlier fit had {len(coef)} features, but X has {features}: "
                    "fit a new estimator"
                )
            start = coef.astype(np.float64), intercept if self.fit_intercept else 0.0
        self.__dict__.pop("coef_", None)
        return start

    def _record(self, progress: Progress, regression: Regression, seconds: float) -> None:
        unit, null = self._unit(regression), regression.null_objective
        self.history_.append(
            {
                "iteration": progress.iteration,
                "seconds": seconds,
                "samples": progress.samples,
                "objective": progress.objective * unit,
                "gap": progress.gap * unit,
                "relative_gap": progress.gap / null if null > 0.0 else 0.0,
                "active": progress.active,
            }
        )

    @contextmanager
    def _explained(self, X: Any) -> Iterator[None]:
        """After a solver has failed on a non-finite number, find the entry of X that caused it."""
        try:
            yield
        except (InputError, ArgumentError, FloatingPointError, OverflowError):
            refuse_not_finite(self, X)
            raise

    def _take_over(self, solution: Solution, regression: Regression) -> None:
        dtype = regression.design.dtype
        self.n_iter_ = solution.iterations
        self.dual_gap_ = solution.gap * self._unit(regression)
        self._publish(solution.coef.astype(dtype), dtype.type(solution.intercept))

    def _warn(self, solution: Solution) -> None:
        reached = solution.gap / solution.null_objective if solution.null_objective > 0.0 else solution.gap
        warnings.warn(
            f"{type(self).__name__} did not converge in {solution.iterations} iterations: the duality gap is "
            f"{reached:.2g} of the objective at w = 0, above tol={self.tol:g}: increase max_iter={self.max_iter}, tol "
            "or the penalty",
            ConvergenceWarning,
            stacklevel=4,
        )

    # -- prediction ----------------------------------------------------------------------------------------

    def _flat(self) -> tuple[NDArray[Any], float]:
        """Coefficients of shape (features,), and the intercept."""
        return np.ravel(self.coef_), float(np.ravel(self.intercept_)[0])

    def _linear(self, X: Any) -> NDArray[Any]:
        """X w + b."""
        self._check_fitted()
        X = as_features_to_predict(self, X)
        coef, _ = self._flat()
        return np.asarray(safe_sparse_dot(X, coef)) + np.ravel(self.intercept_)[0]

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- files ---------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file (NumPy's `.npz`, no pickle); `load` of its class reads it.

        Raises
        ------
        ArgumentError
            If `schedule` is a function: files do not store code.
        """
        self._check_fitted()
        if callable(self.schedule):
            raise ArgumentError(
                "schedule is a function, which a file cannot hold: set_params(schedule='working_set') before saving"
            )
        arrays = {"coef": self._flat()[0], "intercept": np.ravel(self.intercept_)[:1], **self._saved_arrays()}
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in"] = self.feature_names_in_.astype(str)
        parameters = {
            "params": plain(self.get_params()),
            "n_iter": self.n_iter_,
            "dual_gap": self.dual_gap_,
            "history": self.history_,
        }
        save_model(path, type(self).__name__, parameters, arrays)

    def _saved_arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote.

        Raises
        ------
        InputError
            If the file is missing, corrupt, or holds another kind of model.
        """
        parameters, arrays = load_model(path, cls.__name__)
        try:
            model = cls(**parameters["params"])
            model.n_iter_ = int(parameters["n_iter"])
            model.dual_gap_ = float(parameters["dual_gap"])
            model.history_ = list(parameters["history"])
            model._restore(arrays)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"{os.fspath(path)}: the model file is incomplete ({error})") from error
        return model

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Set the array attributes."""
        coef, intercept = arrays["coef"], arrays["intercept"]
        if coef.ndim != 1 or coef.dtype.kind != "f" or intercept.shape != (1,):
            raise ValueError(f"coefficients of shape {coef.shape} and dtype {coef.dtype}")
        if "feature_names_in" in arrays:
            self.feature_names_in_ = arrays["feature_names_in"].astype(object)
        self.n_features_in_ = len(coef)
        self._publish(coef, intercept[0])
