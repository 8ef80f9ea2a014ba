"""Lasso, ElasticNet and LogisticRegression with the strength of the penalty chosen by cross-validation."""

import copy
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from strads.errors import ArgumentError, InputError
from strads.models._parameters import as_numbers, check_share, check_verbose, check_whole_numbers, is_number
from strads.models.arrays import Array
from strads.models.lasso import ElasticNet, Lasso
from strads.models.logistic_regression import LogisticRegression
from strads.models.regression.fitting import strengths_down
from strads.models.regression.inputs import as_classes, as_features, as_sample_weights, as_targets, refuse_not_finite
from strads.models.regression.linear_estimator import dense
from strads.models.regression.linear_model import PenalizedLinearModel
from strads.models.regression.path import alpha_max, lasso_path, logistic_path
from strads.progress import Shown, showing

Grids = list[tuple[dict[str, Any], Array]]  # combinations of other parameters, each with the strengths to try


class Fold(NamedTuple):
    """Some of the samples: X of shape (samples, features), y and the weights of shape (samples,)."""

    X: Any
    y: NDArray[Any]
    weights: Array


class CrossValidated(BaseEstimator):
    """Follows the path of penalties on the training part of each fold, scores it on the rest, and fits the best to all.

    Subclasses say what a path and a score are.
    """

    # What a progress display shows of each record of `on_fold`.
    shown: ClassVar[Shown] = Shown({"score": "best score"}, "fits", "fold")

    _taken_over: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "dual_gap_", "n_iter_", "history_")

    cv: Any  # how to split into folds, as in scikit-learn: a number of folds, a splitter, or (train, test) pairs
    verbose: bool  # whether to show progress
    best_estimator_: PenalizedLinearModel  # with the chosen penalty

    @abstractmethod
    def _checked_targets(self, y: Any, samples: int) -> NDArray[Any]:
        """Check y, and return it as an array."""

    @abstractmethod
    def _grids(self, X: Any, y: NDArray[Any], weights: Array) -> Grids:
        """Return, for each combination of other parameters, those and the strengths to try."""

    @abstractmethod
    def _scores(self, train: Fold, test: Fold, options: dict[str, Any], values: Array) -> tuple[Array, Any]:
        """Return a score for each of the values, in their order, of what is learnt from a fold; higher is better.

        With it, what `_publish` needs of the fold.
        """

    @abstractmethod
    def _chosen(self, options: dict[str, Any], value: float) -> PenalizedLinearModel:
        """Return the estimator with what was chosen."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        on_fold: Callable[[dict[str, Any]], object] | None = None,
    ) -> Self:
        """Choose the penalty, and fit with it to all data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or float, optional
            Used in fits and in scores.
        groups : array of shape (n_samples,), optional
            For a `cv` that keeps groups together, such as `GroupKFold`.
        on_fold
            Called with a record of each fold: `iteration`, from 1; `seconds`, and `samples` (fits) so far; `score`.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters or data; the message names the first.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            For each fit that does not reach `tol` in `max_iter` iterations.
        """
        check_verbose(self)
        given, X = X, as_features(self, X)
        refuse_not_finite(self, X)
        targets = self._checked_targets(y, X.shape[0])
        weights = as_sample_weights(sample_weight, X.shape[0])
        rows = X.tocsr() if scipy.sparse.issparse(X) else X
        try:
            folds = list(check_cv(self.cv, targets, classifier=is_classifier(self)).split(rows, targets, groups))
        except ValueError as error:
            raise InputError(f"cv={self.cv!r}: {error}") from error
        if not all(weights[part].any() for fold in folds for part in fold):
            raise InputError("sample_weight: all samples of a fold have weight 0: choose other folds with cv")
        grids = self._grids(X, targets, weights)
        scores = np.empty((len(grids), len(grids[0][1]), len(folds)))
        learnt = np.empty((len(grids), len(folds)), object)
        start = time.perf_counter()
        with ExitStack() as display:
            if self.verbose:
                on_fold = display.enter_context(showing(self.shown, len(grids) * len(folds), on_fold))
            for number, (place, fold) in enumerate(np.ndindex(len(grids), len(folds)), 1):
                train, test = (Fold(rows[part], targets[part], weights[part]) for part in folds[fold])
                found, learnt[place, fold] = self._scores(train, test, *grids[place])
                scores[place, :, fold] = found
                if on_fold is not None:
                    seconds, fits = time.perf_counter() - start, number * scores.shape[1]
                    on_fold({"iteration": number, "seconds": seconds, "samples": fits, "score": float(found.max())})
        means = scores.mean(axis=2)  # all folds count alike, as in scikit-learn
        place, step = (int(each) for each in np.unravel_index(np.argmax(means), means.shape))
        options, values = grids[place]
        best = self._final(self._chosen(options, float(values[step])), (given, y, sample_weight), scores, learnt)
        for name in self._taken_over:
            setattr(self, name, getattr(best, name))
        self.best_estimator_ = best
        self._publish(grids, scores, learnt, place, step)
        return self

    def _final(self, chosen: Any, data: tuple[Any, ...], scores: Array, learnt: NDArray[Any]) -> Any:
        """Return the final estimator: the chosen one, fitted to all data."""
        return chosen.fit(*data)

    @abstractmethod
    def _publish(self, grids: Grids, scores: Array, learnt: NDArray[Any], place: int, step: int) -> None:
        """Set attributes from the search, and from the best combination and strength in it.

        The scores are of shape (combinations, strengths, folds); `learnt`, of shape (combinations, folds), is what
        `_scores` returned with them.
        """

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return what the estimator with the chosen penalty predicts, of shape (n_samples,)."""
        return np.asarray(self._best().predict(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `best_estimator_` to a file, which `load` of its class reads, and `strads predict`."""
        self._best().save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class ElasticNetCV(RegressorMixin, CrossValidated):
    """`ElasticNet` with alpha, and l1_ratio if several are given, chosen by cross-validation.

    Parameters
    ----------
    l1_ratio : float or list of floats, default 0.5
        Values to choose from, from 0 to 1; 0 needs `alphas`.
    eps : float, default 1e-3
        The smallest alpha, relative to the largest.
    alphas : int or array of shape (n,), default 100
        Values of alpha, or how many, evenly spaced on a log scale from the smallest at which all coefficients are 0.
    cv : int, splitter or iterable of (train, test), optional
        As in scikit-learn; None: 5 folds.
    fit_intercept, standardize, positive, solver, max_iter, tol
        As of `ElasticNet`; `tol` holds for every fit.
    verbose : bool, default False
        Whether to show progress: a bar on a terminal and in a notebook, elsewhere a line per fold.
    precompute, copy_X, selection, random_state, n_jobs
        Without effect, as of `ElasticNet`.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        What was chosen: the smallest mean squared error over the folds.
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratio, n_alphas)
        The values tried, in decreasing order; the latter if several l1_ratios each have their own.
    mse_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratio, n_alphas, n_folds)
        Mean squared errors of the folds.
    best_estimator_ : ElasticNet or Lasso
        Fitted with these to all data; its `save` writes it to a file.
    coef_, intercept_, dual_gap_, n_iter_, history_
        Of `best_estimator_`.
    n_features_in_, feature_names_in_
        As of `ElasticNet`.
    """

    _: KW_ONLY
    l1_ratio: float | Sequence[float] = 0.5
    eps: float = 1e-3
    alphas: int | ArrayLike = 100
    fit_intercept: bool = True
    standardize: bool = False
    positive: bool = False
    solver: Any = None
    cv: Any = None
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: bool = False
    precompute: Any = "auto"
    copy_X: bool = True
    selection: str = "cyclic"
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def _checked_targets(self, y: Any, samples: int) -> NDArray[Any]:
        return as_targets(y, samples)

    def _grids(self, X: Any, y: NDArray[Any], weights: Array) -> Grids:
        names = ("fit_intercept", "standardize", "positive", "solver", "max_iter", "tol")
        shared = {name: getattr(self, name) for name in names}
        chosen: Any = self.l1_ratio
        ratios = [chosen] if is_number(chosen) else list(chosen)
        if not ratios:
            raise ArgumentError("l1_ratio is empty: give one number or more")
        grids = []
        for ratio in ratios:
            options = shared | {"l1_ratio": ratio}
            given: Any = self.alphas
            if is_number(given):
                check_share("eps", self.eps, or_one=True)
                check_whole_numbers(self, "alphas")
                values = strengths_down(alpha_max(X, y, weights, **options), float(self.eps), int(given))
            else:
                values = np.sort(as_numbers("alphas", given))[::-1]
            grids.append((options, values))
        return grids

    def _scores(self, train: Fold, test: Fold, options: dict[str, Any], values: Array) -> tuple[Array, None]:
        if options["l1_ratio"] == 0 or not values.all():
            models = [ElasticNet(float(value), **options).fit(*train) for value in values]
            predictors = np.stack([model.predict(test.X) for model in models], axis=1)
        else:
            path = lasso_path(train.X, train.y, alphas=values, sample_weight=train.weights, **options)
            predictors = np.asarray(test.X @ path.sparse_coefs.toarray()) + path.intercepts
        return -np.average((predictors - test.y[:, None]) ** 2, axis=0, weights=test.weights), None

    def _chosen(self, options: dict[str, Any], value: float) -> PenalizedLinearModel:
        return ElasticNet(value, **options)

    def _publish(self, grids: Grids, scores: Array, learnt: NDArray[Any], place: int, step: int) -> None:
        options, values = grids[place]
        self.alpha_, self.l1_ratio_ = float(values[step]), float(options["l1_ratio"])
        self.alphas_, self.mse_path_ = np.array([values for _, values in grids]), -scores
        if is_number(self.l1_ratio):
            self.mse_path_ = self.mse_path_[0]
        if is_number(self.l1_ratio) or not is_number(self.alphas):
            self.alphas_ = self.alphas_[0]


@dataclass(eq=False, repr=False)
class LassoCV(ElasticNetCV):
    """`Lasso` with alpha chosen by cross-validation.

    Parameters
    ----------
    eps, alphas, cv, fit_intercept, standardize, positive, solver, max_iter, tol, verbose, …
        As of `ElasticNetCV`, whose attributes it has as well.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> model = LassoCV(alphas=20).fit(X, X[:, 0] + 0.1 * rng.normal(size=60))
    >>> model.coef_.round(1)
    array([1., 0., 0., 0., 0.])
    """

    l1_ratio: float | Sequence[float] = field(default=1.0, init=False)  # fixed: not a parameter

    def _chosen(self, options: dict[str, Any], value: float) -> PenalizedLinearModel:
        return Lasso(value, **{name: option for name, option in options.items() if name != "l1_ratio"})


@dataclass(eq=False, repr=False)
class LogisticRegressionCV(ClassifierMixin, CrossValidated):
    """`LogisticRegression` with C, and l1_ratio if several are given, chosen by cross-validation.

    Parameters
    ----------
    Cs : int or array of shape (n,), default 10
        Values of C, or how many, evenly spaced on a log scale from 1e-4 to 1e4, as in scikit-learn.
    cv : int, splitter or iterable of (train, test), optional
        As in scikit-learn; None: 5 stratified folds.
    scoring : str or callable, optional
        A scorer of scikit-learn, such as "roc_auc" or "neg_log_loss"; None: the accuracy, with sample weights.
    l1_ratios : list of floats, optional
        Values to choose from, in place of `l1_ratio`.
    refit : bool, default True
        Whether the best parameters over all folds are fitted to all data. Otherwise the coefficients, intercepts and
        parameters of the best model of each fold are averaged.
    penalty, l1_ratio, class_weight, fit_intercept, standardize, solver, max_iter, tol
        As of `LogisticRegression`; `tol` holds for every fit.
    verbose : bool, default False
        As of `ElasticNetCV`.

    Attributes
    ----------
    C_, l1_ratio_ : float
        What was chosen: the largest mean score over the folds, of equal ones the smallest C.
    Cs_, l1_ratios_ : ndarray of shape (n_Cs,), (n_l1_ratios,)
        The values tried, those of C in increasing order.
    scores_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs)
        Scores of the folds.
    coefs_paths_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs, 1 or n_classes, n_features [+ 1])
        Coefficients of the folds, with `fit_intercept` followed by the intercept.
    n_iter_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs)
        Iterations of the folds.
    best_estimator_ : LogisticRegression
        Fitted with these to all data; its `save` writes it to a file.
    classes_, coef_, intercept_, dual_gap_, history_
        Of `best_estimator_`.
    n_features_in_, feature_names_in_
        As of `ElasticNet`.
    """

    _: KW_ONLY
    Cs: int | ArrayLike = 10
    penalty: str | None = "elasticnet"
    l1_ratio: float = 1.0
    l1_ratios: Sequence[float] | None = None
    class_weight: Any = None
    fit_intercept: bool = True
    standardize: bool = False
    solver: Any = None
    cv: Any = None
    scoring: str | Callable[..., float] | None = None
    refit: bool = True
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: bool = False

    _taken_over = ("coef_", "intercept_", "dual_gap_", "history_", "classes_")

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return X w + b: see `LogisticRegression`."""
        return np.asarray(self._best().decision_function(X))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class, of shape (n_samples, n_classes)."""
        return np.asarray(self._best().predict_proba(X))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithm of the probability of each class, of shape (n_samples, n_classes)."""
        return np.asarray(self._best().predict_log_proba(X))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the score by `scoring`, or the accuracy."""
        if self.scoring is None:
            return float(self._best().score(X, y, sample_weight))
        return float(self._scorer()(self._best(), X, y))

    def _scorer(self) -> Any:
        try:
            return get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        except ValueError as error:
            raise ArgumentError(f"scoring={self.scoring!r}: {error}") from error

    def _checked_targets(self, y: Any, samples: int) -> NDArray[Any]:
        self._scorer()
        self.classes_, places = as_classes(y, samples)
        return np.asarray(self.classes_[places])  # of the type that predictions have: a score compares the two

    def _grids(self, X: Any, y: NDArray[Any], weights: Array) -> Grids:
        names = ("penalty", "class_weight", "fit_intercept", "standardize", "solver", "max_iter", "tol")
        options = {name: getattr(self, name) for name in names}
        ratios = [self.l1_ratio] if self.l1_ratios is None else list(self.l1_ratios)
        if not ratios:
            raise ArgumentError("l1_ratios is empty: give one number or more")
        given: Any = self.Cs
        if is_number(given):
            check_whole_numbers(self, "Cs")
            given = np.logspace(-4, 4, int(given))
        return [(options | {"l1_ratio": ratio}, np.sort(as_numbers("Cs", given))) for ratio in ratios]

    def _scores(
        self, train: Fold, test: Fold, options: dict[str, Any], values: Array
    ) -> tuple[Array, list[LogisticRegression]]:
        models = self._models(train, options, values)
        if self.scoring is None:
            return np.array([model.score(*test) for model in models]), models
        scorer = self._scorer()
        return np.array([scorer(model, test.X, test.y) for model in models], np.float64), models

    def _models(self, train: Fold, options: dict[str, Any], values: Array) -> list[LogisticRegression]:
        """Return the models of all values: a path, or each on its own where there are no paths."""
        found: list[LogisticRegression] = []
        if len(self.classes_) == 2 and not LogisticRegression(**options).is_smooth:
            follow = {"Cs": values, "sample_weight": train.weights, **options}
            logistic_path(train.X, train.y, on_step=lambda model: found.append(copy.copy(model)), **follow)
            return found
        return [LogisticRegression(C=float(value), **options).fit(*train) for value in values]

    def _chosen(self, options: dict[str, Any], value: float) -> PenalizedLinearModel:
        return LogisticRegression(C=value, **options)

    def _final(self, chosen: Any, data: tuple[Any, ...], scores: Array, learnt: NDArray[Any]) -> Any:
        if self.refit:
            return super()._final(chosen, data, scores, learnt)
        best = [divmod(int(np.argmax(scores[..., fold])), scores.shape[1]) for fold in range(scores.shape[2])]
        models = [learnt[place, fold][step] for fold, (place, step) in enumerate(best)]
        mean = copy.copy(models[0])
        mean.set_params(
            C=float(np.mean([model.C for model in models])),
            l1_ratio=float(np.mean([model.l1_ratio for model in models])),
        )
        mean.coef_ = np.mean([dense(model.coef_) for model in models], axis=0)
        mean.intercept_ = np.mean([model.intercept_ for model in models], axis=0)
        mean.dual_gap_, mean.history_ = np.inf, []
        if hasattr(self, "feature_names_in_"):  # which the folds, as arrays, did not have
            mean.feature_names_in_ = self.feature_names_in_
        return mean

    def _publish(self, grids: Grids, scores: Array, learnt: NDArray[Any], place: int, step: int) -> None:
        best: Any = self.best_estimator_
        self.C_, self.l1_ratio_ = float(best.C), float(best.l1_ratio)
        self.Cs_, self.scores_ = grids[0][1], np.moveaxis(scores, 2, 0)
        self.l1_ratios_ = np.array([options["l1_ratio"] for options, _ in grids])
        self.n_iter_ = np.array([[[model.n_iter_[0] for model in models] for models in fold] for fold in learnt.T])
        self.coefs_paths_ = np.array([[[self._row(model) for model in models] for models in fold] for fold in learnt.T])

    def _row(self, model: LogisticRegression) -> NDArray[Any]:
        """Return the coefficients of each class, with `fit_intercept` followed by the intercept."""
        coef = dense(model.coef_)
        return np.hstack([coef, model.intercept_[:, None]]) if self.fit_intercept else coef
