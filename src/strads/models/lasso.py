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
    `Lasso` and `ElasticNet`; with sample weights s, n is Σ s_i and each square is multiplied by s_i. Stops as soon as
    the duality gap certifies the required accuracy.

    Parameters
    ----------
    alpha : float, default 1.0
        Strength of the penalty, above 0. `strads.models.lasso_path` fits many values.
    l1_ratio : float, default 1.0
        Share of the ℓ1 norm in the penalty, above 0; 1 is the Lasso, smaller values an elastic net.
    fit_intercept : bool, default True
        Whether to fit b. Columns are not centred explicitly: sparse ones stay sparse.
    standardize : bool, default False
        Penalize the coefficients of columns divided by their (weighted) standard deviations, so that units do not
        matter. `coef_` refers to the original columns, and nothing is copied. Constant columns get 0.
    schedule : {"working_set", "dynamic_regression", "resting", "kkt_violation", "random", "cyclic"} or function
        Which coefficients are updated together, and when. "working_set", the default, is the fastest on one machine.
        The others run on the Dynamic Engine, on all nodes of `strads.init`: "dynamic_regression" draws coefficients by
        their last change and drops those that depend on others (thesis §5.1), "resting" does the same but seldom draws
        those that no longer change, "kkt_violation" draws them by their violation of the optimality conditions,
        "random" is Shotgun. A function creates a custom schedule; see
        `strads.models.regression.scheduled.solve_scheduled`.
    concurrency : int or None, default None
        Number of coefficients that are updated together; None: a default for the schedule. Not used by "working_set";
        nor are the following parameters up to `reorder`.
    pipeline_depth : int, default 3
        Largest number of rounds in flight.
    prioritize, check_dependencies : bool, default True
        Whether "dynamic_regression", "resting" and "kkt_violation" draw by priority, and drop dependent coefficients.
    threshold : float, default 0.3
        Largest correlation of two columns that are not considered dependent.
    reorder : bool, default True
        Whether the coordinator dispatches coefficients of high priority first.
    max_iter : int, default 1000
        Largest number of iterations. Each begins with an evaluation of the gap; the last one ends with it.
    tol : float, default 1e-6
        Duality gap to reach, relative to the objective at w = 0 (with the best b).
    warm_start : bool, default False
        Whether `fit` starts from the coefficients of the previous fit.
    random_state : int, default 0
        Seed of randomized schedules. With the same seed, nodes and threads the result is bitwise identical.

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
            Non-negative weights; only their ratios matter.
        on_iteration
            Called with the record of each iteration, see `history_`; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters or data; the message names the first.
        NodeFailure
            If a node is lost.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the gap is above `tol` after `max_iter` iterations; the model can be used.

        Notes
        -----
        After Ctrl-C the current iteration is completed; the model holds the result so far, and can be used and saved.
        """
        return self._fit(X, y, sample_weight, on_iteration)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return X w + b, of shape (n_samples,).

        Raises
        ------
        InputError
            If the number of columns of X differs from that in `fit`, or X has non-finite entries.
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
