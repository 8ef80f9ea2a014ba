"""One training of a linear model: one penalty or a path of penalties, and the report on the coefficients."""

import copy
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score, roc_auc_score, root_mean_squared_error

from strads.cli.design_file import DesignOptions, Samples, read_samples
from strads.cli.run_directory import COEFFICIENTS
from strads.cli.train_linear_options import RATIO, LinearOptions, Schedule, column_names
from strads.cli.train_run import Record, TrainRun
from strads.errors import ArgumentError, InputError
from strads.models import CoordinateDescent, alpha_max, l1_min_c, lasso_path, logistic_path
from strads.progress import format_figure

_SHOWN = 5  # coefficients that are shown when training ends
_PATH_TO = 1e-3  # of the largest strength
_NAMES = {"r2": "R²", "rmse": "RMSE", "auc": "AUC"}


@dataclass(frozen=True)
class Penalty:
    """Strength of the penalty, given by exactly one of the parameters.

    Parameters
    ----------
    value : float or None
        alpha or C.
    share : float or None
        Fraction of the strength at which all coefficients are 0.
    steps : int or None
        Number of strengths, from there downwards.
    """

    value: float | None = None
    share: float | None = None
    steps: int | None = None

    @classmethod
    def of(cls, *, alpha_ratio: float | None, path: int | None, **value: float | None) -> Self:
        """Return the penalty that options give: at most one of them and of `alpha` or `C`; by default a tenth.

        Raises
        ------
        ArgumentError
            For several; the message names them.
        """
        given = {**value, "alpha_ratio": alpha_ratio, "path": path}
        options = ["--" + name.replace("_", "-") for name, value in given.items() if value is not None]
        if len(options) > 1:
            raise ArgumentError(f"{' and '.join(options)} both say how strong the penalty is: give one of them")
        (strength,) = value.values()
        return cls(strength, alpha_ratio if options else RATIO, path)


