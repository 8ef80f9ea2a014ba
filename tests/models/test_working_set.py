"""The working-set solver: duality gaps that hold, optimality, every kind of matrix, weights, intercepts and ridges."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from strads.errors import ArgumentError
from strads.models.kernels.datafits import Logistic, Quadratic, SquaredHinge
from strads.models.regression.column_shards import ColumnShards
from strads.models.regression.design import Design
from strads.models.regression.local_design import DenseDesign, SparseDesign
from strads.models.regression.problem import Problem
from strads.models.regression.working_set import WorkingSet


def _design(X: np.ndarray, kind: str) -> Design:
    if kind == "sparse":
        return SparseDesign(sp.csc_matrix(X))
    return DenseDesign(np.asfortranarray(X) if kind == "columns" else np.ascontiguousarray(X))


def _violation(problem: Problem, X: np.ndarray, w: np.ndarray, b: float) -> float:
    """Return the largest violation of the optimality conditions, in units of the largest λ."""
    y, s = problem.datafit.y, problem.datafit.weights
    z = X @ w + b
    u = s * (y - z) if isinstance(problem.datafit, Quadratic) else s * y / (1 + np.exp(y * z))
    slopes = X.T @ u - problem.l2 * w
    violation = np.where(w != 0, np.abs(slopes - problem.l1 * np.sign(w)), np.maximum(np.abs(slopes) - problem.l1, 0))
    violation[problem.l1 == 0] = 0
    intercept = abs(u.sum()) if problem.fit_intercept else 0.0
    return max(float(violation.max(initial=0)), intercept) / problem.l1.max()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(3, 40),
    count=st.integers(1, 60),
    kind=st.sampled_from(["sparse", "columns", "rows"]),
    logistic=st.booleans(),
    weighted=st.booleans(),
    intercept=st.booleans(),
    ridge=st.sampled_from([0.0, 0.3]),
    share=st.sampled_from([0.5, 0.1, 0.02]),
)
def test_optimal(seed, rows, count, kind, logistic, weighted, intercept, ridge, share):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, count)) * (rng.random((rows, count)) < 0.6) + 0.3 * rng.normal(size=(rows, 1))
    X[:, rng.integers(count)] = 1.5  # constant
    X[:, rng.integers(count)] = X[:, rng.integers(count)]  # often twice the same
    y = X @ (rng.normal(size=count) * (rng.random(count) < 0.3)) + rng.normal(size=rows)
    weights = rng.uniform(0.2, 2, rows) if weighted else np.ones(rows)
    fit = Logistic(np.where(np.arange(rows) % 3 > 0, np.sign(y) + (y == 0), -1.0), weights) if logistic else None
    fit = fit or Quadratic(y, weights)
    null = 0.5 * weights * fit.y if logistic else weights * (y - np.average(y, weights=weights))
    largest = float(np.abs(X.T @ null).max()) + 1e-3
    factors = rng.uniform(0.5, 2, count)
    problem = Problem(
        _design(X, kind), fit, largest * share * factors, largest * share * ridge * factors, fit_intercept=intercept
    )
    solution = WorkingSet().minimize(problem, tol=1e-10, max_iter=100)
    assert solution.converged
    assert -1e-9 <= solution.relative_gap <= 1e-10
    assert _violation(problem, X, solution.coef, solution.intercept) < 1e-4
    np.testing.assert_allclose(
        solution.progress.objective, problem.objective(X @ solution.coef + solution.intercept, solution.coef), rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["sparse", "columns", "rows"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("logistic", [False, True])
def test_many_columns(kind, dtype, logistic):
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(80, 20_000)) * (rng.random((80, 20_000)) < 0.3)).astype(dtype)
    y = X[:, :5] @ np.ones(5) + 0.1 * rng.normal(size=80)
    y = np.sign(y) if logistic else y
    fit = (Logistic if logistic else Quadratic)(y, np.ones(80))
    l1 = np.full(20_000, 0.02 * np.abs(X.T @ y).max())
    problem = Problem(_design(X, kind), fit, l1, np.zeros(20_000), fit_intercept=True)
    solution = WorkingSet().minimize(problem, tol=1e-9, max_iter=50)
    assert solution.converged
    assert _violation(problem, X.astype(np.float64), solution.coef, solution.intercept) < 1e-3


@pytest.mark.parametrize("kind", ["sparse", "columns"])
@pytest.mark.parametrize("fit", [Quadratic, Logistic, SquaredHinge])
@pytest.mark.parametrize("shape", [(60, 12), (20, 200)])
def test_little_work_far_from_0(kind, fit, shape):
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape) + 10.0 ** rng.uniform(2, 5, shape[1])
    y = np.sign(X[:, 0] - X[:, 0].mean() + rng.normal(size=shape[0]))
    problem = Problem(
        _design(X, kind), fit(y, np.ones(shape[0])), np.ones(shape[1]), np.zeros(shape[1]), fit_intercept=False
    )
    solution = WorkingSet().minimize(problem, tol=1e-6, max_iter=30)
    assert solution.converged
    assert solution.progress.samples < 10_000 * X.size


def test_warm_start_and_progress():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 300)), rng.normal(size=60)
    problem = Problem(DenseDesign(X), Quadratic(y, np.ones(60)), np.full(300, 3.0), np.zeros(300), fit_intercept=True)
    seen = []
    first = WorkingSet().minimize(problem, tol=1e-9, max_iter=50, on_progress=seen.append)
    again = WorkingSet().minimize(problem, tol=1e-8, max_iter=50, coef=first.coef, intercept=first.intercept)
    assert [look.iteration for look in seen] == list(range(1, first.progress.iteration + 1))
    assert all(before.samples < after.samples for before, after in itertools.pairwise(seen))
    assert again.progress.iteration == 1
    stopped = WorkingSet().minimize(problem, tol=1e-9, max_iter=50, on_progress=lambda look: look.iteration == 1)
    assert stopped.progress.iteration == 1
    assert not stopped.converged
    assert not WorkingSet().minimize(problem, tol=1e-9, max_iter=1).converged


@pytest.mark.parametrize("kind", ["sparse", "columns", "rows"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(kind, bad):
    X = np.ones((4, 3))
    X[2, 1] = bad
    problem = Problem(
        _design(X, kind), Quadratic(np.array([1.0, 2, 4, 0]), np.ones(4)), np.ones(3), np.zeros(3), fit_intercept=False
    )
    with pytest.raises(ArgumentError, match="column 1 of X holds"):
        WorkingSet().minimize(problem, tol=1e-6, max_iter=5)


@pytest.mark.nodes
@pytest.mark.parametrize("kind", ["sparse", "columns", "rows"])
@pytest.mark.parametrize("count", [4, 4_001])  # 4: some node has one column, in no order that is its own
def test_same_bits_on_nodes(kind, count, runtime):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, count)) * (rng.random((50, count)) < 0.3)
    y = X[:, :4] @ np.ones(4) + 0.1 * rng.normal(size=50)
    here = _design(X, kind)
    there = ColumnShards(here)
    l1 = np.full(count, 0.03 * np.abs(X.T @ y).max())
    one, many = (
        WorkingSet().minimize(
            Problem(design, Quadratic(y, np.ones(50)), l1, 0 * l1, fit_intercept=True), tol=1e-9, max_iter=50
        )
        for design in (here, there)
    )
    np.testing.assert_array_equal(one.coef, many.coef)
    np.testing.assert_array_equal(here.correlate(y), there.correlate(y))
    for mine, theirs in zip(here.moments(y), there.moments(y), strict=True):
        np.testing.assert_array_equal(mine, theirs)
