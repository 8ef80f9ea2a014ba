"""The common base of all linear models: `fit`, predictors, files."""

import time
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot

from strads.errors import InputError
from strads.models._file_contents import Number, Table
from strads.models._iterative import IterativeEstimator, OnIteration
from strads.models._warnings import warn
from strads.models.regression.inputs import as_features_to_predict


def dense(coef: Any) -> NDArray[Any]:
    """Return coefficients, which `sparsify` may have made sparse, as an ndarray."""
    return np.asarray(coef.toarray() if scipy.sparse.issparse(coef) else coef)


class LinearEstimator(IterativeEstimator):
    """A model with `coef_`, `intercept_` and `dual_gap_`: by default a row of coefficients for each class or output.

    A subclass writes `_fit`, which gets the arguments of `fit` and the time when that was called.
    """

    _contents: ClassVar = {
        "features": Number(whole=True, least=0),
        "coef": Table(dtypes="f4 f8", shape=("rows", "features")),
        "intercept": Table(dtypes="f4 f8", shape=("rows",)),
        "dual_gap": Number(finite=False),
    }
    tol: float
    coef_: Any
    intercept_: Any
    dual_gap_: float

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: Any, on_iteration: OnIteration | None, start: float) -> None:
        """Fit, once the parameters have been checked."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        on_iteration: OnIteration | None = None,
    ) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), or (n_samples, n_outputs) for models of several outputs
            Numbers; for classification labels of two classes or more, all
            of one type: numbers, strings, booleans or dates (datetime64, timedelta64).
        sample_weight : array of shape (n_samples,) or float, optional
            Non-negative factor of each sample's loss; in regression only the ratios of these matter.
        on_iteration
            Called with each record, see `history_`; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters or data; the message names the first.
        NodeFailure
            If a node is lost.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If `tol` is not reached in `max_iter` iterations; the model can be used.

        Notes
        -----
        After Ctrl-C training goes on up to the next record; the model holds the result so far, and can be used and
        saved.
        """
        start = time.perf_counter()
        self._check_parameters()
        self._fit(X, y, sample_weight, on_iteration, start)
        return self

    def _warn_unless_converged(self, stopped: bool, advice: str, what: str = "relative duality gap") -> None:
        """Warn if the solver has ended before `tol` was reached, and nobody stopped it."""
        if stopped or self._verdict["converged"]:
            return
        count = "1 iteration" if self._iterations == 1 else f"{self._iterations} iterations"
        warn(
            f"{type(self).__name__} did not converge in {count}: the {what} is {self._verdict['reached']:.2g}, above "
            f"tol={self.tol:g}: {advice}",
            ConvergenceWarning,
        )

    def _earlier(self, shape: tuple[int, int]) -> NDArray[Any] | None:
        """Return the coefficients to start from, of this shape: None without `warm_start` or an earlier fit."""
        if not (getattr(self, "warm_start", False) and hasattr(self, "coef_")):
            return None
        coef = np.atleast_2d(dense(self.coef_))
        if coef.shape != shape:
            raise InputError(
                f"warm_start=True, and the earlier fit had coefficients of shape {coef.shape}, but X and y ask for "
                f"{shape}: fit a new estimator"
            )
        return coef

    def _predictors(self, X: Any) -> NDArray[Any]:
        """Return X `coef_`ᵀ + `intercept_`, of shape (n_samples, rows)."""
        self._check_fitted()
        return np.asarray(safe_sparse_dot(as_features_to_predict(self, X), dense(self.coef_).T)) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        numbers = {"dual_gap": self.dual_gap_, "features": int(self.n_features_in_)}
        return numbers, {"coef": dense(self.coef_), "intercept": self.intercept_}

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.coef_, self.intercept_ = arrays["coef"], arrays["intercept"]
        self.dual_gap_ = float(parameters["dual_gap"])
        self.n_features_in_ = self.coef_.shape[-1]
