"""Classification of any number of classes by a softmax of linear functions."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import ArgumentError
from strads.models._iterative import OnIteration
from strads.models._parameters import check_positive, check_switches, check_whole_numbers
from strads.models.multinomial.fitting import fit_softmax
from strads.models.multinomial.problem import Minimum
from strads.models.regression.inputs import as_class_factors, as_classes, as_rows, as_sample_weights
from strads.models.regression.linear_classifier import LARGEST, ProbabilisticClassifier

_NEVER = -40.0  # as the others' scores sum to 0, the largest is 0 or more, and such a class has a probability of 0


@dataclass(eq=False, repr=False)
class MultinomialLogisticRegression(ProbabilisticClassifier):
    """Logistic regression of two or more classes: P(k | x) = exp(x·w_k + b_k) / Σ_l exp(x·w_l + b_l).

    Minimizes C Σ_i s_i (−log P(y_i | x_i)) + penalty: the objective of scikit-learn's `LogisticRegression`. The
    intercepts b are not penalized. The result is bitwise the same for every number of threads and nodes, and on every
    backend; on several nodes each holds some of the samples.

    Parameters
    ----------
    penalty : {"l2", "l1"} or None, default "l2"
        ½ Σ W², Σ |W|, which makes most coefficients 0, or none.
    C : float, default 1.0
        Weight of the loss relative to the penalty, above 0.
    class_weight : dict of label → float, "balanced" or None, default None
        Factor of the weights of each class's samples; "balanced": all classes get equal total weight. If all samples
        of a class have weight 0, its probability is 0.
    fit_intercept : bool, default True
    tol : float, default 1e-4
        Duality gap to reach, relative to the objective without features; without a penalty there is no such bound, and
        it is the largest element of the gradient, relative to that at the start (to the largest possible if that is 0).
    max_iter : int, default 1000
        Largest number of iterations.
    n_jobs : int or None, default None
        Threads on one machine; None: those of `strads.init`, -1: all cores.
    random_state : int, RandomState or None, default 0
        Has no effect: no random numbers are drawn.
    verbose : bool, default False
        As of `ElasticNet`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features)
        W, one row a class, also for two classes; of the dtype of X if that is float32 or float64, else float64.
    intercept_ : ndarray of shape (n_classes,)
        b, which sum to 0; zeros without `fit_intercept`.
    n_iter_ : int
        Number of iterations.
    dual_gap_ : float
        The final duality gap, in double precision: an upper bound on the suboptimality of the objective. Infinite
        without a penalty.
    history_ : list of dict
        One record an iteration: `iteration`, `seconds`, `samples` (rows of X read so far), `objective`, `gap`,
        `relative_gap`, `active` (nonzero coefficients). With the penalty "l2" the objectives of most iterations are in
        single precision.
    n_features_in_, feature_names_in_
        As of `ElasticNet`.

    Notes
    -----
    "l2" and None: L-BFGS in the coordinates of the Hessian at W = 0, in single precision, with the end in double; see
    `docs/multinomial_logistic_regression.md`. "l1": proximal Newton steps on working sets. X is used in place if it is
    float32 or float64 and in C order or CSR.

    For two classes, `LogisticRegression(penalty, C)` has one vector w, which corresponds to w₁ − w₀ here. Predictions
    agree with the penalty "l1" at the same C, and with "l2" if this model has half the C of the other.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-2.0], [-1.9], [0.0], [0.1], [2.0], [2.1]])
    >>> model = MultinomialLogisticRegression(C=10.0).fit(X, ["low", "low", "middle", "middle", "high", "high"])
    >>> model.predict([[-3.0], [3.0]]).tolist()
    ['low', 'high']
    """

    penalty: str | None = "l2"
    C: float = 1.0
    _: KW_ONLY
    class_weight: Mapping[Any, float] | str | None = None
    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    _rows_of_two = 2
    _without_effect = (*ProbabilisticClassifier._without_effect, "random_state")
    _present: NDArray[np.intp] = field(init=False)  # the classes that are fitted

    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None, start: float) -> None:
        X = as_rows(self, X)
        self.classes_, codes = as_classes(y, X.shape[0])
        weights = as_sample_weights(sample_weight, X.shape[0])
        totals = np.bincount(codes, weights, len(self.classes_)).astype(np.float64)
        factors = as_class_factors(self.class_weight, self.classes_, totals, may_be_empty=True)
        weights *= float(self.C) * factors[codes]
        self._present = np.flatnonzero(totals > 0.0) if self.fit_intercept else np.arange(len(totals))
        if len(self._present) < len(totals):
            rows = np.flatnonzero(totals[codes] > 0.0)
            X, codes, weights = X[rows], np.searchsorted(self._present, codes[rows]), weights[rows]
        self._forget("coef_")
        ridge, l1 = float(self.penalty == "l2"), float(self.penalty == "l1")
        fit_softmax(self, X, codes, weights, ridge=ridge, l1=l1, on_iteration=on_iteration, start=start)

    def _publish(self, learnt: Minimum) -> None:
        self.coef_, self.intercept_, self.dual_gap_ = learnt.coef, learnt.intercept, learnt.gap
        count = len(self.classes_)
        if len(self._present) < count:
            self.coef_ = np.zeros((count, learnt.coef.shape[1]), learnt.coef.dtype)
            self.intercept_ = np.full(count, _NEVER, learnt.intercept.dtype)
            self.coef_[self._present], self.intercept_[self._present] = learnt.coef, learnt.intercept
            self.intercept_ -= self.intercept_.mean()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.penalty not in ("l2", "l1", None):
            raise ArgumentError(f'penalty={self.penalty!r} is unknown; choose "l2", "l1" or None')
        check_positive(self, "C", most=LARGEST)
        check_positive(self, "tol", or_zero=True)
        check_whole_numbers(self, "max_iter")
        check_switches(self, "fit_intercept")
