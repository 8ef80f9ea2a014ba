"""Lasso and LogisticRegression with every schedule, on the nodes of every backend."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model

import strads
from strads.errors import InputError
from strads.models import CoordinateDescent, Lasso, LogisticRegression, WorkingSet, lasso_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 40))
Z = X[:, :5] @ [3.0, -2.0, 1.5, 1.0, -1.0] + 0.5 * RNG.normal(size=80) + 1.0
SCHEDULES = ["working_set", "priority", "resting", "violation", "random", "cyclic"]


@pytest.mark.few(2)
@pytest.mark.nodes
@pytest.mark.parametrize("form", [np.asfortranarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_finds_the_minimum(runtime, schedule, form):
    solver = WorkingSet() if schedule == "working_set" else CoordinateDescent(schedule, concurrency=4)
    options = {"solver": solver, "tol": 1e-11, "standardize": True}
    lasso = Lasso(0.1, **options).fit(form(X), Z)
    assert np.allclose(lasso.coef_, Lasso(0.1, tol=1e-12, standardize=True).fit(X, Z).coef_, atol=1e-5)
    assert lasso.history_[-1]["relative_gap"] <= 1e-11
    lasso = Lasso(0.1, positive=True, **options).fit(form(X), Z)
    peer = sklearn.linear_model.Lasso(0.1, positive=True, tol=1e-14).fit(X / X.std(0), Z)
    assert np.allclose(lasso.coef_, peer.coef_ / X.std(0), atol=1e-5)
    assert lasso.history_[-1]["relative_gap"] <= 1e-11
    logistic = LogisticRegression(C=1.0, **options).fit(form(X), Z > 0)
    expected = LogisticRegression(C=1.0, tol=1e-12, standardize=True).fit(X, Z > 0)
    assert np.allclose(logistic.coef_, expected.coef_, atol=1e-4)
    assert logistic.intercept_ == pytest.approx(expected.intercept_, abs=1e-4)


@pytest.mark.nodes
def test_paths_by_a_schedule(runtime):
    alphas, coefs, gaps = lasso_path(X, Z, n_alphas=4, eps=0.05, solver=CoordinateDescent("violation"), tol=1e-11)
    assert np.allclose(coefs, lasso_path(X, Z, alphas=alphas, tol=1e-12).coefs, atol=1e-5)
    assert (gaps >= 0.0).all()


@pytest.mark.parametrize("part", ["prioritize", "reorder"])
def test_priorities_and_their_order_can_be_switched_off(part):
    def fit(**options):
        model = Lasso(0.1, solver=CoordinateDescent(concurrency=4, random_state=7, **options), tol=1e-11)
        with strads.init("threads", nodes=2, threads=1):  # plans are reordered where they are sent to nodes
            return model.fit(X, Z)

    on, again, off = fit(), fit(**{part: True}), fit(**{part: False})
    assert np.array_equal(on.coef_, again.coef_)
    assert not np.array_equal(on.coef_, off.coef_)
    assert np.allclose(on.coef_, off.coef_, atol=1e-5)


def test_the_check_of_dependencies_can_be_switched_off():
    alike = X[:, :1] + 0.1 * X[:, :12]
    Lasso(0.1, tol=1e-3, solver=CoordinateDescent(concurrency=12, threshold=0.5)).fit(alike, Z)
    unchecked = CoordinateDescent(concurrency=12, check_dependencies=False)
    with pytest.raises(InputError, match="diverges with 12 updates at a time"):
        Lasso(0.1, tol=1e-3, solver=unchecked).fit(alike, Z)
