"""One training of a linear model: one penalty or a path of penalties, and the report on the coefficients."""

import copy
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from strads.cli.samples_run import (
    InterceptOption,
    IterationsOption,
    SamplesRun,
    ToleranceOption,
    largest_first,
)
from strads.cli.targets import SCORE_NAMES
from strads.cli.train_options import mixing, model_option, positive
from strads.cli.train_run import Record
from strads.errors import ArgumentError, InputError
from strads.models import CoordinateDescent
from strads.progress import EpochProgress, Shown, format_figure

_SHOWN = 5  # coefficients that are shown when training ends
_PATH_TO = 1e-3  # of the largest strength
_RATIO = 0.1  # default of alpha / alpha_max
_CONCURRENCY = 8  # default number of coefficients updated together
_STEPS = 50  # of a path that cross-validation chooses from


@dataclass(frozen=True, kw_only=True)
class LinearParameters:
    """Parameters of the estimators, except the strength of the penalty and the solver."""

    l1_ratio: Annotated[float, model_option(callback=mixing, help="Share of the ℓ1 norm; below 1: elastic net.")] = 1.0
    standardize: Annotated[
        bool, model_option("--standardize", help="Penalize as if all columns had a standard deviation of 1.")
    ] = False
    fit_intercept: InterceptOption = True
    tol: ToleranceOption = 1e-6
    max_iter: IterationsOption = 1000


