"""PoissonRegressor: optimality, gap, agreement with scikit-learn, conventions, bad input."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import strads
from strads.models import CoordinateDescent, PoissonRegressor, WorkingSet
from strads.models.regression import ridge


def problem(seed, samples=150, features=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features)) * (rng.random((samples, features)) < 0.6)
    y = rng.poisson(np.exp(X[:, :3] @ [0.6, -0.4, 0.3] + 0.5)).astype(float)
    return X, y, rng.uniform(0.2, 2.0, samples)


def objective(X, y, weights, w, b, alpha, ratio):
    z = X @ w + b
    half = np.exp(z) - y * z - y + np.where(y > 0, y * np.log(np.maximum(y, 1e-300)), 0.0)
    return weights @ half / weights.sum() + alpha * (ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * w @ w)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("alpha", "ratio"), [(0.02, 1.0), (0.1, 0.5), (0.001, 0.9)])
def test_optimality(alpha, ratio, intercept, sparse):
    X, y, weights = problem(0)
    given = scipy.sparse.csr_array(X) if sparse else X
    model = PoissonRegressor(alpha, l1_ratio=ratio, fit_intercept=intercept, tol=1e-10).fit(given, y, weights)
    w, b = model.coef_, model.intercept_
    slope = X.T @ (weights * (np.exp(X @ w + b) - y)) / weights.sum() + alpha * (1 - ratio) * w
    limit = alpha * ratio
    assert np.all(np.abs(slope) <= limit * (1 + 1e-3))
    assert np.allclose(slope[w != 0], -limit * np.sign(w[w != 0]), atol=1e-4 * limit)
    if intercept:
        assert abs(weights @ (np.exp(X @ w + b) - y)) < 1e-6
    else:
        assert b == 0.0
    assert model.history_[-1]["objective"] == pytest.approx(objective(X, y, weights, w, b, alpha, ratio), rel=1e-9)
    assert 0 < np.count_nonzero(w) < X.shape[1] or alpha == 0.001


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_bounds_the_suboptimality(seed):
    X, y, weights = problem(seed, samples=40, features=100)
    best = PoissonRegressor(0.01, l1_ratio=0.7, tol=1e-12).fit(X, y, weights)
    least = objective(X, y, weights, best.coef_, best.intercept_, 0.01, 0.7)
    for iterations in (1, 2, 3):
        model = PoissonRegressor(0.01, l1_ratio=0.7, tol=1e-14, max_iter=iterations)
        with pytest.warns(ConvergenceWarning, match="PoissonRegressor did not converge"):
            model.fit(X, y, weights)
        value = objective(X, y, weights, model.coef_, model.intercept_, 0.01, 0.7)
        assert -1e-12 <= value - least <= model.dual_gap_ * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_like_scikit_learn_almost_without_an_l1_norm(scale):
    X, y, weights = problem(1)
    y = y * scale
    model = PoissonRegressor(0.1 * scale, l1_ratio=1e-7, tol=1e-12).fit(X, y, weights)
    peer = sklearn.linear_model.PoissonRegressor(alpha=0.1 * scale, tol=1e-9, max_iter=10_000).fit(X, y, weights)
    assert np.allclose(model.coef_, peer.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-3)
    assert np.allclose(model.predict(X), peer.predict(X), rtol=2e-3)
    assert model.score(X, y, weights) == pytest.approx(peer.score(X, y, weights), abs=1e-5)


def test_far_columns_and_warm_start():
    X, y, _ = problem(2)
    far = X + 1e6
    model = PoissonRegressor(0.02, tol=1e-9, warm_start=True).fit(far, y)
    near = PoissonRegressor(0.02, tol=1e-9).fit(X, y)
    assert np.allclose(model.coef_, near.coef_, atol=1e-4)
    iterations = model.n_iter_
    assert model.fit(far, y).n_iter_ <= iterations
    assert np.allclose(model.coef_, near.coef_, atol=1e-4)


def test_files(tmp_path):
    X, y, _ = problem(3)
    model = PoissonRegressor(0.05, positive=True).fit(X, y)
    assert (model.coef_ >= 0).all()
    model.save(tmp_path / "model.npz")
    loaded = PoissonRegressor.load(tmp_path / "model.npz")
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()


@pytest.mark.few(4)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("alpha", "features"), [(0.0, 30), (0.1, 30), (0.1, 300)])
def test_without_an_l1_norm(alpha, features, intercept, sparse, monkeypatch):
    monkeypatch.setattr(ridge, "_MAX_FEATURES", 100)
    X, y, weights = problem(2, features=features)
    given = scipy.sparse.csr_array(X) if sparse else X
    model = PoissonRegressor(alpha, l1_ratio=0.0, fit_intercept=intercept).fit(given, y, weights)
    w, b = model.coef_, model.intercept_
    slope = X.T @ (weights * (np.exp(X @ w + b) - y)) / weights.sum() + alpha * w
    assert np.abs(slope).max() < 1e-3
    assert (b == 0.0) != intercept
    found = objective(X, y, weights, w, b, alpha, 0.0)
    assert model.history_[-1]["objective"] == pytest.approx(found)
    peer = sklearn.linear_model.PoissonRegressor(alpha=alpha, fit_intercept=intercept, tol=1e-6, max_iter=10_000)
    peer.fit(given, y, weights)
    best = objective(X, y, weights, peer.coef_, peer.intercept_, alpha, 0.0)
    null = objective(X, y, weights, np.zeros(features), np.log(weights @ y / weights.sum()) * intercept, 0.0, 0.0)
    assert found <= best + 1e-6 * null
    if alpha:
        assert found - model.dual_gap_ <= best + 1e-12
        assert model.history_[-1]["relative_gap"] <= model.tol
    assert model.score(X, y) > 0.2


@pytest.mark.few(1)
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_conventions_of_scikit_learn(ratio):
    check_estimator(PoissonRegressor(0.01, l1_ratio=ratio))


@pytest.mark.parametrize(
    ("y", "parameters", "error", "message"),
    [
        ([1, -2, 0], {}, strads.InputError, r"y\[1\] = -2: counts and rates are not negative"),
        ([0, 0, 0], {}, strads.InputError, "all of y is 0"),
        ([1, np.nan, 0], {}, strads.InputError, "NaN"),
        ([1, 2, 0], {"solver": CoordinateDescent()}, strads.ArgumentError, "is unbounded"),
        ([1, 2, 0], {"l1_ratio": 0.0, "solver": WorkingSet()}, strads.ArgumentError, "for penalties with an ℓ1 norm"),
        (
            [1, 2, 0],
            {"alpha": 0.0, "positive": True},
            strads.ArgumentError,
            "alpha=0.0 and l1_ratio=1.0: an ℓ1 penalty is needed",
        ),
    ],
)
def test_bad_input(y, parameters, error, message):
    with pytest.raises(error, match=message):
        PoissonRegressor(**parameters).fit([[1.0], [2.0], [3.0]], y)
