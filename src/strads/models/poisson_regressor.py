"""Regression of counts with an ℓ1, elastic-net or ℓ2 penalty, or none."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import d2_tweedie_score

from strads.errors import ArgumentError, InputError
from strads.models.kernels.datafits import Datafit, Poisson
from strads.models.lasso import ElasticNet
from strads.models.regression.inputs import as_sample_weights, as_targets
from strads.models.regression.ridge import PoissonRidgeFit, RidgeFit
from strads.models.regression.working_set import WorkingSet


@dataclass(eq=False, repr=False)
class PoissonRegressor(ElasticNet):
    """Regression of counts and rates, whose mean is exp(x·w + b), with a sparse solution unless `l1_ratio` is 0.

    Minimizes 1/(2n) Σ_i d(y_i, exp(x_i·w + b)) + alpha (l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖²) with the deviance
    d(y, μ) = 2 (y log(y/μ) − y + μ) of the Poisson distribution, the loss of scikit-learn's `PoissonRegressor`; with
    sample weights s, n is Σ s_i and each deviance is multiplied by s_i. Stops as soon as the duality gap certifies the
    required accuracy.

    Parameters
    ----------
    alpha : float, default 1.0
        Strength of the penalty; 0: none.
    l1_ratio : float, default 1.0
        Share of the ℓ1 norm in the penalty; 0, as in scikit-learn's: that is ℓ2 alone.
    fit_intercept, standardize, positive, max_iter, tol, warm_start, verbose
        As of `ElasticNet`, whose attributes it has as well.
    solver : WorkingSet, optional
        `strads.models.WorkingSet()` is the default.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> model = PoissonRegressor(alpha=0.2).fit(X, rng.poisson(np.exp(X[:, 0] - 0.5)))
    >>> model.coef_ != 0
    array([ True, False, False, False])
    """

    _: KW_ONLY
    l1_ratio: float = 1.0
    solver: WorkingSet | None = None

    _ridge_fit: ClassVar[type[RidgeFit]] = PoissonRidgeFit

    def predict(self, X: Any) -> NDArray[Any]:
        """Return exp(X w + b), of shape (n_samples,)."""
        return np.asarray(np.exp(self._predictors(X)))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return D², the share of the deviance that is explained: 1 is best, 0 that of the mean of y."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.is_smooth and self.positive:
            raise ArgumentError(
                f"positive=True with alpha={self.alpha!r} and l1_ratio={self.l1_ratio!r}: an ℓ1 penalty is "
                "needed: set alpha and l1_ratio above 0 (l1_ratio may be small)"
            )
        if self.solver is not None and not isinstance(self.solver, WorkingSet):
            raise ArgumentError(
                f"solver={self.solver!r}: give WorkingSet() or None: the curvature of the loss is unbounded"
            )

    def _datafit(self, X: Any, y: Any, sample_weight: Any) -> Datafit:
        y = as_targets(y, X.shape[0])
        if (y < 0.0).any():
            row = int(np.argmax(y < 0.0))
            raise InputError(f"y[{row}] = {y[row]:g}: counts and rates are not negative")
        weights = as_sample_weights(sample_weight, X.shape[0])
        if not (weights @ y > 0.0):
            raise InputError("all of y is 0: there is nothing to learn from")
        return Poisson(y, weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
