"""Columns and targets far from 0: found, moved, and the model is that of the columns as they were given."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from strads.models import (
    CoordinateDescent,
    ElasticNet,
    Lasso,
    LogisticRegression,
    MultinomialLogisticRegression,
    MultiTaskLasso,
    lasso_path,
)
from strads.models.regression.centring import centre_far_columns

FORMS = [np.ascontiguousarray, np.asfortranarray, sp.csc_array, sp.csr_array]


def with_a_time_stamp(samples=300, spread=1.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, 4))
    stamp = rng.normal(size=samples)
    y = 2 * X[:, 0] - X[:, 1] + 3 * stamp + 0.01 * rng.normal(size=samples)
    return np.c_[X, 1.76e9 + spread * stamp], np.c_[X, stamp], y


@pytest.mark.few(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", [None, CoordinateDescent("cyclic", concurrency=1)])
def test_lasso_of_a_time_stamp(form, solver):
    far, near, y = with_a_time_stamp()
    near[:, -1] = far[:, -1] - 1.76e9
    options = {"standardize": True, "solver": solver, "tol": 1e-10}
    model = Lasso(0.01, **options).fit(form(far), y)
    peer = Lasso(0.01, **options).fit(near, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-7)
    assert r2_score(y, model.predict(form(far))) > 0.9999
    again = Lasso(0.01, warm_start=True, **options).fit(form(far), y)
    first = again.history_[0]
    again.fit(form(far), y)
    assert again.history_[0]["objective"] < 0.01 * first["objective"]  # the intercept was converted both ways
    _, coefs, _ = lasso_path(form(far), y, alphas=[0.01], fit_intercept=True, standardize=True, tol=1e-10)
    np.testing.assert_allclose(coefs[:, 0], model.coef_, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_classifiers_of_a_time_stamp(form, penalty):
    far, near, y = with_a_time_stamp()
    near[:, -1] = far[:, -1] - 1.76e9
    labels = (y > np.median(y)) + 0
    models = [MultinomialLogisticRegression(penalty, tol=1e-9)]
    if penalty == "l1":
        models.append(LogisticRegression(tol=1e-9))
    for model in models:
        expected = model.fit(near, labels).decision_function(near)
        np.testing.assert_allclose(model.fit(form(far), labels).decision_function(form(far)), expected, atol=1e-3)
        assert model.score(form(far), labels) > 0.98


@pytest.mark.filterwarnings("error")
def test_a_target_far_from_0():
    _, X, y = with_a_time_stamp()
    near = Lasso(0.01, tol=1e-10).fit(X, y)
    far = Lasso(0.01, tol=1e-10).fit(X, y + 1e9)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    assert far.intercept_ == pytest.approx(near.intercept_ + 1e9, abs=1e-6)


def test_what_rounding_takes_is_said():
    X, _, y = with_a_time_stamp(spread=1e-3)
    X = X.astype(np.float32)
    X[:, -1] = 1.76e9 + np.arange(len(X)) % 2 * 1024
    with pytest.warns(ConvergenceWarning, match="rounding the coefficients to float32"):
        Lasso(0.01, tol=1e-6).fit(X, y + 1000 * (np.arange(len(X)) % 2))


def test_samples_without_weight_do_not_hide_what_rounding_takes():
    X, _, y = with_a_time_stamp(spread=1e-3)
    X = X.astype(np.float32)
    X[:, -1] = 1.76e9 + np.arange(len(X)) % 2 * 1024
    Y = np.c_[y, y] + 1000 * (np.arange(len(X)) % 2)[:, None]
    weights = np.ones(len(X))
    Y[0], weights[0] = 1e12, 0.0
    with pytest.warns(ConvergenceWarning, match="rounding the coefficients to float32"):
        MultiTaskLasso(0.01, tol=1e-6).fit(X, Y, weights)


def test_without_an_intercept_standard_deviations_are_those_of_the_columns():
    far, _, y = with_a_time_stamp()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Lasso(0.01, fit_intercept=False, standardize=True, max_iter=50).fit(far, y)
    assert model.dual_gap_ >= 0.0
    assert ElasticNet(0.01, fit_intercept=False, standardize=True).fit(np.ones((9, 1)), np.arange(9.0)).coef_ == 0.0


@pytest.mark.parametrize("form", FORMS)
def test_only_far_columns_are_moved(form):
    rng = np.random.default_rng(1)
    X = rng.normal([0.0, 1e3, 5.0, -1e8, 0.0, 7.0], 1.0, (50, 6))
    X[:, 4] = 0.0
    X[:, 5] = 7.0
    moved, shift = centre_far_columns(form(X), np.ones(50))
    assert shift.columns.tolist() == [1, 3, 5]
    np.testing.assert_allclose(shift.amounts, X[:, [1, 3, 5]].mean(0), rtol=1e-12)
    dense = moved.toarray() if sp.issparse(moved) else moved
    np.testing.assert_array_equal(dense[:, [0, 2, 4]], X[:, [0, 2, 4]])
    np.testing.assert_allclose(dense[:, shift.columns] + shift.amounts, X[:, shift.columns], rtol=1e-15)
    given = form(X[:, :1])
    assert centre_far_columns(given, np.ones(50))[0] is given
