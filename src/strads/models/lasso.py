"""Linear regression with an ℓ1 or elastic-net penalty."""

import time
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from strads.checkpoints import learned_data
from strads.models._file_contents import Table
from strads.models._iterative import OnIteration
from strads.models._parameters import check_positive
from strads.models.kernels.datafits import Datafit, Quadratic
from strads.models.regression.centring import NO_SHIFT, centre_far_columns, lost_by_error, warn_of_rounding
from strads.models.regression.fitting import Regression
from strads.models.regression.inputs import as_features, as_sample_weights, as_targets, refuse_not_finite
from strads.models.regression.linear_model import PenalizedLinearModel
from strads.models.regression.ridge import LeastSquaresRidgeFit, RidgeFit, RidgeMinimum
from strads.models.regression.solver import LinearSolver


@dataclass(eq=False, repr=False)
class ElasticNet(RegressorMixin, PenalizedLinearModel):
    """Linear regression with a sparse solution, and a penalty that shares weight among correlated columns.

    Minimizes 1/(2n) ‖y − Xw − b‖² + alpha (l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖²), the objective of scikit-learn's
    `ElasticNet`; with sample weights s, n is Σ s_i and each square is multiplied by s_i. Stops as soon as the duality
    gap certifies the required accuracy.

    Parameters
    ----------
    alpha : float, default 1.0
        Strength of the penalty; 0: no penalty. `strads.models.lasso_path` fits many values.
    l1_ratio : float, default 0.5
        Share of the ℓ1 norm in the penalty; 1 is the Lasso, 0 ridge regression.
    fit_intercept : bool, default True
        Whether to fit b. Columns are not centred explicitly: sparse ones stay sparse.
    standardize : bool, default False
        Penalize the coefficients of columns divided by their (weighted) standard deviations, so that units do not
        matter. `coef_` refers to the original columns, and nothing is copied. Constant columns get 0.
    positive : bool, default False
        Whether no coefficient may be negative.
    solver : WorkingSet or CoordinateDescent, optional
        How the objective is minimized. `strads.models.WorkingSet()`, the default, is the fastest on one machine;
        `strads.models.CoordinateDescent(…)` updates coefficients by a schedule of the Dynamic Engine, on all nodes of
        `strads.init`. Without an ℓ1 norm there is no choice, `standardize` is refused, and one iteration solves all.
    max_iter : int, default 1000
        Largest number of iterations. Each begins with an evaluation of the gap; the last one ends with it.
    tol : float, default 1e-6
        Duality gap to reach, relative to the objective at w = 0 (with the best b).
    warm_start : bool, default False
        Whether `fit` starts from the coefficients of the previous fit.
    verbose : bool, default False
        Whether to show progress: a bar on a terminal and in a notebook, elsewhere a line per iteration.
    precompute, copy_X, selection, random_state
        Without effect: accepted for compatibility with scikit-learn.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w, of the dtype of X if that is float32 or float64, else float64.
    sparse_coef_ : csr_array of shape (1, n_features)
        The same in sparse form.
    intercept_ : float
        b; 0 without `fit_intercept`.
    n_iter_ : int
        Number of iterations.
    dual_gap_ : float
        The final duality gap: an upper bound on the suboptimality of the objective.
    history_ : list of dict
        One record per iteration: `iteration`; `seconds` of training so far; `samples`, entries of X touched so far;
        `objective`; `gap`; `relative_gap`, which is compared with `tol`; `active`, the number of nonzero coefficients.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X was a data frame with names.

    Notes
    -----
    X is used in place if it is float32 or float64 and in C order, Fortran order or CSC. Other types and CSR are
    converted, which makes a copy.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> model = ElasticNet(alpha=0.1).fit(X, [1.0, 2.0, 3.0])
    >>> model.coef_.round(3)
    array([0.446, 0.446])
    """

    alpha: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.5
    fit_intercept: bool = True
    standardize: bool = False
    positive: bool = False
    solver: LinearSolver | None = None
    max_iter: int = 1000
    tol: float = 1e-6
    warm_start: bool = False
    verbose: bool = False
    precompute: Any = False
    copy_X: bool = True
    selection: str = "cyclic"
    random_state: int | np.random.RandomState | None = None

    _penalized_by = "alpha"
    _ridge_fit: ClassVar[type[RidgeFit]] = LeastSquaresRidgeFit

    _without_effect = (*PenalizedLinearModel._without_effect, "precompute", "copy_X", "selection", "random_state")

    _contents: ClassVar = PenalizedLinearModel._contents | {
        "coef": Table(dtypes="f4 f8", shape=("features",)),
        "intercept": Table(dtypes="f4 f8", shape=("outputs",)),
    }

    def predict(self, X: Any) -> NDArray[Any]:
        """Return X w + b, of shape (n_samples,).

        Raises
        ------
        InputError
            If the number of columns of X differs from that in `fit`, or X has non-finite entries.
        """
        return self._predictors(X)

    @property
    def sparse_coef_(self) -> scipy.sparse.csr_array:
        """`coef_` as a sparse array of shape (1, n_features)."""
        self._check_fitted()
        return scipy.sparse.csr_array(self.coef_.reshape(1, -1))

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty lacks an ℓ1 norm."""
        return self.alpha == 0.0 or self.l1_ratio == 0.0

    def _check_parameters(self) -> None:
        check_positive(self, "alpha", or_zero=True)
        super()._check_parameters()

    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None, start: float) -> None:
        if not self.is_smooth:
            super()._fit(X, y, sample_weight, on_iteration, start)
            return
        X = as_features(self, X)
        refuse_not_finite(self, X)
        loss = self._datafit(X, y, sample_weight)
        centred, self._shift = centre_far_columns(X, loss.weights) if self.fit_intercept else (X, NO_SHIFT)
        total = float(loss.weights.sum())
        l2 = float(self.alpha) * (1.0 - float(self.l1_ratio)) * total
        kind = {"fit_intercept": bool(self.fit_intercept), "positive": bool(self.positive)}
        self._forget("coef_")
        self._dtype = X.dtype
        with self._ridge_fit(centred, loss, l2, **kind, goal=float(self.tol), max_iter=self.max_iter) as solver:
            seconds = time.perf_counter() - start
            self._train(solver, on_iteration, seconds=seconds, data=learned_data(X, loss))
        error = self._shift.rounding(self.coef_, X.dtype)
        lost = lost_by_error(loss.curvature_bound, total, error, self._verdict["null_objective"])
        warn_of_rounding(self, lost, X.dtype)
        what = "relative duality gap" if l2 else "gradient, relative to that at w = 0,"
        self._warn_unless_converged(False, "scale the columns", what)

    def _publish(self, learnt: Any) -> None:
        if isinstance(learnt, RidgeMinimum):
            coef = learnt.coef.astype(self._dtype)
            self.dual_gap_ = learnt.gap
            self._set_coefficients(coef, self._dtype.type(self._shift.outside(coef, learnt.intercept)))
        else:
            super()._publish(learnt)

    def _datafit(self, X: Any, y: Any, sample_weight: Any) -> Datafit:
        y = as_targets(y, X.shape[0])
        return Quadratic(y, as_sample_weights(sample_weight, X.shape[0]))

    def _strength_of(self, value: float, regression: Regression) -> float:
        return float(value) / self._unit(regression)

    def _parameter(self, strength: float, regression: Regression) -> float:
        return strength * self._unit(regression)

    def _unit(self, regression: Regression) -> float:
        return 1.0 / float(regression.datafit.weights.sum())

    def _set_coefficients(self, coef: NDArray[Any], intercept: np.floating) -> None:
        self.coef_, self.intercept_ = coef, intercept

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        numbers, arrays = super()._saved()
        return numbers, arrays | {"intercept": np.ravel(self.intercept_)}

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(parameters, arrays)
        if self.intercept_.shape != (1,):
            raise ValueError(f"{len(self.intercept_)} intercepts")
        self.intercept_ = self.intercept_[0]


@dataclass(eq=False, repr=False)
class Lasso(ElasticNet):
    """Linear regression with a sparse solution.

    Minimizes 1/(2n) ‖y − Xw − b‖² + alpha ‖w‖₁, the objective of scikit-learn's `Lasso`; with sample weights s, n is
    Σ s_i and each square is multiplied by s_i. Stops as soon as the duality gap certifies the required accuracy.

    Parameters
    ----------
    alpha, fit_intercept, standardize, positive, solver, max_iter, tol, warm_start, verbose, …
        As of `ElasticNet`, whose attributes it has as well.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> model = Lasso(alpha=0.1).fit(X, [1.0, 2.0, 3.0])
    >>> model.coef_.round(3)
    array([0.85, 0.  ])
    """

    l1_ratio: float = field(default=1.0, init=False)  # fixed: not a parameter