@dataclass(kw_only=True)
class LinearRun(SamplesRun):
    """Common base of the runs of `strads train lasso` and `strads train logistic`.

    At most one option sets the strength of the penalty. Subclasses say which parameter of the estimator that is, and
    which `score` of the held-out samples chooses the best step of a path.
    """

    parameters: LinearParameters
    alpha_ratio: Annotated[
        float | None,
        model_option(
            callback=positive,
            help="Strength of the penalty, as a fraction of the smallest at which all coefficients are 0; "
            f"by default {_RATIO}.",
        ),
    ] = None
    path: Annotated[
        int | None,
        model_option(
            min=2,
            metavar="STEPS",
            help="Fit this many strengths, from the smallest at which all coefficients are 0 down to 0.001 of it.",
        ),
    ] = None
    cv: Annotated[
        int | None,
        model_option(
            min=2, metavar="FOLDS", help=f"Choose among the strengths of --path, or {_STEPS}, by cross-validation."
        ),
    ] = None
    schedule: Annotated[
        Literal["working_set", "priority", "resting", "violation", "random", "cyclic"],
        model_option(help="Which coefficients are updated together; all but working_set run by the Dynamic Engine."),
    ] = "working_set"
    concurrency: Annotated[
        int | None,
        model_option(
            min=1, help=f"How many coefficients are updated together; by default {_CONCURRENCY}. Not for working_set."
        ),
    ] = None

    strength: ClassVar[str]
    score: ClassVar[str]

    _values: list[float] = field(init=False)
    _steps: list[Record] = field(init=False, default_factory=list)
    _chosen_by: str = field(init=False, default="")
    _unconverged: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        given = [name for name in (self.strength, "alpha_ratio", "path") if getattr(self, name) is not None]
        options = ["--" + name.replace("_", "-") for name in given]
        if len(options) > 1:
            raise ArgumentError(f"{' and '.join(options)} both say how strong the penalty is: give one of them")
        if self.cv is not None:
            if options and self.path is None:
                raise ArgumentError(f"--cv chooses how strong the penalty is: leave out {options[0]}")
            self.path = self.path or _STEPS
        elif not options:
            self.alpha_ratio = _RATIO
        if self.schedule != "working_set":
            self.concurrency = self.concurrency or _CONCURRENCY
        elif self.concurrency is not None:
            raise ArgumentError(
                "--concurrency does not apply to the schedule working_set: leave it out, or give another"
            )

    @abstractmethod
    def critical(self, y: NDArray[Any], parameters: Mapping[str, Any]) -> float:
        """The value of `alpha` or `C` at which coefficients become nonzero."""

    @abstractmethod
    def follow(self, on_step: Callable[[Any], object]) -> None:
        """Fit a path of penalties; `on_step` is called with the estimator after each."""

    @abstractmethod
    def smallest_group(self, y: NDArray[Any]) -> int:
        """Return the size of the smallest group of samples of which every fold needs a member."""

    @abstractmethod
    def cross_validated(self, values: list[float], folds: int) -> Any:
        """The estimator that chooses one of these strengths."""

    @abstractmethod
    def cross_validation_score(self, chooser: Any) -> tuple[str, float]:
        """Name and value of the score by which it has chosen."""

    @property
    def shown(self) -> Shown:
        """What the progress shows of an iteration of the solver, or of a step of the path."""
        shown: Shown = self.model.shown
        if not self._is_path:
            return shown
        held_out = {self.score: f"held-out {SCORE_NAMES[self.score]}"}
        return replace(shown, measures={self.strength: self.strength, **shown.measures, **held_out}, period="step")

    @property
    def planned(self) -> int | None:
        """Number of steps of a path; the number of iterations is unknown."""
        return self.path if self._is_path else None

    @property
    def history(self) -> list[Record]:
        """Records of the steps of a path, or of the estimator."""
        return self._steps if self._is_path else super().history

    @property
    def _is_path(self) -> bool:
        """Whether the model is the best of a path on the held-out samples."""
        return self.path is not None and self.cv is None

    def read(self) -> None:
        """Read the samples, and determine the strength of the penalty."""
        super().read()
        count = self.smallest_group(self._y)
        if self.cv is not None and self.cv > count:
            raise InputError(f"{self.data}: --cv {self.cv}: {count:,} samples of a kind cannot be in so many folds")
        self._values = self._strengths()

    def prepare(self, console: Console) -> None:
        """Choose the strength of the penalty by cross-validation, if that is wanted."""
        if self.cv is None:
            return
        chooser = self.cross_validated(self._values, self.cv)
        with EpochProgress(self.cv, chooser.shown, console=console) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            chooser.fit(self._samples.X, self._y, on_fold=progress.update)
        name, score = self.cross_validation_score(chooser)
        self._chosen_by = f"best of {len(self._values)} by {self.cv} folds, {SCORE_NAMES[name]} {score:.4f}"
        self._values = [float(np.ravel(getattr(chooser, f"{self.strength}_"))[0])]

    def model_parameters(self) -> Record:
        """All parameters of the estimator except the strength of the penalty."""
        found = self.recorded_parameters()
        if self.schedule == "working_set":
            return found
        assert self.concurrency is not None
        solver = CoordinateDescent(self.schedule, self.concurrency, random_state=self.common.seed)
        return found | {"solver": solver}

    def recorded_parameters(self) -> Record:
        """The same without the solver."""
        found = asdict(self.parameters)
        return found if found["l1_ratio"] != 1 else {name: found[name] for name in found if name != "l1_ratio"}

    def _strengths(self) -> list[float]:
        """Values of `alpha` or `C`."""
        value = getattr(self, self.strength)
        if value is not None:
            return [value]
        of_penalty = ("penalty", "l1_ratio", "fit_intercept", "standardize", "class_weight")
        parameters = {name: value for name, value in self.recorded_parameters().items() if name in of_penalty}
        critical = self.critical(self._y, parameters)
        if not 0 < critical < math.inf:
            raise InputError(f"{self.data}: no column is correlated with what is to be predicted")
        shares = [self.alpha_ratio or _RATIO] if self.path is None else np.geomspace(1.0, _PATH_TO, self.path).tolist()
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
            record |= {self.strength: float(getattr(model, self.strength)), "iterations": int(np.max(model.n_iter_))}
            self._steps.append(record | self.measured(model))
            if self._steps[-1] is max(self._steps, key=self._merit):  # without test data, the latest always is
                best[:] = [copy.copy(model)]
            on_record(self._steps[-1])

        try:
            self.follow(on_step)
        finally:
            if best:
                self.model.__dict__.update(best[0].__dict__)

    def kept_record(self, history: list[Record]) -> Mapping[str, Any]:
        """The record of the step whose model is kept."""
        if not self._is_path or not history:
            return super().kept_record(history)
        return max(history, key=self._merit)

    def _merit(self, record: Mapping[str, Any]) -> float:
        score = float(record.get(self.score, math.nan))
        return record["iteration"] if math.isnan(score) else score

    def announcement(self) -> list[str]:
        """The amount of data, and the penalty."""
        first, last = (f"{self.strength} = {self._values[place]:.6g}" for place in (0, -1))
        penalty = f"{first} … {last}, {len(self._values)} steps" if self.path is not None else first
        return [*super().announcement(), penalty]

    def arguments(self) -> Record:
        """How the files are read, and what is not a parameter of the estimator."""
        return super().arguments() | {
            "ratio": self.alpha_ratio,
            "path": self.path,
            "cv": self.cv,
            "l1_ratio": self.parameters.l1_ratio,
            "schedule": self.schedule,
            "concurrency": self.concurrency,
        }

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The solution, and how well it predicts."""
        return {
            self.strength: last.get(self.strength, self._values[0]),
            "objective": last.get("objective"),
            "relative_gap": last.get("relative_gap"),
            "nonzero": last.get("active"),
            "intercept": self._intercept() if self._is_trained else None,
            "converged": self._unconverged == 0,
            **self._scores,
        }

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The figures as shown to the user, and the largest coefficients."""
        coef = np.ravel(self.model.coef_)
        lines = [f"{coef[place]:<+10.4g}  {self._shown_name(int(place))}" for place in largest_first(coef)[:_SHOWN]]
        rows = self.score_rows()
        if self._chosen_by:
            rows.append(("chosen", f"{self.strength} = {self._values[0]:.6g}: {self._chosen_by}"))
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
            rows.append(self.not_reached(missed))
        return rows

    def _intercept(self) -> float | list[float]:
        """Return the intercept; for several classes, a list with one for each."""
        found: list[float] = np.ravel(self.model.intercept_).astype(float).tolist()
        return found[0] if len(found) == 1 else found

    def _shown_name(self, place: int) -> str:
        """Name the coefficient at a position: by its feature and, if there are several classes, its class."""
        row, column = divmod(place, len(self._samples.names))
        name = str(self._samples.names[column])
        name = f"feature {name}" if name.isdecimal() else name
        classes = self._classes()
        return f"{name}, for {classes[row]}" if len(classes) > 1 else name
