"""Classification with an ℓ1, ℓ2 or elastic-net penalty, or none."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strads.errors import ArgumentError
from strads.models._iterative import OnIteration
from strads.models._parameters import check_choice, check_positive
from strads.models.kernels.datafits import Datafit, Logistic
from strads.models.multinomial.fitting import fit_softmax
from strads.models.multinomial.problem import Minimum
from strads.models.regression.fitting import Regression
from strads.models.regression.inputs import (
    as_class_factors,
    as_classes,
    as_rows,
    as_sample_weights,
    as_two_classes,
    count_classes,
)
from strads.models.regression.linear_classifier import LARGEST, ProbabilisticClassifier
from strads.models.regression.linear_model import PenalizedLinearModel
from strads.models.regression.solver import LinearSolver


@dataclass(eq=False, repr=False)
class LogisticRegression(ProbabilisticClassifier, PenalizedLinearModel):
    """Logistic regression, by default with a sparse solution.

    Minimizes C Σ_i s_i log(1 + exp(−y_i (x_iᵀw + b))) + l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖², with y_i = 1 for the
    second class and −1 for the first: the objective of scikit-learn's `LogisticRegression`. b is not penalized (unlike
    liblinear). Stops as soon as the duality gap certifies the required accuracy.

    With more than two classes the loss is that of `MultinomialLogisticRegression`, and the norms are
    those of all classes' coefficients.

    Parameters
    ----------
    penalty : {"elasticnet", "l1", "l2"} or None, default "elasticnet"
        "elasticnet" mixes both norms according to `l1_ratio`; "l1" needs an `l1_ratio` of 1, "l2" means one of 0;
        None: no penalty.
    C : float, default 1.0
        Weight of the loss relative to the penalty, above 0; infinity: no penalty. `strads.models.logistic_path` fits
        many values.
    l1_ratio : float, default 1.0
        Share of the ℓ1 norm in the penalty, from 0 to 1.
    class_weight : dict of label → float, "balanced" or None, default None
        Factor of the weights of each class's samples; "balanced": both classes get equal total weight.
    fit_intercept, standardize, solver, max_iter, tol, warm_start, verbose
        As of `ElasticNet`. Without an ℓ1 norm, or with more than two classes, `standardize` and `solver` are refused.
        Without any penalty `tol` is for the gradient, as in `MultinomialLogisticRegression`.
    n_jobs
        Threads without an ℓ1 norm, or with more than two classes, as of `MultinomialLogisticRegression`.
    random_state
        Without effect, as of `ElasticNet`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features), or (n_classes, n_features) of more than two
        w, of the dtype of X if that is float32 or float64, else float64.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        b; 0 without `fit_intercept`.
    n_iter_ : ndarray of shape (1,)
        Number of iterations.
    dual_gap_ : float
        The final duality gap: an upper bound on the suboptimality of the objective. Infinite without a penalty.
    history_, n_features_in_, feature_names_in_
        As of `ElasticNet`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = LogisticRegression(C=1.0).fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict([[3.0]]).tolist()
    ['yes']
    """

    penalty: str | None = "elasticnet"
    C: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 1.0
    class_weight: Mapping[Any, float] | str | None = None
    fit_intercept: bool = True
    standardize: bool = False
    solver: LinearSolver | None = None
    max_iter: int = 1000
    tol: float = 1e-6
    warm_start: bool = False
    verbose: bool = False
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    _penalized_by = "C"

    _without_effect = (*PenalizedLinearModel._without_effect, "random_state")

    shown: ClassVar = PenalizedLinearModel.shown  # rather than that of `LinearClassifier`

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty lacks an ℓ1 norm."""
        return self._is_free or self.penalty == "l2" or (self.penalty == "elasticnet" and self.l1_ratio == 0)

    @property
    def _is_free(self) -> bool:
        """Whether nothing is penalized."""
        return self.penalty is None or (isinstance(self.C, Real) and math.isinf(self.C) and self.C > 0.0)

    def _check_parameters(self) -> None:
        if self.penalty is not None:
            check_choice(self, "penalty", ("l1", "l2", "elasticnet"))
        if not self._is_free:
            check_positive(self, "C", most=LARGEST)
        super()._check_parameters()
        if self.penalty == "l1" and self.l1_ratio != 1:
            raise ArgumentError(f'l1_ratio={self.l1_ratio!r} is not penalty="l1": leave penalty at "elasticnet"')

    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None, start: float) -> None:
        if not self.is_smooth and count_classes(y) <= 2:
            super()._fit(X, y, sample_weight, on_iteration, start)
            return
        X = as_rows(self, X)
        self.classes_, codes = as_classes(y, X.shape[0])
        count = len(self.classes_)
        if count > 2:
            self._refuse_options("for two classes")
        weights = as_sample_weights(sample_weight, X.shape[0])
        totals = np.bincount(codes, weights, count).astype(np.float64)
        weights = weights * as_class_factors(self.class_weight, self.classes_, totals)[codes]
        first = self._first(count, X.shape[1])
        self._forget("coef_")
        if not self._is_free:
            weights *= float(self.C)
        # Two classes are a softmax with ±w/2, of which the squares add up to half of ‖w‖².
        l1 = 0.0 if self.is_smooth else float(self.l1_ratio)
        ridge = 0.0 if self._is_free else (2.0 if count == 2 else 1.0) * (1.0 - l1)
        fit_softmax(
            self,
            X,
            codes,
            weights,
            ridge=ridge,
            l1=l1,
            first=first,
            on_iteration=on_iteration,
            start=start,
        )

    def _first(self, classes: int, features: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return, with `warm_start`, the coefficients of an earlier fit as those of a softmax."""
        rows = 1 if classes == 2 else classes
        coef = self._earlier((rows, features))
        if coef is None:
            return None
        intercept = np.broadcast_to(getattr(self, "intercept_", 0.0), rows)  # a user may have set the former alone
        if classes == 2:
            return np.vstack([-coef, coef]) / 2, np.repeat(intercept, 2) * [-0.5, 0.5]
        return coef, intercept

    @property
    def n_iter_(self) -> NDArray[np.int32]:
        """Number of iterations."""
        return np.array([self._iterations], np.int32)

    def _publish(self, learnt: Any) -> None:
        if isinstance(learnt, Minimum):
            self.dual_gap_ = learnt.gap
            self.coef_, self.intercept_ = learnt.coef, learnt.intercept
            if len(self.classes_) == 2:
                self._set_coefficients(learnt.coef[1] - learnt.coef[0], learnt.intercept[1] - learnt.intercept[0])
        else:
            super()._publish(learnt)

    def _datafit(self, X: Any, y: Any, sample_weight: Any) -> Datafit:
        self.classes_, signs = as_two_classes(y, X.shape[0])
        weights, second = as_sample_weights(sample_weight, X.shape[0]), signs > 0.0
        totals = np.array([weights[~second].sum(), weights[second].sum()])
        first_factor, second_factor = as_class_factors(self.class_weight, self.classes_, totals)
        return Logistic(signs, weights * np.where(second, second_factor, first_factor))

    def _strength_of(self, value: float, regression: Regression) -> float:
        return 1.0 / float(value)

    def _parameter(self, strength: float, regression: Regression) -> float:
        return 1.0 / strength

    def _unit(self, regression: Regression) -> float:
        return float(self.C)

    def _set_coefficients(self, coef: NDArray[Any], intercept: np.floating) -> None:
        self.coef_, self.intercept_ = coef.reshape(1, -1), np.array([intercept])
