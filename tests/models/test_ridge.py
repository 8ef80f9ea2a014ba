"""Lasso and ElasticNet without an ℓ1 norm: ridge regression and least squares."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model

import strads
from strads.models import ElasticNet, Lasso, WorkingSet, lasso_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 12)) * (RNG.random((80, 12)) < 0.7)
Y = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + 4.0 + 0.3 * RNG.normal(size=80)
WEIGHTS = RNG.uniform(0.2, 3.0, 80)
FORMS = [np.asfortranarray, scipy.sparse.csr_array]


def objective(model, alpha):
    residual = Y - X @ model.coef_ - model.intercept_
    return 0.5 * WEIGHTS @ residual**2 / WEIGHTS.sum() + 0.5 * alpha * model.coef_ @ model.coef_


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_ridge(alpha, positive, intercept, form):
    model = ElasticNet(alpha, l1_ratio=0, fit_intercept=intercept, positive=positive, tol=1e-9)
    model.fit(form(X), Y, WEIGHTS)
    peer = sklearn.linear_model.Ridge(alpha * WEIGHTS.sum(), fit_intercept=intercept, positive=positive, tol=1e-12)
    peer.fit(X, Y, WEIGHTS)
    assert np.allclose(model.coef_, peer.coef_, atol=1e-5)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-5)
    assert model.n_iter_ == 1
    assert model.history_[0]["objective"] == pytest.approx(objective(model, alpha), rel=1e-12)
    assert objective(model, alpha) - objective(peer, alpha) <= model.dual_gap_ + 1e-13


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("positive", [False, True])
def test_least_squares(positive, intercept, form):
    model = Lasso(0.0, fit_intercept=intercept, positive=positive).fit(form(X), Y, WEIGHTS)
    peer = sklearn.linear_model.LinearRegression(fit_intercept=intercept, positive=positive).fit(X, Y, WEIGHTS)
    assert np.allclose(model.coef_, peer.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-6)
    assert model.dual_gap_ == np.inf
    assert model.history_[0]["relative_gradient"] < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_columns_and_files(dtype, tmp_path):
    model = ElasticNet(0.1, l1_ratio=0.0).fit((X + 5000.0).astype(dtype), Y)
    near = ElasticNet(0.1, l1_ratio=0.0).fit(X, Y)
    assert model.coef_.dtype == dtype
    assert np.allclose(model.coef_, near.coef_, atol=2e-3)
    model.save(tmp_path / "model.npz")
    assert ElasticNet.load(tmp_path / "model.npz").predict(X).tobytes() == model.predict(X).tobytes()


@pytest.mark.parametrize("options", [{"standardize": True}, {"solver": WorkingSet()}])
def test_options_of_other_penalties(options):
    with pytest.raises(strads.ArgumentError, match="is for penalties with an ℓ1 norm"):
        ElasticNet(0.1, l1_ratio=0.0, **options).fit(X, Y)


def test_paths_need_an_l1_norm():
    with pytest.raises(strads.ArgumentError, match="an ℓ1 penalty is needed"):
        lasso_path(X, Y, l1_ratio=0.0)
