"""One training of multinomial logistic regression: the samples, the held-out samples, and the report on the result."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strads.cli.design_file import DesignOptions, Samples, read_samples
from strads.cli.run_directory import COEFFICIENTS
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.progress import format_figure

if TYPE_CHECKING:
    from strads.models import MultinomialLogisticRegression

_NAMES = {"accuracy": "accuracy", "log_loss": "log loss"}
_SHOWN = 5  # classes that are listed


@dataclass(kw_only=True)
class MlrRun(TrainRun):
    """A run of `strads train mlr`."""

    options: DesignOptions
    test: Path | None
    test_labels: Path | None

    command: ClassVar[str] = "mlr"
    estimator: ClassVar[str] = "MultinomialLogisticRegression"
    unit: ClassVar[str] = "samples"
    period: ClassVar[str] = "iteration"
    measures: ClassVar[Mapping[str, str]] = {
        "objective": "objective",
        "relative_gap": "duality gap",
        "relative_gradient": "gradient",
    }
    texts: ClassVar[tuple[str, ...]] = (COEFFICIENTS,)
    saves_while_training: ClassVar[bool] = False

    model: "MultinomialLogisticRegression" = field(init=False)
    _samples: Samples = field(init=False)
    _y: NDArray[Any] = field(init=False)
    _held_out: Samples | None = field(init=False, default=None)
    _test_y: NDArray[Any] = field(init=False)
    _scores: Record = field(init=False, default_factory=dict)

    @property
    def ends_iterations(self) -> bool:
        """Coefficients are published only between iterations."""
        return True

    @property
    def planned(self) -> int | None:
        """Unknown: the duality gap decides."""
        return None

    def read(self) -> None:
        """Read the training and test samples."""
        if self.test is None and self.test_labels is not None:
            raise InputError(f"{self.test_labels}: give the samples that these labels are of as --test")
        self._samples = read_samples(self.data, self.options)
        self._y = _as_labels(self._samples.y)
        known = set(np.unique(self._y).tolist())
        if len(known) < 2:
            raise InputError(f"{self.data}: one label only, {known.pop()!r}: give samples of two classes or more")
        if self.test is not None:
            self._held_out = read_samples(self.test, replace(self.options, labels=self.test_labels), like=self._samples)
            self._test_y = _as_labels(self._held_out.y)
            if unknown := set(self._test_y.tolist()) - known:
                raise InputError(f"{self.test}: the label {unknown.pop()!r} is not in the training data")

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the samples; a tolerance that is not reached is reported with the results."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self._samples.X, self._y, on_iteration=on_record)

    def measure(self) -> None:
        """Predict the held-out samples."""
        if self._held_out is None:
            return
        logarithms = self.model.predict_log_proba(self._held_out.X)
        places = np.searchsorted(self.model.classes_, self._test_y)
        self._scores = {
            "accuracy": float(np.mean(logarithms.argmax(1) == places)),
            "log_loss": -float(np.mean(logarithms[np.arange(len(places)), places])),
        }

    def announcement(self) -> list[str]:
        """The amount of data, and the classes."""
        labels = np.unique(self._y).tolist()
        shown = ", ".join(map(str, labels[:_SHOWN])) + (", …" if len(labels) > _SHOWN else "")
        return [self._samples.describe(self._held_out), f"{len(labels)} classes: {shown}"]

    def arguments(self) -> Record:
        """How the files are read."""
        options = self.options
        return {
            "labels": None if options.labels is None else str(options.labels),
            "names": None if options.names is None else str(options.names),
            "target": options.target,
            "drop": list(options.drop),
            "test": None if self.test is None else str(self.test),
            "test_labels": None if self.test_labels is None else str(self.test_labels),
        }

    def about_data(self) -> Record:
        """The kind of file, and numbers of everything."""
        rows, columns = self._samples.X.shape
        return {
            "kind": self._samples.kind,
            "samples": rows,
            "features": columns,
            "classes": len(np.unique(self._y)),
            "entries": self._samples.stored,
            "test_samples": 0 if self._held_out is None else self._held_out.X.shape[0],
        }

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The solution, and how well it predicts."""
        return {
            "objective": last.get("objective"),
            "relative_gap": last.get("relative_gap"),
            "nonzero": last.get("active"),
            "converged": self._reached(last) <= self.parameters["tol"],
            **self._scores,
        }

    @staticmethod
    def _reached(last: Mapping[str, Any]) -> float:
        return float(last.get("relative_gap", last.get("relative_gradient", math.inf)))

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The same for people."""
        rows = [(f"held-out {_NAMES[name]}", f"{value:.4f}") for name, value in self._scores.items()]
        coef = self.model.coef_
        if self.parameters["penalty"] == "l1":
            rows.append(("nonzero", f"{np.count_nonzero(coef):,} of {coef.size:,} coefficients"))
        reached = self._reached(last)
        what = "relative duality gap" if "relative_gap" in last else "relative gradient"
        rows.append(("objective", f"{last['objective']:.6g}, {what} {format_figure(reached)}"))
        if reached > self.parameters["tol"]:
            limit = self.parameters["max_iter"]
            rows.append(("note", f"it did not come down to --tol {self.parameters['tol']:g} in --max-iter {limit}"))
        return rows

    def texts_of_model(self) -> Mapping[str, str]:
        """The nonzero coefficients of each class, largest first."""
        lines = ["class\tfeature\tcoefficient"]
        for label, coef in zip(self.model.classes_, self.model.coef_, strict=True):
            places = np.flatnonzero(coef)
            for j in places[np.argsort(-np.abs(coef[places]), kind="stable")]:
                lines.append(f"{label}\t{self._samples.names[j]}\t{float(coef[j])!r}")
        return {COEFFICIENTS: "\n".join(lines) + "\n"}


def _as_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers if possible, else as they are in the file."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return y
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if whole else y
