"""`strads train lasso`: sparse linear regression of the samples in a file."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from strads.cli.design_file import Samples
from strads.cli.linear_run import LinearRun
from strads.cli.targets import as_numbers
from strads.cli.train_options import model_option, positive
from strads.models import ElasticNetCV, alpha_max, lasso_path


@dataclass(kw_only=True)
class LassoRun(LinearRun):
    """Linear regression with few nonzero coefficients (Lasso, elastic net).

    coefficients.tsv then has the intercept and the features that count, the largest first.

    The best of 50 penalties: [bold]strads train lasso --data train.svm --path 50 --test test.svm --out run[/bold]

    A column of a CSV: [bold]strads train lasso --data houses.csv --target price --standardize --out run[/bold]
    """

    # The strength of the penalty, if it is not set by `alpha_ratio` or `path`.
    alpha: Annotated[float | None, model_option(callback=positive, help="Strength of the penalty.")] = None

    strength: ClassVar[str] = "alpha"  # the estimator's parameter for the strength of the penalty
    score: ClassVar[str] = "r2"  # of held-out samples, by which the best step of a path is chosen

    @property
    def estimator(self) -> str:  # type: ignore[override]
        """The estimator that has these parameters."""
        return "Lasso" if self.parameters.l1_ratio == 1 else "ElasticNet"

    def targets(self, path: Path, samples: Samples) -> NDArray[np.float64]:
        """Numbers."""
        return as_numbers(samples)

    def critical(self, y: NDArray[Any], parameters: Mapping[str, Any]) -> float:
        """The largest useful alpha."""
        return alpha_max(self._samples.X, y, **parameters)

    def follow(self, on_step: Callable[[Any], object]) -> None:
        """Fit for all alphas."""
        lasso_path(self._samples.X, self._y, alphas=self._values, on_step=on_step, **self.model_parameters())

    def smallest_group(self, y: NDArray[Any]) -> int:
        """All samples."""
        return len(y)

    def cross_validated(self, values: list[float], folds: int) -> ElasticNetCV:
        """The elastic net or Lasso with one of these alphas."""
        parts = KFold(folds, shuffle=True, random_state=self.common.seed)
        parameters: dict[str, Any] = {"l1_ratio": 1.0, **self.model_parameters()}
        return ElasticNetCV(**parameters, alphas=values, cv=parts)

    def cross_validation_score(self, chooser: ElasticNetCV) -> tuple[str, float]:
        """The root of the mean squared error."""
        return "rmse", math.sqrt(chooser.mse_path_.mean(1).min())
