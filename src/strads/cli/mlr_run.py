"""`strads train mlr`: multinomial logistic regression of the samples in a file."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from strads.cli.design_file import Samples
from strads.cli.samples_run import BalancedOption, InterceptOption, IterationsOption, SamplesRun, ToleranceOption
from strads.cli.targets import class_labels
from strads.cli.terminal import first_of
from strads.cli.train_options import data_option, model_option, positive
from strads.cli.train_run import Record
from strads.errors import InputError
from strads.progress import format_figure


@dataclass(frozen=True, kw_only=True)
class MlrParameters:
    """Parameters of the estimator."""

    penalty: Annotated[Literal["l2", "l1", "none"], model_option(help="l1 makes most coefficients 0.")] = "l2"
    C: Annotated[float, model_option("--C", callback=positive, help="Weight of the loss against the penalty.")] = 1.0
    fit_intercept: InterceptOption = True
    tol: ToleranceOption = 1e-4
    max_iter: IterationsOption = 1000


@dataclass(kw_only=True)
class MlrRun(SamplesRun):
    """Multinomial logistic regression of two classes or more.

    coefficients.tsv then has the intercept and the nonzero coefficients of each class, the largest first.

    [bold]strads train mlr --data train.svm --test test.svm --out run[/bold]

    Few coefficients, of a CSV: [bold]strads train mlr --data mail.csv --target kind --penalty l1 --out run[/bold]
    """

    parameters: MlrParameters  # options that are parameters of the estimator
    balanced: BalancedOption = False  # whether classes are weighted by the inverse of their sizes
    weights: Annotated[  # name of the column with the weights of samples; None: all weigh the same
        str | None,
        data_option(metavar="COLUMN", help="Column with the weight of each sample (0 or more), not a feature."),
    ] = None

    _weights: NDArray[np.float64] | None = field(init=False, default=None)

    estimator: ClassVar[str] = "MultinomialLogisticRegression"  # its class in `strads.models`

    def recorded_parameters(self) -> Record:
        """Parameters of the estimator."""
        penalty = None if self.parameters.penalty == "none" else self.parameters.penalty
        weight = "balanced" if self.balanced else None
        return super().recorded_parameters() | {"penalty": penalty, "class_weight": weight}

    def read(self) -> None:
        """Read the samples, and take the column of weights from them."""
        super().read()
        if self.weights is None:
            return
        self._samples, self._weights = self._without_weights(self.data, self._samples)
        if np.any(wrong := self._weights < 0):
            row = int(np.argmax(wrong))
            raise InputError(
                f"{self._samples.where(row)}: the weight {self._weights[row]:g} is negative: give 0 or more"
            )
        if self._held_out is not None:  # which all count the same
            self._held_out, _ = self._without_weights(self.options.test or self.data, self._held_out)

    def _without_weights(self, path: Path, samples: Samples) -> tuple[Samples, NDArray[np.float64]]:
        assert self.weights is not None
        if len(samples.names) < 2 or self.weights not in map(str, samples.names):
            raise InputError(f"{path}: there is no column of numbers {self.weights!r} for --weights beside features")
        return samples.without(self.weights)

    def arguments(self) -> Record:
        """How the files are read."""
        return super().arguments() | {"weights": self.weights}

    def targets(self, path: Path, samples: Samples) -> NDArray[Any]:
        """Labels: integers if possible, else strings; the same for all samples."""
        return class_labels(path, samples, None if samples is self._samples else self._y)

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the samples; a tolerance that is not reached is reported with the results."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self._samples.X, self._y, self._weights, on_iteration=on_record)

    def announcement(self) -> list[str]:
        """The amount of data, and the classes."""
        labels = np.unique(self._y).tolist()
        return [*super().announcement(), f"{len(labels)} classes: {first_of(labels)}"]

    def about_data(self) -> Record:
        """The kind of file, and the numbers of samples, features, entries and classes."""
        return super().about_data() | {"classes": len(np.unique(self._y))}

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The solution, and how well it predicts."""
        return {
            "objective": last.get("objective"),
            "relative_gap": last.get("relative_gap"),
            "nonzero": last.get("active"),
            "converged": self._reached(last) <= self.parameters.tol,
            **self._scores,
        }

    @staticmethod
    def _reached(last: Mapping[str, Any]) -> float:
        return float(last.get("relative_gap", last.get("relative_gradient", math.inf)))

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The figures as shown to the user."""
        rows = self.score_rows()
        coef = self.model.coef_
        if self.parameters.penalty == "l1":
            rows.append(("nonzero", f"{np.count_nonzero(coef):,} of {coef.size:,} coefficients"))
        reached = self._reached(last)
        what = "relative duality gap" if "relative_gap" in last else "relative gradient"
        rows.append(("objective", f"{last['objective']:.6g}, {what} {format_figure(reached)}"))
        if reached > self.parameters.tol:
            rows.append(self.not_reached("it"))
        return rows
