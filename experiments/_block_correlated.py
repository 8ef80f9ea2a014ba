"""Dense Lasso problems with correlated blocks of columns, as genes in linkage are, and one-node rounds on them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.engine.dynamic.coordinate_rounds import CoordinateRounds
from strads.models.kernels.columns import DenseColumns
from strads.models.kernels.coordinate_model import SAMPLES, Coefficients, CoordinateModel, make_rows
from strads.models.kernels.datafits import Quadratic
from strads.models.kernels.penalties import ElasticNet
from strads.models.regression.local_design import DenseDesign
from strads.models.regression.problem import Problem
from strads.schedule.dynamic.schedules import CompiledSchedule


@dataclass
class Lasso:
    """½‖y − Xw‖² + λ‖w‖₁ with columns of mean 0 and variance 1."""

    X: NDArray[np.floating]
    y: NDArray[np.float64]
    penalty: float

    def problem(self) -> Problem:
        """Return it for solvers."""
        features, ones = self.X.shape[1], np.ones(len(self.y))
        l1 = np.full(features, self.penalty)
        return Problem(DenseDesign(self.X), Quadratic(self.y, ones), l1, np.zeros(features), False)

    def objective(self, w: NDArray[np.float64]) -> float:
        """Return ½‖y − Xw‖² + λ‖w‖₁."""
        support = np.flatnonzero(w)
        residual = self.y - self.X[:, support] @ w[support]
        return float(0.5 * residual @ residual + self.penalty * np.abs(w).sum())

    def model(self) -> CoordinateModel:
        """Return the state at w = 0."""
        samples, features = self.X.shape
        zero = np.zeros(features)
        squares = np.full(features, float(samples))
        entries = np.full(features, samples)
        penalty = ElasticNet(np.full(features, self.penalty), zero)
        rows = make_rows(DenseColumns(self.X), Quadratic(self.y, np.ones(samples)), np.zeros(samples))
        return CoordinateModel(rows, Coefficients(penalty, squares, zero, zero, entries, zero.copy(), np.zeros(4)))


def block_correlated(
    samples: int,
    features: int,
    block: int,
    share: float,
    *,
    correlation: float = 0.72,
    noise: float = 3.0,
    seed: int = 0,
) -> Lasso:
    """Make columns that share a factor with the others of their block, and 50 that count.

    Parameters
    ----------
    correlation
        Of two columns of a block.
    share
        λ as a share of the largest that has a solution other than 0.
    """
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(samples, features // block))
    X = np.empty((samples, features), np.float32, order="F")
    for member in range(block):
        X[:, member::block] = math.sqrt(correlation) * factors + math.sqrt(1.0 - correlation) * rng.normal(
            size=factors.shape
        )
    w = np.zeros(features)
    w[rng.choice(features, 50, replace=False)] = rng.normal(size=50)
    X -= X.mean(0)
    X /= X.std(0)
    y = X @ w + noise * rng.normal(size=samples)
    y -= y.mean()
    return Lasso(X, y, share * float(np.abs(y @ X).max()))


def samples_until(
    lasso: Lasso, schedule: CompiledSchedule, target: float, most: float, team: ThreadTeam
) -> tuple[float, float, float]:
    """Run rounds until the objective is at most `target`, or `most` passes over X are through, or it diverges.

    Returns
    -------
    passes, objective, updates a round
    """
    model = lasso.model()
    rounds = CoordinateRounds(schedule.state, model, team)
    null, turns, updates = 0.5 * float(lasso.y @ lasso.y), 0, 0
    between = max(1, 2048 // schedule.concurrency)
    while True:
        updates += rounds.run(between)
        turns += between
        objective = lasso.objective(model.coefficients.coef)
        passes = float(model.coefficients.scalars[SAMPLES]) / lasso.X.size
        if objective <= target or passes > most or not objective < 100.0 * null:
            return passes, objective, updates / turns