@dataclass(kw_only=True)
class LinearRun(TrainRun):
    """Common base of the runs of `strads train lasso` and `strads train logistic`."""

    options: LinearOptions
    penalty: Penalty

    unit: ClassVar[str] = "entries"
    beginning: ClassVar[str] = "compiling, looking at all columns: the first iteration takes some seconds longer"
    texts: ClassVar[tuple[str, ...]] = (COEFFICIENTS,)
    saves_while_training: ClassVar[bool] = False
    strength: ClassVar[str]
    score: ClassVar[str]

    model: Any = field(init=False)
    _samples: Samples = field(init=False)
    _held_out: Samples | None = field(init=False, default=None)
    _values: list[float] = field(init=False)
    _steps: list[Record] = field(init=False, default_factory=list)
    _y: NDArray[Any] = field(init=False)
    _test_y: NDArray[Any] = field(init=False)
    _scores: Record = field(init=False, default_factory=dict)
    _unconverged: int | None = field(init=False, default=None)

    @abstractmethod
    def targets(self, path: Path, samples: Samples) -> NDArray[Any]:
        """The targets, in the estimator's format."""

    @abstractmethod
    def critical(self, y: NDArray[Any], parameters: Mapping[str, Any]) -> float:
        """The value of `alpha` or `C` at which coefficients become nonzero."""

    @abstractmethod
    def follow(self, on_step: Callable[[Any], object]) -> None:
        """Fit a path of penalties; `on_step` is called with the estimator after each."""

    @abstractmethod
    def scores(self, model: Any, X: Any, y: NDArray[Any]) -> Record:
        """Scores of a model on held-out samples; a path selects by the first."""

    @property
    def period(self) -> str:  # type: ignore[override]
        """A step of the path, or an iteration of the solver."""
        return "step" if self._is_path else "iteration"

    @property
    def measures(self) -> Mapping[str, str]:  # type: ignore[override]
        """Measures of each record."""
        fixed = {"objective": "objective", "relative_gap": "duality gap", "active": "nonzero"}
        return (
            {self.strength: self.strength, **fixed, self.score: f"held-out {_NAMES[self.score]}"}
            if self._is_path
            else fixed
        )

    @property
    def ends_iterations(self) -> bool:
        """A solution exists only between iterations."""
        return True

    @property
    def planned(self) -> int | None:
        """Number of steps of a path; the number of iterations is unknown."""
        return self.penalty.steps

    @property
    def history(self) -> list[Record]:
        """Records of the steps of a path, or of the estimator."""
        return self._steps if self._is_path else super().history

    @property
    def _is_path(self) -> bool:
        return self.penalty.steps is not None

    def read(self) -> None:
        """Read the training and test samples, and determine the strength of the penalty."""
        options = self.options
        if options.test is None and options.test_labels is not None:
            raise InputError(f"{options.test_labels}: give the samples that these labels are of as --test")
        columns = DesignOptions(options.labels, options.names, options.target, column_names(options.drop))
        self._samples = read_samples(self.data, columns)
        self._y = self.targets(self.data, self._samples)
        if options.test is not None:
            columns = replace(columns, labels=options.test_labels)
            self._held_out = read_samples(options.test, columns, like=self._samples)
            self._test_y = self.targets(options.test, self._held_out)
        self._values = self._strengths()

    def model_parameters(self) -> Record:
        """All parameters of the estimator except the strength of the penalty."""
        schedule, concurrency = self.options.schedule, self.options.concurrency
        if schedule == Schedule.working_set:
            return self.parameters
        solver = CoordinateDescent(schedule.value, concurrency, random_state=self.common.seed)
        return self.parameters | {"solver": solver}

    def _strengths(self) -> list[float]:
        """Values of `alpha` or `C`."""
        if self.penalty.value is not None:
            return [self.penalty.value]
        of_penalty = ("penalty", "l1_ratio", "fit_intercept", "standardize", "class_weight")
        parameters = {name: self.parameters[name] for name in of_penalty if name in self.parameters}
        critical = self.critical(self._y, parameters)
        if not 0 < critical < math.inf:
            raise InputError(f"{self.data}: no column has anything to do with what is to be predicted")
        if self.penalty.steps is not None:
            shares = np.geomspace(1.0, _PATH_TO, self.penalty.steps).tolist()
        else:
            shares = [self.penalty.share]
        return [critical * share if self.strength == "alpha" else critical / share for share in shares]

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train with one penalty, or with a path of them, keeping the model that is best on the test data."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            if self._is_path:
                self._fit_path(on_record)
            else:
                self.model.set_params(**{self.strength: self._values[0]})
                self.model.fit(self._samples.X, self._y, on_iteration=on_record)
        self._unconverged = sum(issubclass(each.category, ConvergenceWarning) for each in caught)

    def _fit_path(self, on_record: Callable[[Record], object]) -> None:
        best: list[Any] = []
        seconds, samples = 0.0, 0

        def on_step(model: Any) -> None:
            nonlocal seconds, samples
            last = model.history_[-1]
            seconds, samples = seconds + last["seconds"], samples + last["samples"]
            record = last | {"iteration": len(self._steps) + 1, "seconds": seconds, "samples": samples}
            record |= {self.strength: float(getattr(model, self.strength)), "iterations": model.n_iter_}
            self._steps.append(record | self._measured(model))
            if self._is_better(self._steps[-1]):
                best[:] = [copy.copy(model)]
            on_record(self._steps[-1])

        try:
            self.follow(on_step)
        finally:
            if best:
                self.model.__dict__.update(best[0].__dict__)

    def _is_better(self, record: Record) -> bool:
        """Whether a step is better than all previous ones; without test data, the latest always is."""
        return record is max(self._steps, key=self._merit)

    def kept_record(self, history: list[Record]) -> Mapping[str, Any]:
        """The record of the step whose model is kept."""
        if not self._is_path or not history:
            return super().kept_record(history)
        return max(history, key=self._merit)

    def _merit(self, record: Mapping[str, Any]) -> float:
        score = float(record.get(self.score, math.nan))
        return record["iteration"] if math.isnan(score) else score

    def _measured(self, model: Any) -> Record:
        return {} if self._held_out is None else self.scores(model, self._held_out.X, self._test_y)

    def measure(self) -> None:
        """Predict the held-out samples."""
        self._scores = self._measured(self.model)

    def announcement(self) -> list[str]:
        """The amount of data, and the penalty."""
        first, last = (f"{self.strength} = {self._values[place]:.6g}" for place in (0, -1))
        penalty = f"{first} … {last}, {len(self._values)} steps" if self._is_path else first
        return [self._samples.describe(self._held_out), penalty]

    def arguments(self) -> Record:
        """How the files are read."""
        options = self.options
        return {
            "labels": None if options.labels is None else str(options.labels),
            "names": None if options.names is None else str(options.names),
            "target": options.target,
            "drop": list(column_names(options.drop)),
            "test": None if options.test is None else str(options.test),
            "test_labels": None if options.test_labels is None else str(options.test_labels),
            "ratio": self.penalty.share,
            "path": self.penalty.steps,
            "l1_ratio": options.l1_ratio,
            "schedule": options.schedule.value,
            "concurrency": options.concurrency,
        }

    def about_data(self) -> Record:
        """The kind of file, and numbers of everything."""
        rows, columns = self._samples.X.shape
        return {
            "kind": self._samples.kind,
            "samples": rows,
            "features": columns,
            "entries": self._samples.stored,
            "test_samples": 0 if self._held_out is None else self._held_out.X.shape[0],
        }

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The solution, and how well it predicts."""
        return {
            self.strength: last.get(self.strength, self._values[0]),
            "objective": last.get("objective"),
            "relative_gap": last.get("relative_gap"),
            "nonzero": last.get("active"),
            "intercept": float(np.ravel(self.model.intercept_)[0]) if self._is_trained else None,
            "converged": self._unconverged == 0,
            **self._scores,
        }

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The same for people, and the largest coefficients."""
        coef = np.ravel(self.model.coef_)
        lines = [f"{coef[j]:<+10.4g}  {self._shown_name(j)}" for j in _largest_first(coef)[:_SHOWN]]
        rows = [(f"held-out {_NAMES.get(name, name)}", f"{value:.4f}") for name, value in self._scores.items()]
        if self._is_path:
            rows.append(("chosen", f"step {last['iteration']}, {self.strength} = {last[self.strength]:.6g}"))
        rows.append(("nonzero", f"{np.count_nonzero(coef):,} of {len(coef):,} coefficients"))
        if lines:
            rows.append(("largest", "\n".join(lines)))
        rows.append(
            ("objective", f"{last['objective']:.6g}, relative duality gap {format_figure(last['relative_gap'])}")
        )
        if self._unconverged:
            missed = f"{self._unconverged} of {len(self._steps)} steps" if self._is_path else "the duality gap"
            limit = self.parameters["max_iter"]
            rows.append(
                ("note", f"{missed} did not come down to --tol {self.parameters['tol']:g} in --max-iter {limit}")
            )
        return rows

    def _shown_name(self, column: int) -> str:
        name = str(self._samples.names[column])
        return f"feature {name}" if name.isdecimal() else name

    def texts_of_model(self) -> Mapping[str, str]:
        """The nonzero coefficients, largest first."""
        coef = np.ravel(self.model.coef_)
        lines = [f"{self._samples.names[j]}\t{float(coef[j])!r}" for j in _largest_first(coef)]
        return {COEFFICIENTS: "\n".join(["feature\tcoefficient", *lines]) + "\n"}


