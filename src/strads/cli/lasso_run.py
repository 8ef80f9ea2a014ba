"""One run of `strads train lasso`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from strads.cli.design_file import Samples
from strads.cli.linear_run import LinearRun
from strads.cli.targets import as_numbers
from strads.models import ElasticNetCV, alpha_max, lasso_path


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
        return as_numbers(path, samples)

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
