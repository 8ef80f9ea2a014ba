"""Linear regression with several outputs, which share the features that count."""

import time
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from strads.checkpoints import learned_data
from strads.errors import ArgumentError
from strads.models._blas_threads import one_blas_thread
from strads.models._iterative import OnIteration
from strads.models._parameters import check_positive, check_switches, check_whole_numbers, is_number
from strads.models.regression.centring import NO_SHIFT, centre_far_columns, lost_by_error, warn_of_rounding
from strads.models.regression.inputs import as_features, as_sample_weights, as_several_targets, refuse_not_finite
from strads.models.regression.linear_estimator import LinearEstimator
from strads.models.regression.multi_task import MultiTaskDescent, MultiTaskMinimum
from strads.progress import Shown


@dataclass(eq=False, repr=False)
class MultiTaskElasticNet(RegressorMixin, LinearEstimator):
    """Linear regression with several outputs: a feature has coefficients for all of them, or for none.

    Minimizes 1/(2n) ‖Y − XW − b‖² + alpha (l1_ratio Σ_j ‖W_j‖ + (1 − l1_ratio)/2 ‖W‖²), where W_j are the coefficients
    of feature j: the objective of scikit-learn's `MultiTaskElasticNet`. With sample weights s, n is Σ s_i and the
    square of each sample is multiplied by s_i. Runs in this process.

    Parameters
    ----------
    alpha : float, default 1.0
        Strength of the penalty, above 0.
    l1_ratio : float, default 0.5
        Share of the norms in the penalty, above 0 and at most 1.
    fit_intercept : bool, default True
        Whether to fit b.
    max_iter : int, default 1000
        Largest number of iterations: working sets, each with a look at all columns.
    tol : float, default 1e-6
        Duality gap to reach, relative to the objective at W = 0 (with the best b).
    warm_start : bool, default False
        Whether `fit` starts from the coefficients of the previous fit.
    verbose : bool, default False
        As of `ElasticNet`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features)
        W, transposed, of the dtype of X if that is float32 or float64, else float64.
    intercept_ : ndarray of shape (n_outputs,)
        b; 0 without `fit_intercept`.
    n_iter_ : int
        Number of iterations.
    dual_gap_ : float
        The final duality gap: an upper bound on the suboptimality of the objective.
    history_ : list of dict
        As of `ElasticNet`; `active` is the number of features with coefficients.
    n_features_in_, feature_names_in_
        As of `ElasticNet`.
    """

    alpha: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.5
    fit_intercept: bool = True
    max_iter: int = 1000
    tol: float = 1e-6
    warm_start: bool = False
    verbose: bool = False

    shown: ClassVar = Shown(
        {"objective": "objective", "relative_gap": "duality gap", "active": "features"},
        "entries",
        "iteration",
        "looking at all columns",
        has_plan=False,
    )

    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None, start: float) -> None:
        X = as_features(self, X)
        refuse_not_finite(self, X)
        Y = as_several_targets(y, X.shape[0])
        weights = as_sample_weights(sample_weight, X.shape[0])
        centred, shift = centre_far_columns(X, weights) if self.fit_intercept else (X, NO_SHIFT)
        strength = float(self.alpha) * float(weights.sum())
        l1, l2 = strength * float(self.l1_ratio), strength * (1.0 - float(self.l1_ratio))
        self._shift, self._dtype = shift, X.dtype
        earlier = self._earlier((Y.shape[1], X.shape[1]))
        begin = None if earlier is None else np.array(earlier, np.float64).T
        self._forget("coef_")
        with one_blas_thread():
            solver = MultiTaskDescent(
                centred, Y, weights, l1, l2, fit_intercept=bool(self.fit_intercept), goal=float(self.tol), start=begin
            )
            with solver:
                seconds = time.perf_counter() - start
                stopped = self._train(solver, on_iteration, seconds=seconds, data=learned_data(X, Y, weights))
        error = shift.rounding(self.coef_, X.dtype)
        lost = lost_by_error(Y.shape[1], float(weights.sum()), error, self._verdict["null_objective"])
        warn_of_rounding(self, lost, X.dtype)
        self._warn_unless_converged(stopped, f"increase max_iter={self.max_iter}, tol or the penalty")

    def predict(self, X: Any) -> NDArray[Any]:
        """Return X W + b, of shape (n_samples, n_outputs)."""
        return self._predictors(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive(self, "alpha")
        if not (is_number(self.l1_ratio) and 0 < self.l1_ratio <= 1):
            raise ArgumentError(f"l1_ratio={self.l1_ratio!r}: give a number above 0, at most 1")
        check_whole_numbers(self, "max_iter")
        check_switches(self, "fit_intercept", "warm_start")
        check_positive(self, "tol", or_zero=True)

    def _publish(self, learnt: MultiTaskMinimum) -> None:
        self.dual_gap_ = learnt.gap
        self.coef_ = np.ascontiguousarray(learnt.coef).astype(self._dtype)
        if self.fit_intercept:
            self.intercept_ = self._shift.outside(self.coef_, learnt.intercept).astype(self._dtype)
        else:
            self.intercept_ = np.zeros(len(self.coef_), self._dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


@dataclass(eq=False, repr=False)
class MultiTaskLasso(MultiTaskElasticNet):
    """Linear regression with several outputs and a sparse solution: `MultiTaskElasticNet` with `l1_ratio` 1.

    Parameters
    ----------
    alpha, fit_intercept, max_iter, tol, warm_start, verbose
        As of `MultiTaskElasticNet`, whose attributes it has as well.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> model = MultiTaskLasso(0.1).fit(X, X[:, :2] @ [[1.0, 2.0], [0.0, 1.0]])
    >>> model.coef_.astype(bool)
    array([[ True,  True, False, False],
           [ True,  True, False, False]])
    """

    l1_ratio: float = field(default=1.0, init=False)
