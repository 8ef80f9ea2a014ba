"""Linear support vector machines by dual coordinate descent, on the compiled rounds of the Dynamic Engine."""

import os
import time
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from strads import cluster
from strads.cluster import ThreadTeam
from strads.engine.coordinate_rounds import CoordinateRounds
from strads.errors import InputError
from strads.models._parameters import check_choice, check_n_jobs, check_positive, check_whole_numbers
from strads.models._saving import load_model, plain, save_model
from strads.models.kernels.columns import SparseColumns
from strads.models.kernels.coordinate_model import OFFSET, SAMPLES, Coefficients, CoordinateModel, make_rows
from strads.models.kernels.datafits import Quadratic
from strads.models.kernels.penalties import Box
from strads.models.regression.inputs import (
    as_class_factors,
    as_classes,
    as_features_to_predict,
    as_rows,
    as_sample_weights,
)
from strads.models.regression.local_design import DenseDesign, LocalDesign, SparseDesign
from strads.schedule.dynamic import DynamicRegression

_LOSSES = ("hinge", "squared_hinge")
_DIVERGED = 1e3  # objectives at w = 0 below 0


class LinearSVC(LinearClassifierMixin, BaseEstimator):
    """Minimizes ½‖w‖² + C Σ s_i max(0, 1 − y_i (x_iᵀw + b))ᵖ, with p = 1 (hinge) or 2 (squared hinge).

    By coordinate descent on the dual (Hsieh et al. 2008): a coordinate is a sample, and w is what all of them share.
    Samples are drawn as `schedule.DynamicRegression` draws parameters, by how much they changed last: those whose dual
    variable has settled at a bound are seldom looked at, as with shrinking. Several classes are one against the rest.
    Runs on this machine, as compiled rounds of the Dynamic Engine; other nodes have no part in it.

    Parameters
    ----------
    C : float, default 1.0
        Inverse strength of the regularization.
    loss : {"squared_hinge", "hinge"}, default "squared_hinge"
    fit_intercept : bool, default True
        Whether to append a constant feature to every sample; as in liblinear its weight is regularized too.
    intercept_scaling : float, default 1.0
        The constant; the larger, the less its weight is regularized.
    tol : float, default 1e-4
        Duality gap to reach, relative to the primal objective at w = 0.
    max_iter : int, default 1000
        Most epochs; an epoch updates as many dual variables as there are samples.
    concurrency : int, default 1
        Dual variables that are updated at a time. With 1, the algorithm is sequential.
    class_weight : dict or "balanced", optional
        What C of each class is multiplied by; "balanced": the inverse of its share of the samples' weights. Of several
        classes it counts, as in liblinear, where a class is the one against the rest.
    n_jobs : int or None, default None
        Threads, of use with a larger `concurrency`; None: those of `strads.init`, -1: all cores.
    random_state : int, default 0
        Seed of the draws.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Epochs; of several classes, the most.
    dual_gap_ : float
        Largest relative duality gap of the classes.
    history_ : list of dict
        One record a look at the gap: `class_index`; `iteration` (epochs), `seconds` and `samples` (entries of X
        read) that this class has taken so far; `objective`, `gap`, `active` (support vectors).
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 1000,
        concurrency: int = 1,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ):
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.concurrency = concurrency
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            float32 or float64, C-ordered or CSR: not copied.
        y : array of shape (n_samples,)
            Labels.
        sample_weight : array of shape (n_samples,), optional
            What C of each sample is multiplied by.

        Raises
        ------
        ArgumentError, InputError
            For parameters or data that make no sense.
        """
        self._check_parameters()
        X = as_rows(self, X)
        self.classes_, codes = as_classes(y, X.shape[0])
        strengths = self._strengths(codes, float(self.C) * as_sample_weights(sample_weight, X.shape[0]))
        team = cluster.current().team(cluster.available_cores() if self.n_jobs == -1 else self.n_jobs)
        samples = SparseDesign(X.T, team) if sp.issparse(X) else DenseDesign(X.T, team)
        self.history_: list[dict[str, Any]] = []
        found = [
            self._fit_one(samples, np.where(codes == positive, 1.0, -1.0), strength, number, team)
            for number, (positive, strength) in enumerate(strengths)
        ]
        self.coef_ = np.array([w for w, *_ in found]).astype(X.dtype, copy=False)
        self.intercept_ = np.array([self._constant * offset for _, offset, *_ in found]).astype(X.dtype, copy=False)
        self.n_iter_ = max(epochs for *_, epochs, _ in found)
        self.dual_gap_ = max(gap for *_, gap in found)
        if self.dual_gap_ > self.tol:
            warnings.warn(
                f"LinearSVC: {self.max_iter} epochs have brought the duality gap to {self.dual_gap_:.1e} of the "
                f"objective at w = 0, not to tol={self.tol:g}: allow more with max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @property
    def _constant(self) -> float:
        """The feature that all samples share."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _strengths(
        self, codes: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> list[tuple[int, NDArray[np.float64]]]:
        """Return for each problem its positive class and what C is for each sample, as in liblinear."""
        totals = np.bincount(codes, weights).astype(np.float64)
        of_class = as_class_factors(self.class_weight, self.classes_, totals)
        if len(of_class) == 2:
            return [(1, weights * of_class[codes])]
        return [(k, weights * np.where(codes == k, factor, 1.0)) for k, factor in enumerate(of_class)]

    def _check_parameters(self) -> None:
        check_positive(self, "C", "tol", "intercept_scaling")
        check_whole_numbers(self, "max_iter", "concurrency")
        check_whole_numbers(self, "random_state", least=0)
        check_choice(self, "loss", _LOSSES)
        check_n_jobs(self.n_jobs)

    def _fit_one(
        self,
        design: LocalDesign,
        labels: NDArray[np.float64],
        upper: NDArray[np.float64],
        number: int,
        team: ThreadTeam,
    ) -> tuple[NDArray[np.float64], float, int, float]:
        """Separate one class from the rest; returns w, the offset, epochs, and the relative gap."""
        model = self._model(design, labels, upper)
        samples, start = len(labels), time.perf_counter()
        norms = np.sqrt(np.maximum(model.coefficients.squares, 1e-300))
        count = min(int(self.concurrency), samples)
        schedule = DynamicRegression(range(samples), count, scales=norms, seed=int(self.random_state))
        rounds = CoordinateRounds(schedule.state, model, team, entries=design.entries / samples)
        null = float(upper.sum())
        gap, epochs, between = np.inf, 0, 1
        while epochs < self.max_iter:
            between = min(between, self.max_iter - epochs)
            for _ in range(between):
                rounds.run(-(-samples // count))
            epochs += between
            objective, dual = self._objectives(design, model, upper)
            if not dual >= -_DIVERGED * null:  # one at a time, it only rises, from 0
                raise InputError(
                    f"dual coordinate descent diverges with concurrency={self.concurrency}: choose a smaller one"
                )
            gap = max(objective - dual, 0.0) / null
            self._record(model, number, epochs, time.perf_counter() - start, objective, gap * null)
            if gap <= self.tol:
                break
            between = max(between, epochs // 5)  # a look costs as much as an epoch
        return model.rows.predictor, float(model.coefficients.scalars[OFFSET]), epochs, gap

    def _model(self, design: LocalDesign, labels: NDArray[np.float64], upper: NDArray[np.float64]) -> CoordinateModel:
        """Return the dual at 0: its coordinates are the columns of `design`, its rows the features."""
        features, samples = design.shape
        squared, ones = self.loss == "squared_hinge", np.ones(features)
        with np.errstate(divide="ignore"):
            ridge = np.where(upper > 0.0, 0.5 / upper, 0.0) if squared else np.zeros(samples)
        box = np.where(upper > 0.0, np.inf, 0.0) if squared else upper
        _, squares = design.moments(ones)
        if not np.isfinite(squares).all():
            raise InputError(
                f"X is too large to compute with: row {np.argmax(~np.isfinite(squares))}: scale the features"
            )
        columns = design.columns
        entries = np.diff(columns.indptr) if isinstance(columns, SparseColumns) else np.full(samples, features)
        coefficients = Coefficients(
            Box(labels, box, ridge),
            squares + self._constant**2,
            np.full(samples, self._constant),
            np.zeros(samples),
            entries.astype(np.int64),
            np.zeros(samples),
            np.array([0.0, 1.0, float(features), 0.0]),
        )
        rows = make_rows(columns, Quadratic(np.zeros(features), ones), np.zeros(features))
        return CoordinateModel(rows, coefficients)

    def _objectives(
        self, design: LocalDesign, model: CoordinateModel, upper: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Return the primal and the dual objective."""
        w, scalars, penalty = model.rows.predictor, model.coefficients.scalars, model.coefficients.penalty
        assert isinstance(penalty, Box)
        offset = float(scalars[OFFSET])
        losses = np.maximum(1.0 - penalty.labels * (design.correlate(w) + self._constant * offset), 0.0)
        scalars[SAMPLES] += design.entries
        if self.loss == "squared_hinge":
            losses **= 2
        norm, alpha = 0.5 * (float(w @ w) + offset**2), penalty.labels * model.coefficients.coef
        curvature = 0.5 * float(penalty.ridge @ alpha**2)
        return norm + float(upper @ losses), float(alpha.sum()) - curvature - norm

    def _record(
        self, model: CoordinateModel, number: int, epochs: int, seconds: float, objective: float, gap: float
    ) -> None:
        self.history_.append(
            {
                "class_index": number,
                "iteration": epochs,
                "seconds": seconds,
                "samples": int(model.coefficients.scalars[SAMPLES]),
                "objective": objective,
                "gap": gap,
                "active": int(np.count_nonzero(model.coefficients.coef)),
            }
        )

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return x_iᵀw + b of each class, of shape (n_samples, n_classes); of two, of the second: (n_samples,).

        Raises
        ------
        InputError
            If X has another number of columns than in `fit`, or entries that are not finite.
        """
        check_is_fitted(self)
        scores = np.asarray(safe_sparse_dot(as_features_to_predict(self, X), self.coef_.T)) + self.intercept_
        return scores.ravel() if len(self.coef_) == 1 else scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file (NumPy's `.npz`, no pickle); `LinearSVC.load` reads it."""
        check_is_fitted(self)
        if self.classes_.dtype == object:
            raise InputError("labels that are Python objects cannot be saved: use strings or numbers")
        parameters = {
            "params": plain(self.get_params()),
            "n_iter": self.n_iter_,
            "dual_gap": self.dual_gap_,
            "history": self.history_,
        }
        arrays = {"coef": self.coef_, "intercept": self.intercept_, "classes": self.classes_}
        save_model(path, type(self).__name__, parameters, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote.

        Raises
        ------
        InputError
            If the file is missing, damaged, or holds another kind of model.
        """
        parameters, arrays = load_model(path, cls.__name__)
        try:
            model = cls(**parameters["params"])
            if isinstance(model.class_weight, list):
                model.class_weight = dict(model.class_weight)
            model.coef_, model.intercept_, model.classes_ = (arrays[n] for n in ("coef", "intercept", "classes"))
            model.n_iter_, model.dual_gap_ = int(parameters["n_iter"]), float(parameters["dual_gap"])
            model.history_ = list(parameters["history"])
            model.n_features_in_ = model.coef_.shape[1]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"{os.fspath(path)}: the model file is incomplete ({error})") from error
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