@dataclass(kw_only=True)
class LassoRun(LinearRun):
    """A run of `strads train lasso`; with a ridge, of an elastic net."""

    command: ClassVar[str] = "lasso"
    strength: ClassVar[str] = "alpha"
    score: ClassVar[str] = "r2"

    @property
    def estimator(self) -> str:  # type: ignore[override]
        """The estimator that has these parameters."""
        return "ElasticNet" if "l1_ratio" in self.parameters else "Lasso"

    def targets(self, path: Path, samples: Samples) -> NDArray[np.float64]:
        """Numbers."""
        numbers = _as_numbers(samples.y)
        if numbers is None or not np.isfinite(numbers).all():
            bad = next(row for row, text in enumerate(samples.y) if not _is_finite(text))
            where = f"{path}: sample {bad + 1}" if samples.where is None else samples.where(bad)
            raise InputError(
                f"{where}: {str(samples.y[bad])!r:.60} is to be predicted: a finite number is needed; for classes "
                "there is strads train logistic"
            )
        return numbers

    def critical(self, y: NDArray[Any], parameters: Mapping[str, Any]) -> float:
        """The largest useful alpha."""
        return alpha_max(self._samples.X, y, **parameters)

    def follow(self, on_step: Callable[[Any], object]) -> None:
        """Fit for all alphas."""
        lasso_path(self._samples.X, self._y, alphas=self._values, on_step=on_step, **self.model_parameters())

    def scores(self, model: Any, X: Any, y: NDArray[Any]) -> Record:
        """R² and the root mean squared error."""
        predicted = model.predict(X)
        r2 = float(r2_score(y, predicted)) if len(y) > 1 else math.nan
        return {self.score: r2, "rmse": float(root_mean_squared_error(y, predicted))}


