"""Linear support vector machines: Newton's method on the primal, coordinate descent on the dual, or working sets."""

import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints import learned_data
from strads.errors import ArgumentError, InputError
from strads.models._iterative import OnIteration
from strads.models._parameters import (
    check_choice,
    check_positive,
    check_switches,
    check_whole_numbers,
    recorded_seed,
)
from strads.models.arrays import Array
from strads.models.regression.centring import warn_of_rounding
from strads.models.regression.inputs import (
    as_class_factors,
    as_classes,
    as_design,
    as_features,
    as_rows,
    as_sample_weights,
    refuse_not_finite,
)
from strads.models.regression.linear_classifier import LARGEST, LinearClassifier
from strads.models.regression.linear_estimator import dense
from strads.models.regression.one_vs_rest import OneVsRest
from strads.models.regression.problem import Problem
from strads.models.regression.sparse_support_vectors import SparseDescent, sparse_problem, with_constant
from strads.models.regression.support_vector_solver import start_descent
from strads.models.regression.support_vectors import DualProblem, DualSolution, SupportVectorDescent

_LOSSES = ("hinge", "squared_hinge")


@dataclass(eq=False, repr=False)
class LinearSVC(LinearClassifier):
    """Minimizes ½‖w‖² or ‖w‖₁ + C Σ s_i max(0, 1 − y_i (x_iᵀw + b))ᵖ, with p = 1 (hinge) or 2 (squared hinge).

    Data with at most 2,000 features and no more features than samples (fewer, if X is sparse with few entries) are
    fitted by Newton's method on the primal (Keerthi and DeCoste 2005), whatever the scales of features; the hinge is
    smoothed for it, ever less (Chapelle 2007), unless `tol` is below 1e-8. Other data are fitted by coordinate descent
    on the dual with shrinking (Hsieh et al. 2008): a coordinate is a sample. Several classes are handled one-vs-rest.
    With `concurrency` above 1, or on several nodes, each of which holds some of the features, the dual runs on the
    Dynamic Engine: samples are drawn by their last change, as `schmp.PrioritySchedule` draws parameters.

    Parameters
    ----------
    C : float, default 1.0
        Inverse strength of the regularization.
    penalty : {"l2", "l1"}, default "l2"
        "l1" gives sparse coefficients, by working sets as in `Lasso`; it needs the squared hinge loss.
    loss : {"squared_hinge", "hinge"}, default "squared_hinge"
    fit_intercept : bool, default True
        Whether to append a constant feature to every sample; as in liblinear, its weight is regularized as well.
    intercept_scaling : float, default 1.0
        Value of the constant feature; the larger, the less its weight is regularized.
    tol : float, default 1e-4
        Duality gap to reach, relative to the primal objective at w = 0.
    max_iter : int, default 1000
        Largest number of epochs; an epoch is a step of Newton's method, or visits each sample once, except those that
        have settled.
    concurrency : int, default 1
        Largest number of dual variables updated at a time, of nearly uncorrelated samples. With 1, the methods are
        sequential; on several nodes each update costs a round trip, so that dozens are useful. With an intercept, which
        all samples share, about ten: steps get shorter the more samples are updated at a time.
    class_weight : dict or "balanced", optional
        Factor of C for each class; "balanced": the inverse of its share of the samples' weights. With several
        classes, the factor of a class applies only in the problem of that class against the rest, as in liblinear.
    n_jobs : int or None, default None
        Threads on one machine, useful with a larger `concurrency`; None: those of `strads.init`, -1: all cores.
    warm_start : bool, default False
        Whether `fit` starts from the dual variables of the previous fit, which must have had as many samples and
        classes; with `penalty="l1"` from its coefficients.
    random_state : int, RandomState or None, default 0
        Seed of the draws; None: another one at each fit. With the same seed the result is bitwise identical on one
        machine, and on equally many nodes and threads.
    verbose : bool, default False
        As of `ElasticNet`.
    dual, multi_class
        Without effect: accepted for compatibility with scikit-learn; "ovr" is the only `multi_class`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Number of epochs; with several classes, the largest.
    dual_gap_ : float
        The final duality gap, with several classes the largest: an upper bound on the suboptimality of the objective.
    dual_coef_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        The dual variables times y_i, from which `warm_start` starts; not saved to files. Not with `penalty="l1"`.
    history_ : list of dict
        One record per evaluation of the gap: `class_index`; `iteration`, epochs of this class, 0 at the start;
        `seconds` and `samples` (entries of X touched) of training so far; `objective`; `gap`; `relative_gap`, which is
        compared with `tol`; `active` (support vectors).

    Notes
    -----
    X is used in place if it is float32 or float64 and in C order or CSR. When training ends early, classes not yet
    reached keep their initial values, by default 0.
    """

    C: float = 1.0
    _: KW_ONLY
    penalty: str = "l2"
    loss: str = "squared_hinge"
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    tol: float = 1e-4
    max_iter: int = 1000
    concurrency: int = 1
    class_weight: Any = None
    n_jobs: int | None = None
    warm_start: bool = False
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False
    dual: Any = "auto"
    multi_class: str = "ovr"

    _not_in_files: ClassVar = ("dual_coef_",)
    _without_effect = (*LinearClassifier._without_effect, "dual")

    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None, start: float) -> None:
        is_sparse = self.penalty == "l1"
        X = as_features(self, X) if is_sparse else as_rows(self, X)
        self.classes_, codes = as_classes(y, X.shape[0])
        strengths = self._strengths(codes, float(self.C) * as_sample_weights(sample_weight, X.shape[0]))
        begin, problems = (self._sparse if is_sparse else self._smooth)(X, codes, strengths)
        variables = self._begin(len(strengths), problems[0].design.shape[1])
        with OneVsRest(begin, problems, float(self.tol), variables) as run:
            evaluations = len(problems) * (int(self.max_iter) + 1)
            seconds = time.perf_counter() - start
            data = learned_data(X, codes, self.classes_, [strength for _, strength in strengths])
            stopped = self._train(run, on_iteration, seconds=seconds, max_epochs=evaluations, data=data)
            self._warn_of_rounding(problems, run.learnt()[0], X.dtype)
        self._warn_unless_converged(stopped, f"increase max_iter={self.max_iter}, or scale the features")

    def _warn_of_rounding(
        self, problems: Sequence[DualProblem | Problem], found: list[DualSolution], dtype: np.dtype[Any]
    ) -> None:
        if dtype == np.float64:
            return
        lost = 0.0
        for problem, solution, coef, intercept in zip(problems, found, self.coef_, self.intercept_, strict=True):
            weights, constant = coef.astype(np.float64), float(intercept)
            if isinstance(problem, DualProblem):
                objective = problem.primal(weights, constant)
            else:
                if self._constant:
                    weights = np.append(weights, constant / self._constant)
                objective = problem.objective(problem.design.predict(weights), weights)
            lost = max(lost, (objective - solution.progress.objective) / problem.null_objective)
        warn_of_rounding(self, lost, dtype)

    def _smooth(
        self, X: Any, codes: NDArray[np.int64], strengths: list[tuple[int, Array]]
    ) -> tuple[Callable[..., SupportVectorDescent], list[DualProblem]]:
        design = as_design(X.T, self._team())
        _, squares = design.moments(np.ones(X.shape[1]))
        if not np.isfinite(squares).all():
            raise InputError(
                f"X is too large to compute with: row {np.argmax(~np.isfinite(squares))}: scale the features"
            )
        seed, loss = recorded_seed(self.random_state), (self._constant, self.loss == "squared_hinge")
        return partial(start_descent, int(self.concurrency), int(self.max_iter), self._threads, seed), [
            DualProblem(design, squares, np.where(codes == positive, 1.0, -1.0), strength, *loss)
            for positive, strength in strengths
        ]

    def _sparse(
        self, X: Any, codes: NDArray[np.int64], strengths: list[tuple[int, Array]]
    ) -> tuple[Callable[..., SupportVectorDescent], list[Problem]]:
        refuse_not_finite(self, X)
        design = with_constant(X, self._constant, self._team())
        return partial(SparseDescent, self._constant, int(self.max_iter)), [
            sparse_problem(design, np.where(codes == positive, 1.0, -1.0), strength) for positive, strength in strengths
        ]

    def _begin(self, problems: int, count: int) -> list[Array | None]:
        """Return the starting point of each problem, and discard the results of an earlier fit."""
        is_sparse = self.penalty == "l1"
        earlier, what = self.__dict__.get("coef_" if is_sparse else "dual_coef_"), "dual variables"
        if is_sparse and earlier is not None:
            earlier, what = dense(earlier), "coefficients"
            if self._constant:
                earlier = np.column_stack([earlier, self.intercept_ / self._constant])
        self._forget("dual_coef_", "coef_")
        if not self.warm_start or earlier is None:
            return [None] * problems
        if earlier.shape != (problems, count):
            raise InputError(
                f"warm_start=True, and the earlier fit had {what} of shape {earlier.shape}, but {problems} "
                f"problems of {count} {'features' if is_sparse else 'samples'} are to be solved: fit a new estimator"
            )
        return list(earlier.astype(np.float64))

    def _publish(self, learnt: tuple[list[DualSolution], np.dtype[Any]]) -> None:
        found, dtype = learnt
        self.coef_ = np.array([solution.coef for solution in found]).astype(dtype, copy=False)
        self.intercept_ = np.array([solution.intercept for solution in found]).astype(dtype, copy=False)
        if self.penalty != "l1":
            self.dual_coef_ = np.array([solution.variables for solution in found])
        self._iterations = max(solution.progress.iteration for solution in found)
        self.dual_gap_ = max(solution.gap for solution in found)

    @property
    def _constant(self) -> float:
        """Value of the constant feature."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _strengths(self, codes: NDArray[np.int64], weights: Array) -> list[tuple[int, Array]]:
        """Return, for each problem, its positive class and the C of each sample, as in liblinear."""
        totals = np.bincount(codes, weights).astype(np.float64)
        of_class = as_class_factors(self.class_weight, self.classes_, totals)
        if len(of_class) == 2:
            return [(1, weights * of_class[codes])]
        return [(k, weights * np.where(codes == k, factor, 1.0)) for k, factor in enumerate(of_class)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive(self, "C", "intercept_scaling", most=LARGEST)
        check_positive(self, "tol")
        check_whole_numbers(self, "max_iter", "concurrency")
        check_choice(self, "penalty", ("l2", "l1"))
        check_choice(self, "loss", _LOSSES)
        check_choice(self, "multi_class", ("ovr",))
        check_switches(self, "fit_intercept", "warm_start")
        if self.penalty == "l1" and (self.loss == "hinge" or self.concurrency > 1):
            raise ArgumentError('penalty="l1" needs loss="squared_hinge" and concurrency=1')
