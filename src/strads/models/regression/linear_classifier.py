"""The common base of linear classifiers: labels, decisions, files."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.linear_model._base import SparseCoefMixin

from strads.models._file_contents import Table
from strads.models.regression.linear_estimator import LinearEstimator
from strads.progress import Shown

LARGEST = 1e100  # C or a constant feature: squares of larger ones may overflow


class LinearClassifier(ClassifierMixin, SparseCoefMixin, LinearEstimator):
    """A classifier with the attribute `classes_`, and a row of coefficients for each class; for two, by default one."""

    shown: ClassVar = Shown(
        {"objective": "objective", "relative_gap": "duality gap", "relative_gradient": "gradient"},
        "samples",
        "iteration",
        has_plan=False,
    )

    _contents: ClassVar = LinearEstimator._contents | {"classes": Table(dtypes="i u f b U M m", shape=("classes",))}
    _rows_of_two: ClassVar[int] = 1  # of coefficients, for two classes

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return X `coef_`ᵀ + `intercept_`, of shape (n_samples, n_classes); for two classes (n_samples,).

        Of two classes it is positive where the second one is predicted.

        Raises
        ------
        InputError
            If the number of columns of X differs from that in `fit`, or X has non-finite entries.
        """
        scores = self._predictors(X)
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row with the highest decision function, of shape (n_samples,)."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(1)
        return np.asarray(self.classes_[places])

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        numbers, arrays = super()._saved()
        classes = self.classes_.astype(str) if self.classes_.dtype == object else self.classes_
        return numbers, arrays | {"classes": classes}

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(parameters, arrays)
        self.classes_ = arrays["classes"]
        count = len(self.classes_)
        if count < 2 or len(self.coef_) != (self._rows_of_two if count == 2 else count):
            raise ValueError(f"coefficients of shape {self.coef_.shape} of {count} classes")


class ProbabilisticClassifier(LinearClassifier):
    """A linear classifier whose decisions are log-odds, or logarithms of probabilities up to a constant."""

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class, of shape (n_samples, n_classes)."""
        z = self.decision_function(X)
        return np.stack([expit(-z), expit(z)], axis=1) if z.ndim == 1 else np.asarray(softmax(z, axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithm of the probability of each class, of shape (n_samples, n_classes)."""
        z = self.decision_function(X)
        return np.stack([log_expit(-z), log_expit(z)], axis=1) if z.ndim == 1 else np.asarray(log_softmax(z, axis=1))
