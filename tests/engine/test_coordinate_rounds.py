"""Compiled rounds: the same bits on any number of threads, and what a plain loop does."""

from contextlib import closing

import numpy as np
import pytest
import scipy.sparse as sp

from strads.cluster.thread_team import ThreadTeam
from strads.engine.dynamic.coordinate_rounds import CoordinateRounds
from strads.models.kernels.columns import DenseColumns, SparseColumns
from strads.models.kernels.coordinate_model import SAMPLES, Coefficients, CoordinateModel, make_rows
from strads.models.kernels.datafits import Logistic, Quadratic, total_loss
from strads.models.kernels.penalties import ElasticNet
from strads.schedule.dynamic.dependencies import dense_dependencies
from strads.schedule.dynamic.schedules import CyclicSchedule, PrioritySchedule, RandomSchedule

ROWS, COLUMNS, L1, L2 = 70, 30, 3.0, 0.5


def problem(kind, loss, dtype=np.float64, intercept=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)).astype(dtype)
    if kind == "sparse":
        X[rng.uniform(size=X.shape) < 0.7] = 0.0
    S = sp.csc_matrix(X)
    columns = DenseColumns(np.asfortranarray(X)) if kind == "dense" else SparseColumns(S.data, S.indices, S.indptr)
    y, weights = X[:, :5].sum(1) + rng.normal(size=ROWS), rng.uniform(0.5, 1.5, ROWS)
    datafit = (
        Quadratic(y.astype(float), weights) if loss == "quadratic" else Logistic(np.sign(y).astype(float), weights)
    )
    entries = np.full(COLUMNS, ROWS) if kind == "dense" else np.diff(S.indptr).astype(np.int64)
    squares = (weights[:, None] * X.astype(float) ** 2).sum(0)
    coefficients = Coefficients(
        ElasticNet(np.full(COLUMNS, L1), np.full(COLUMNS, L2)),
        squares,
        np.zeros(COLUMNS),
        np.abs(X).max(0).astype(float),
        np.append(entries, ROWS) if intercept else entries,
        np.zeros(COLUMNS + intercept),
        np.array([0.0, 0.0, weights.sum(), 0.0]),
    )
    return X.astype(float), CoordinateModel(make_rows(columns, datafit, np.zeros(ROWS)), coefficients)


def run(model, schedule, rounds, threads=1):
    with closing(ThreadTeam(threads)) as team:
        return CoordinateRounds(schedule.state, model, team).run(rounds)


def objective(model):
    w = model.coefficients.coef[:COLUMNS]
    return total_loss(model.rows.datafit, model.rows.predictor) + L1 * np.abs(w).sum() + 0.5 * L2 * w @ w


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("dense", "quadratic"),
        ("sparse", "logistic"),
        pytest.param("sparse", "quadratic", marks=pytest.mark.slow),
        pytest.param("dense", "logistic", marks=pytest.mark.slow),
    ],
)
def test_threads_do_not_change_the_bits(kind, loss):
    found = []
    for threads in (1, 2, 3):
        X, model = problem(kind, loss, np.float32, intercept=loss == "logistic")
        dependencies = dense_dependencies(np.asfortranarray(X), 5)
        count = COLUMNS + (loss == "logistic")
        schedule = PrioritySchedule(range(count), 5, dependencies=dependencies, seed=2)
        assert run(model, schedule, 60, threads) > 60
        assert run(model, schedule, 7, threads) >= 7  # some rounds, and then more
        found.append((model.coefficients.coef.tobytes(), model.rows.predictor.tobytes()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_one_at_a_time_is_coordinate_descent(kind):
    X, model = problem(kind, "quadratic")
    assert run(model, CyclicSchedule(range(COLUMNS), 1), 3 * COLUMNS) == 3 * COLUMNS
    (y, weights), w = model.rows.datafit, np.zeros(COLUMNS)
    for _ in range(3):
        for j in range(COLUMNS):
            pull = X[:, j] @ (weights * (y - X @ w)) + (weights * X[:, j] ** 2).sum() * w[j]
            w[j] = np.sign(pull) * max(abs(pull) - L1, 0.0) / ((weights * X[:, j] ** 2).sum() + L2)
    np.testing.assert_allclose(model.coefficients.coef, w, atol=1e-12)
    np.testing.assert_allclose(model.rows.predictor, X @ w, atol=1e-12)
    np.testing.assert_allclose(model.rows.gradient, weights * (y - X @ w), atol=1e-12)
    assert (w == 0.0).any()
    assert (w != 0.0).any()


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_each_logistic_step_lets_the_objective_fall(kind, scale):
    _, model = problem(kind, "logistic", intercept=True)
    model.coefficients.coef[:COLUMNS] = scale * np.random.default_rng(1).normal(size=COLUMNS)  # far from the optimum
    X, _ = problem(kind, "logistic")
    model.rows.predictor[:] = X @ model.coefficients.coef[:COLUMNS]
    model = model._replace(rows=make_rows(model.rows.columns, model.rows.datafit, model.rows.predictor))
    schedule, last = RandomSchedule(range(COLUMNS + 1), 1), objective(model)
    for _ in range(400):
        run(model, schedule, 1)
        assert objective(model) <= last * (1 + 1e-12)
        last = objective(model)
    np.testing.assert_allclose(
        model.rows.predictor, X @ model.coefficients.coef[:-1] + model.coefficients.coef[-1], atol=1e-9 * scale
    )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_samples_far_on_the_wrong_side_come_back(kind):
    _, model = problem(kind, "logistic", intercept=True)
    model.coefficients.penalty.l2[:] = 0.0
    far = -800.0 * model.rows.datafit.y  # the curvature underflows to 0
    model = model._replace(rows=make_rows(model.rows.columns, model.rows.datafit, far))
    before = objective(model)
    run(model, CyclicSchedule(range(COLUMNS), 1), COLUMNS)
    assert objective(model) < before
    assert np.count_nonzero(model.coefficients.coef) > COLUMNS / 2


def test_counts_entries_read_and_entries_changed():
    _, model = problem("sparse", "quadratic")
    run(model, CyclicSchedule(range(COLUMNS), 3), COLUMNS // 3)
    changed = model.coefficients.coef != 0.0
    entries = model.coefficients.entries
    assert model.coefficients.scalars[SAMPLES] == entries.sum() + entries[changed].sum()
