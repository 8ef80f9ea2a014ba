"""Lasso as a dynamic SchMP program, and block-correlated data for it."""

import time
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from sklearn.linear_model import Lasso

from strads import schmp
from strads.schedule.dynamic.dependencies import dense_dependencies
from strads.schedule.dynamic.schedules import PrioritySchedule

Matrix = NDArray[np.float64]
Change = tuple[float, NDArray[np.int64], Matrix]  # moment, parameters, by how much


@njit(nogil=True, cache=True, fastmath=True)
def correlate(X, residual, columns):  # type: ignore[no-untyped-def]
    """Return x_jᵀr of some columns."""
    found = np.empty(len(columns))
    for place, j in enumerate(columns):
        total = 0.0
        for i in range(len(residual)):
            total += X[i, j] * residual[i]
        found[place] = total
    return found


@njit(nogil=True, cache=True, fastmath=True)
def subtract(X, residual, columns, changes):  # type: ignore[no-untyped-def]
    """Bring a residual up to date."""
    for place, j in enumerate(columns):
        for i in range(len(residual)):
            residual[i] -= X[i, j] * changes[place]


@dataclass
class Problem:
    """½‖y − Xw‖² + λ‖w‖₁, columns of norm 1, and its optimum."""

    X: Matrix
    y: Matrix
    threshold: float
    optimum: float

    def objective(self, residual: Matrix, coef: Matrix) -> float:
        """Return the objective."""
        return float(0.5 * residual @ residual + self.threshold * np.abs(coef).sum())


def block_correlated(samples: int, features: int, ratio: float) -> Problem:
    """Make twelve correlated columns (0.72) around each of `features` / 12 common factors; λ = λmax · ratio."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(samples, features // 12))
    X = np.empty((samples, features), order="F")
    for member in range(12):
        X[:, member::12] = 0.85 * z + 0.53 * rng.normal(size=z.shape)
    X -= X.mean(0)
    X /= np.linalg.norm(X, axis=0)
    true = np.zeros(features)
    true[rng.choice(features, 50, replace=False)] = rng.normal(size=50)
    y = np.sqrt(samples) * (X @ true) + 3 * rng.normal(size=samples)
    y -= y.mean()
    problem = Problem(X, y, np.abs(X.T @ y).max() * ratio, 0.0)
    coef = Lasso(problem.threshold / samples, fit_intercept=False, tol=1e-9, max_iter=100_000).fit(X, y).coef_
    problem.optimum = problem.objective(y - X @ coef, coef)
    return problem


class DistributedLasso(schmp.DynamicProgram):
    """Algorithm 6 of the thesis; a worker's data are its rows of X, and their residual."""

    def __init__(self, problem: Problem, workers: int, plan: int, seed: int):
        self.workers, self.parameters, self.plan, self.seed = workers, problem.X.shape[1], plan, seed
        self.threshold = problem.threshold
        self.sample = np.asfortranarray(problem.X[::4], np.float32)  # rows for the check of dependencies
        self.coef = np.zeros(self.parameters)
        self.history: list[Change] = []

    def schedule(self, instance: int, parameters: range) -> schmp.DynamicSchedule:
        own = dense_dependencies(self.sample[:, parameters.start : parameters.stop], self.plan)
        return PrioritySchedule(parameters, self.plan, crowding=np.inf, dependencies=own, seed=self.seed)

    def update(self, parameters: NDArray[np.int64], data: tuple[Matrix, Matrix]) -> Matrix:
        return correlate(*data, parameters)

    def aggregate(self, parameters: NDArray[np.int64], result: Matrix) -> Matrix:
        old = self.coef[parameters]
        z = old + result
        new = np.sign(z) * np.maximum(np.abs(z) - self.threshold, 0.0)
        self.coef[parameters] = new
        self.history.append((time.perf_counter(), parameters, new - old))
        return new - old

    def commit(self, parameters: NDArray[np.int64], changes: Matrix, data: tuple[Matrix, Matrix]) -> None:
        subtract(*data, parameters, changes)