@dataclass(kw_only=True)
class LogisticRun(LinearRun):
    """A run of `strads train logistic`."""

    command: ClassVar[str] = "logistic"
    estimator: ClassVar[str] = "LogisticRegression"
    strength: ClassVar[str] = "C"
    score: ClassVar[str] = "auc"

    _labels: NDArray[Any] = field(init=False)

    def targets(self, path: Path, samples: Samples) -> NDArray[Any]:
        """Labels: integers if possible, else strings; the same two in both files."""
        numbers = _as_numbers(samples.y)
        y = samples.y if numbers is None else numbers
        if numbers is not None and np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all():
            y = numbers.astype(np.int64)
        labels = np.unique(y)
        if path == self.data:
            if len(labels) != 2:
                shown = ", ".join(map(repr, labels[:5].tolist())) + (", …" if len(labels) > 5 else "")
                raise InputError(f"{path}: {len(labels)} labels ({shown}): two are needed, of two classes")
            self._labels = labels
        elif unknown := set(labels.tolist()) - set(self._labels.tolist()):
            raise InputError(f"{path}: the label {unknown.pop()!r} is not in the training data")
        return y

    def critical(self, y: NDArray[Any], parameters: Mapping[str, Any]) -> float:
        """The smallest useful C."""
        return l1_min_c(self._samples.X, y, **parameters)

    def follow(self, on_step: Callable[[Any], object]) -> None:
        """Fit for all values of C."""
        logistic_path(self._samples.X, self._y, Cs=self._values, on_step=on_step, **self.model_parameters())

    def scores(self, model: Any, X: Any, y: NDArray[Any]) -> Record:
        """Area under the ROC curve, and accuracy."""
        z = model.decision_function(X)
        second = y == model.classes_[1]
        auc = float(roc_auc_score(second, z)) if 0 < second.sum() < len(y) else math.nan
        return {self.score: auc, "accuracy": float(np.mean((z > 0) == second))}


def _as_numbers(y: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _largest_first(coef: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the nonzero coefficients, by decreasing magnitude."""
    places = np.flatnonzero(coef)
    return np.asarray(places[np.argsort(-np.abs(coef[places]), kind="stable")])
