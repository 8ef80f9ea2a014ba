"""Lasso and LogisticRegression with every schedule, on the nodes of every backend."""

import numpy as np
import pytest
import scipy.sparse

from strads.models import Lasso, LogisticRegression, lasso_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 40))
Z = X[:, :5] @ [3.0, -2.0, 1.5, 1.0, -1.0] + 0.5 * RNG.normal(size=80) + 1.0
SCHEDULES = ["working_set", "dynamic_regression", "kkt_violation", "random", "cyclic"]


@pytest.mark.nodes
@pytest.mark.parametrize("form", [np.asfortranarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_finds_the_minimum(runtime, schedule, form):
    options = {"schedule": schedule, "concurrency": 4, "tol": 1e-11, "standardize": True}
    lasso = Lasso(0.1, **options).fit(form(X), Z)
    assert np.allclose(lasso.coef_, Lasso(0.1, tol=1e-12, standardize=True).fit(X, Z).coef_, atol=1e-5)
    assert lasso.history_[-1]["relative_gap"] <= 1e-11
    logistic = LogisticRegression(C=1.0, **options).fit(form(X), Z > 0)
    expected = LogisticRegression(C=1.0, tol=1e-12, standardize=True).fit(X, Z > 0)
    assert np.allclose(logistic.coef_, expected.coef_, atol=1e-4)
    assert logistic.intercept_ == pytest.approx(expected.intercept_, abs=1e-4)


@pytest.mark.nodes
def test_paths_by_a_schedule(runtime):
    alphas, coefs, gaps = lasso_path(X, Z, n_alphas=4, eps=0.05, schedule="kkt_violation", tol=1e-11)
    assert np.allclose(coefs, lasso_path(X, Z, alphas=alphas, tol=1e-12).coefs, atol=1e-5)
    assert (gaps >= 0.0).all()


def test_the_parts_of_a_schedule_can_be_switched_off():
    expected = Lasso(0.1, tol=1e-12).fit(X, Z).coef_
    for off in ("prioritize", "check_dependencies", "reorder"):
        options = {off: False, "pipeline_depth": 1, "threshold": 0.5, "random_state": 7}
        model = Lasso(0.1, schedule="dynamic_regression", concurrency=2, tol=1e-11, **options).fit(X, Z)
        assert np.allclose(model.coef_, expected, atol=1e-5)
