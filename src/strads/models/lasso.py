"""Linear regression with an ℓ1 or elastic-net penalty."""

from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from strads.models._parameters import check_positive
from strads.models.kernels.datafits import Quadratic
from strads.models.regression.fitting import WORKING_SET, Regression
from strads.models.regression.inputs import as_sample_weights, as_targets
from strads.models.regression.linear_model import OnIteration, PenalizedLinearModel


class Lasso(RegressorMixin, PenalizedLinearModel):
    """Linear regression with a sparse solution.

    Minimizes 1/(2n) ‖y − Xw − b‖² + alpha (l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖²), the objective of scikit-learn's
    `Lasso` and `ElasticNet`; with sample weights s, n is Σ s_i and a square counts s_i times. Stops as soon as a
    duality gap proves how close the minimum is.

    Parameters
    ----------
    alpha : float, default 1.0
        Strength of the penalty, above 0. `strads.models.lasso_path` fits many.
    l1_ratio : float, default 1.0
        Share of the ℓ1 norm in the penalty, above 0; 1 is the Lasso, less is an elastic net.
    fit_intercept : bool, default True
        Whether to fit b. Columns are not centred for it: sparse ones stay sparse.
    standardize : bool, default False
        Penalize the coefficients of columns divided by their (weighted) standard deviations, so that units do not
        matter. `coef_` is of the columns as they are, and nothing is copied. Constant columns get 0.
    schedule : {"working_set", "dynamic_regression", "resting", "kkt_violation", "random", "cyclic"} or function
        Which coefficients are updated together, and when. "working_set", the default, is the fastest on one machine.
        The others run by the Dynamic Engine on all nodes of `strads.init`: "dynamic_regression" draws coefficients by
        their last change and drops those that depend on others (thesis §5.1), "resting" does so too, but seldom draws
        those that stay as they are, "kkt_violation" draws them by their violation of the optimality conditions,
        "random" is Shotgun. A function makes a schedule of your own; see
        `strads.models.regression.scheduled.solve_scheduled`.
    concurrency : int or None, default None
        Coefficients that are updated together; None: what suits the schedule. Not of "working_set", as are all of
        the following up to `reorder`.
    pipeline_depth : int, default 3
        Rounds that may be on their way at once.
    prioritize, check_dependencies : bool, default True
        Whether "dynamic_regression", "resting" and "kkt_violation" draw by priority, and drop what depends on others.
    threshold : float, default 0.3
        Largest correlation of two columns that do not count as dependent.
    reorder : bool, default True
        Whether the coordinator lets the coefficients of high priority go first.
    max_iter : int, default 1000
        Most iterations. Each begins with a look at the gap; the last ends with it.
    tol : float, default 1e-6
        Largest duality gap, as a share of the objective at w = 0 (with the best b).
    warm_start : bool, default False
        Whether `fit` begins with the coefficients of the fit before.
    random_state : int, default 0
        Seed of the schedules that draw. With the same seed, nodes and threads the bits are the same.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w, of the dtype of X if that is float32 or float64, else float64.
    sparse_coef_ : csr_array of shape (1, n_features)
        The same, sparse.
    intercept_ : float
        b; 0 without `fit_intercept`.
    n_iter_ : int
        Iterations.
    dual_gap_ : float
        The gap at the end: the objective is at most so far above the minimum.
    history_ : list of dict
        One record an iteration: `iteration`; `seconds` of training so far; `samples`, entries of X touched so far;
        `objective`; `gap`; `relative_gap`, what `tol` is compared with; `active`, coefficients that are not 0.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X was a data frame with names.

    Notes
    -----
    X is used where it lies if it is of float32 or float64, and in C order, Fortran order or CSC. Other types and CSR
    are converted, which makes a copy.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> model = Lasso(alpha=0.1).fit(X, [1.0, 2.0, 3.0])
    >>> model.coef_.round(3)
    array([0.85, 0.  ])
    """

    _penalized_by = "alpha"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 1.0,
        fit_intercept: bool = True,
        standardize: bool = False,
        schedule: Any = WORKING_SET,
        concurrency: int | None = None,
        pipeline_depth: int = 3,
        prioritize: bool = True,
        check_dependencies: bool = True,
        threshold: float = 0.3,
        reorder: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: int = 0,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.schedule = schedule
        self.concurrency = concurrency
        self.pipeline_depth = pipeline_depth
        self.prioritize = prioritize
        self.check_dependencies = check_dependencies
        self.threshold = threshold
        self.reorder = reorder
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        on_iteration: OnIteration | None = None,
    ) -> Self:
        """Fit to data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or float, optional
            Not negative; only their ratios matter.
        on_iteration
            Called with the record of each iteration, see `history_`; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For parameters or data that make no sense; the message names the first.
        NodeFailure
            If a node is lost.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the gap is above `tol` after `max_iter` iterations; the model can be used.

        Notes
        -----
        Ctrl-C lets the iteration end; the model then holds what was found, and can be used and saved.
        """
        return self._fit(X, y, sample_weight, on_iteration)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return X w + b, of shape (n_samples,).

        Raises
        ------
        InputError
            If X has another number of columns than in `fit`, or entries that are not finite.
        """
        return self._linear(X)

    @property
    def sparse_coef_(self) -> scipy.sparse.csr_array:
        """`coef_` as a sparse array of shape (1, n_features)."""
        self._check_fitted()
        return scipy.sparse.csr_array(self.coef_.reshape(1, -1))

    def _check_parameters(self) -> None:
        check_positive(self, "alpha")
        super()._check_parameters()

    def _regression(self, X: Any, y: Any, sample_weight: Any) -> Regression:
        y = as_targets(y, X.shape[0])
        return self._assemble(X, Quadratic(y, as_sample_weights(sample_weight, X.shape[0])))

    def _strength_of(self, value: float, regression: Regression) -> float:
        return float(value) / self._unit(regression)

    def _parameter(self, strength: float, regression: Regression) -> float:
        return strength * self._unit(regression)

    def _unit(self, regression: Regression) -> float:
        return 1.0 / float(regression.datafit.weights.sum())

    def _publish(self, coef: NDArray[Any], intercept: np.floating) -> None:
        self.coef_, self.intercept_ = coef, intercept
