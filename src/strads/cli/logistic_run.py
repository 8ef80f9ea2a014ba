"""`strads train logistic`: sparse classification of the samples in a file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from strads.cli.design_file import Samples
from strads.cli.linear_run import LinearRun
from strads.cli.samples_run import BalancedOption
from strads.cli.targets import class_labels
from strads.cli.terminal import first_of
from strads.cli.train_options import model_option, positive
from strads.cli.train_run import Record
from strads.errors import InputError
from strads.models import LogisticRegressionCV, l1_min_c, logistic_path


@dataclass(kw_only=True)
class LogisticRun(LinearRun):
    """Logistic regression of two classes or more with few nonzero coefficients.

    coefficients.tsv then has the intercept and the features that count, the largest first. Positive ones speak for the
    class that is named. Of more than two classes each has its own.

    The best of 50 penalties: [bold]strads train logistic --data train.svm --path 50 --test test.svm --out run[/bold]

    A column of a CSV: [bold]strads train logistic --data mail.csv --target spam --standardize --out run[/bold]
    """

    C: Annotated[  # the strength of the penalty, inverted, if it is not set by `alpha_ratio` or `path`
        float | None, model_option("--C", callback=positive, help="Weight of the loss relative to the penalty.")
    ] = None
    balanced: BalancedOption = False  # whether classes are weighted by the inverse of their sizes

    estimator: ClassVar[str] = "LogisticRegression"  # its class in `strads.models`
    strength: ClassVar[str] = "C"  # the estimator's parameter for the strength of the penalty
    score: ClassVar[str] = "auc"  # of held-out samples, by which the best step of a path is chosen

    _labels: NDArray[Any] = field(init=False)

    def recorded_parameters(self) -> Record:
        """All parameters of the estimator except the strength of the penalty and the solver."""
        return super().recorded_parameters() | {"class_weight": "balanced" if self.balanced else None}

    def targets(self, path: Path, samples: Samples) -> NDArray[Any]:
        """Labels: integers if possible, else strings; the same for all samples."""
        known = getattr(self, "_labels", None)
        y = class_labels(path, samples, known)
        if known is None:
            self._labels = np.unique(y)
            if len(self._labels) > 2:
                self._refuse_what_two_classes_have(path)
        return y

    def _refuse_what_two_classes_have(self, path: Path) -> None:
        given = {
            "--path": self.path is not None and self.cv is None,
            "--cv": self.cv is not None,
            "--standardize": self.parameters.standardize,
            "--schedule": self.schedule != "working_set",
        }
        wrong = next((option for option, is_given in given.items() if is_given), None)
        if wrong is not None:
            shown = first_of(self._labels.tolist())
            raise InputError(f"{path}: {len(self._labels)} labels ({shown}): {wrong} is for two classes")

    def critical(self, y: NDArray[Any], parameters: Mapping[str, Any]) -> float:
        """The smallest useful C."""
        return l1_min_c(self._samples.X, y, **parameters)

    def follow(self, on_step: Callable[[Any], object]) -> None:
        """Fit for all values of C."""
        logistic_path(self._samples.X, self._y, Cs=self._values, on_step=on_step, **self.model_parameters())

    def smallest_group(self, y: NDArray[Any]) -> int:
        """The samples of the rarer class."""
        return int(np.unique(y, return_counts=True)[1].min())

    def cross_validated(self, values: list[float], folds: int) -> LogisticRegressionCV:
        """The logistic regression with one of these values of C."""
        parts = StratifiedKFold(folds, shuffle=True, random_state=self.common.seed)
        return LogisticRegressionCV(**self.model_parameters(), Cs=values, cv=parts)

    def cross_validation_score(self, chooser: LogisticRegressionCV) -> tuple[str, float]:
        """The mean accuracy."""
        return "accuracy", float(chooser.scores_.mean(0).max())
