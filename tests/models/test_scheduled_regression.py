"""Scheduled coordinate descent against scikit-learn, with every schedule, on every backend."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet, LogisticRegression

import strads
from strads.engine.dynamic import coordinate_rounds
from strads.errors import ArgumentError, InputError
from strads.models.kernels.datafits import Logistic, Quadratic
from strads.models.regression import coordinate_descent
from strads.models.regression.coordinate_descent import SCHEDULES, CoordinateDescent
from strads.models.regression.inputs import as_design
from strads.models.regression.problem import Problem
from strads.schedule.dynamic.schedules import DynamicSchedule


def data(seed, kind, dtype=np.float64, samples=60, features=25):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features)).astype(dtype)
    if kind == "sparse":
        X[rng.uniform(size=X.shape) < 0.6] = 0.0
    y = X[:, :4] @ rng.normal(size=4) + 0.3 * rng.normal(size=samples) + 1.0
    return (sp.csc_matrix(X) if kind == "sparse" else np.asfortranarray(X)), y.astype(float)


def elastic_net(X, y, intercept, l1=4.0, l2=0.7, weights=None):
    features = X.shape[1]
    datafit = Quadratic(y, np.ones(len(y)) if weights is None else weights)
    return Problem(as_design(X), datafit, np.full(features, l1), np.full(features, l2), intercept)


def sparse_logistic(X, y, intercept, l1=1.0):
    labels, features = np.where(y > np.median(y) - 0.2, 1.0, -1.0), X.shape[1]
    datafit = Logistic(labels, np.ones(len(y)))
    return Problem(as_design(X), datafit, np.full(features, l1), np.zeros(features), intercept)


def solve(problem, schedule="priority", *, concurrency=8, pipeline_depth=3, **options):
    return CoordinateDescent(schedule, concurrency, pipeline_depth).minimize(problem, **options)


@pytest.mark.few(3)
@pytest.mark.nodes
@pytest.mark.parametrize("schedule", ["cyclic", "priority", "violation"])
@pytest.mark.parametrize("features", [3, 12, 40])
def test_every_node_updates_its_features_however_few(runtime, schedule, features):
    X, y = data(0, "dense", samples=80, features=max(features, 4))
    X, y = X[:, -features:], y + 3.0 * X[:, -1]
    found = solve(elastic_net(X, y, False), schedule, concurrency=32, tol=1e-9)
    expected = ElasticNet(4.7 / len(y), l1_ratio=4.0 / 4.7, fit_intercept=False, tol=1e-10).fit(X, y)
    assert found.converged
    np.testing.assert_allclose(found.coef, expected.coef_, atol=1e-4)


def test_there_may_be_many_looks(monkeypatch):
    monkeypatch.setattr(coordinate_descent, "_GROWTH", 1e40)  # instead of thousands of looks
    X, y = data(0, "dense", features=4)
    assert solve(elastic_net(X, y, False), "cyclic", tol=-1.0, max_iter=20).progress.iteration == 20


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@given(st.integers(0, 1000), st.booleans(), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=6)
def test_elastic_net_agrees_with_scikit_learn(schedule, kind, seed, intercept, dtype):
    X, y = data(seed, kind, dtype)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, len(y))
    found = solve(elastic_net(X, y, intercept, weights=weights), schedule, concurrency=3, tol=1e-12)
    total = weights.sum()  # scikit-learn divides the loss by Σ s_i
    peer = ElasticNet((4.0 + 0.7) / total, l1_ratio=4.0 / 4.7, fit_intercept=intercept, tol=1e-12, max_iter=10**6)
    peer.fit(X.astype(np.float64), y, sample_weight=weights)
    assert found.converged
    np.testing.assert_allclose(found.coef, peer.coef_, atol=1e-6)
    assert found.intercept == pytest.approx(peer.intercept_, abs=1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("intercept", [False, True])
def test_logistic_regression_agrees_with_scikit_learn(schedule, intercept):
    X, y = data(3, "dense")
    problem = sparse_logistic(X, y, intercept)
    found = solve(problem, schedule, concurrency=3, tol=1e-12)
    assert found.converged
    peer = LogisticRegression(
        C=1.0, l1_ratio=1.0, solver="saga", fit_intercept=intercept, tol=1e-13, max_iter=10**6, random_state=0
    ).fit(X, problem.datafit.y)
    np.testing.assert_allclose(found.coef, peer.coef_[0], atol=1e-6)
    assert found.intercept == pytest.approx(float(np.ravel(peer.intercept_)[0]), abs=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("loss", [elastic_net, sparse_logistic])
def test_threads_do_not_change_the_bits(loss, monkeypatch):
    monkeypatch.setattr(coordinate_rounds, "_WORTH_A_THREAD", 1)  # else so little is for one thread
    X, y = data(5, "dense", samples=400)
    found = []
    for threads in (1, 3):
        with strads.init("threads", threads=threads):
            found.append(solve(loss(X, y, True), concurrency=4, tol=1e-9).coef.tobytes())
    assert found[0] == found[1]


@pytest.mark.few(2)
@pytest.mark.nodes
@pytest.mark.parametrize("schedule", ["priority", "resting", "violation", "cyclic"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("loss", [elastic_net, sparse_logistic])
def test_nodes_find_the_same_minimizer(runtime, schedule, kind, loss):
    X, y = data(7, kind)
    X = X + 0.0 if kind == "sparse" else np.asfortranarray(X + 0.3)  # an intercept that matters
    found = solve(loss(X, y, True), schedule, concurrency=4, tol=1e-11, pipeline_depth=2)
    assert found.converged
    np.testing.assert_allclose(found.coef, _alone(loss, X, y), atol=2e-5)


def _alone(loss, X, y):
    """Minimize by plain proximal gradient steps, which need no part of what is tested."""
    problem, dense = loss(X, y, True), X.toarray() if sp.issparse(X) else X
    A = np.column_stack([dense, np.ones(len(y))])
    l1, l2 = np.append(problem.l1, 0.0), np.append(problem.l2, 0.0)
    step = 1.0 / (np.linalg.norm(A, 2) ** 2 + l2.max())
    w = v = np.zeros(A.shape[1])
    momentum = 1.0
    for _ in range(20_000):
        z = A @ v
        labels = problem.datafit.y
        u = labels - z if isinstance(problem.datafit, Quadratic) else labels / (1.0 + np.exp(labels * z))
        new = v + step * (A.T @ u - l2 * v)
        new = np.sign(new) * np.maximum(np.abs(new) - step * l1, 0.0)
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        v = new + (momentum - 1.0) / following * (new - w)
        w, momentum = new, following
    return w[:-1]


def test_progress_is_told_and_can_end_it():
    X, y = data(1, "dense")
    seen = []

    def told(progress):
        seen.append(progress)
        return len(seen) == 2

    found = solve(elastic_net(X, y, True), tol=1e-15, on_progress=told)
    assert [progress.iteration for progress in seen] == [1, 2]
    assert seen[0].samples == X.size < seen[1].samples
    assert seen[1].objective < seen[0].objective
    assert not found.converged
    assert found.progress.iteration == 2


def test_a_warm_start_has_little_to_do():
    X, y = data(1, "dense")
    problem = elastic_net(X, y, True)
    first = solve(problem, tol=1e-10)
    again = solve(problem, tol=1e-9, coef=first.coef, intercept=first.intercept)
    assert again.progress.iteration == 1
    np.testing.assert_array_equal(again.coef, first.coef)


def test_too_many_dependent_updates_are_named():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 40)))
    problem = elastic_net(X, X[:, 0] + rng.normal(size=100), False, l1=0.1)
    with pytest.raises(InputError, match="diverges with 40 updates at a time"):
        solve(problem, "random", concurrency=40)
    assert solve(problem, "priority", concurrency=40, tol=1e-3).converged


class Backwards(DynamicSchedule):
    """A schedule that only the interpreter can run."""

    def __init__(self, parameters):
        self.parameters, self.turn = parameters, 0

    def propose(self):
        self.turn += 1
        return np.array([self.parameters[-self.turn % len(self.parameters)]]), np.ones(1)

    def feedback(self, parameters, changes):
        pass


def test_schedules_of_ones_own():
    X, y = data(2, "dense")
    problem = elastic_net(X, y, True)
    own = solve(problem, lambda instance, parameters: Backwards(parameters), concurrency=1, tol=1e-10)
    np.testing.assert_allclose(own.coef, solve(problem, tol=1e-10).coef, atol=1e-5)


def test_unknown_schedules_are_refused():
    X, y = data(2, "dense")
    with pytest.raises(ArgumentError, match="choose one of"):
        solve(elastic_net(X, y, True), "best")
    with pytest.raises(ArgumentError, match="concurrency=0"):
        solve(elastic_net(X, y, True), concurrency=0)
