"""The common base of LinearSVC and MultinomialLogisticRegression: a matrix of coefficients, predictors, files."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils.extmath import safe_sparse_dot

from strads.errors import InputError
from strads.models._file_contents import Number, Table
from strads.models._iterative import IterativeEstimator
from strads.models.regression.inputs import as_features_to_predict
from strads.progress import Shown

LARGEST = 1e100  # C or a constant feature: squares of larger ones may overflow


def dense(coef: Any) -> NDArray[Any]:
    """Return coefficients, which `sparsify` may have made sparse, as an ndarray."""
    return np.asarray(coef.toarray() if scipy.sparse.issparse(coef) else coef)


class LinearClassifier(SparseCoefMixin, IterativeEstimator):
    """A classifier with the attributes `coef_` (rows, n_features), `intercept_` (rows,), `classes_` and `dual_gap_`."""

    class_weight: Any

    shown: ClassVar = Shown(
        {"objective": "objective", "relative_gap": "duality gap", "relative_gradient": "gradient"},
        "samples",
        "iteration",
        has_plan=False,
    )

    _contents: ClassVar = {
        "coef": Table(dtypes="f4 f8", shape=("rows", "features")),
        "intercept": Table(dtypes="f4 f8", shape=("rows",)),
        "classes": Table(dtypes="i u f b U", shape=("classes",)),
        "dual_gap": Number(finite=False),
    }

    def _predictors(self, X: Any) -> NDArray[Any]:
        """Return X `coef_`ᵀ + `intercept_`, of shape (n_samples, rows)."""
        self._check_fitted()
        return np.asarray(safe_sparse_dot(as_features_to_predict(self, X), dense(self.coef_).T)) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        classes = self.classes_
        if classes.dtype == object:
            if not all(isinstance(label, str) for label in classes):
                raise InputError("labels that are Python objects cannot be saved: use strings or numbers")
            classes = classes.astype(str)
        arrays = {"coef": dense(self.coef_), "intercept": self.intercept_, "classes": classes}
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in"] = self.feature_names_in_.astype(str)
        return {"dual_gap": self.dual_gap_}, arrays

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.coef_, self.intercept_, self.classes_ = (arrays[name] for name in ("coef", "intercept", "classes"))
        rows = {len(self.classes_), 1} if len(self.classes_) == 2 else {len(self.classes_)}
        if len(self.coef_) not in rows or len(self.classes_) < 2:
            raise ValueError(f"coefficients of shape {self.coef_.shape} of {len(self.classes_)} classes")
        self.dual_gap_ = float(parameters["dual_gap"])
        self.n_features_in_ = self.coef_.shape[1]
        if isinstance(self.class_weight, list):
            self.class_weight = dict(self.class_weight)
        if "feature_names_in" in arrays:
            self.feature_names_in_ = arrays["feature_names_in"].astype(object)
