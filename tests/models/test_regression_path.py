"""Regularization paths of Lasso and LogisticRegression."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from sklearn.exceptions import ConvergenceWarning

import strads
from strads.models import Lasso, LogisticRegression, lasso_path, logistic_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 30))
Y = X[:, :5] @ [3.0, -2.0, 1.5, 1.0, -1.0] + RNG.normal(size=80)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, scipy.sparse.csc_array])
@pytest.mark.parametrize(("l1_ratio", "positive"), [(1.0, False), (0.6, False), (0.6, True)])
def test_the_path_is_that_of_scikit_learn(form, l1_ratio, positive):
    options = {"l1_ratio": l1_ratio, "positive": positive}
    alphas, coefs, gaps = lasso_path(form(X), Y, n_alphas=20, tol=1e-12, **options)
    theirs, expected, _ = sklearn.linear_model.enet_path(X, Y, alphas=alphas, tol=1e-14, **options)
    assert np.array_equal(alphas, theirs)
    assert np.allclose(coefs, expected, atol=1e-6)
    assert coefs.shape == (30, 20)
    assert alphas[-1] == pytest.approx(1e-3 * alphas[0])
    assert np.abs(X.T @ Y).max() / 80 / l1_ratio == pytest.approx(alphas[0])
    assert (gaps <= 1e-12 * (Y @ Y) / 160).all()


def test_each_step_is_what_an_estimator_finds():
    path = lasso_path(X, Y + 3.0, alphas=[0.01, 1.0, 0.1], fit_intercept=True, standardize=True, tol=1e-12)
    assert path.values.tolist() == [1.0, 0.1, 0.01]
    for step, alpha in enumerate(path.values):
        model = Lasso(alpha, standardize=True, tol=1e-12).fit(X, Y + 3.0)
        assert np.allclose(path.coefs[:, step], model.coef_)
        assert path.intercepts[step] == pytest.approx(model.intercept_)
    assert path.sparse_coefs.shape == (30, 3)
    assert path.n_iters.min() >= 1
    assert len(path) == 3
    assert np.array_equal(path[1], path.coefs)
    assert np.array_equal(path[-1], path.dual_gaps)


def test_logistic_path():
    weights = RNG.random(80)
    path = logistic_path(X, Y > 0, n_Cs=4, eps=0.05, sample_weight=weights, tol=1e-12)
    Cs, coefs, gaps = path
    assert (np.diff(Cs) > 0).all()
    assert not coefs[:, 0].any()
    assert (gaps >= -1e-10).all()
    for step, C in enumerate(Cs):
        model = LogisticRegression(C=C, tol=1e-12).fit(X, Y > 0, weights)
        assert np.allclose(coefs[:, step], model.coef_[0], atol=1e-6)
        assert path.intercepts[step] == pytest.approx(model.intercept_[0], abs=1e-6)
    given = logistic_path(X, Y > 0, Cs=[2.0, 0.5], l1_ratio=0.5)
    assert given.values.tolist() == [0.5, 2.0]


@pytest.mark.parametrize("n_alphas", [1, 3])
def test_nothing_to_explain(n_alphas):
    alphas, coefs, _ = lasso_path(X, np.zeros(80), n_alphas=n_alphas)
    assert not coefs.any()
    assert (alphas > 0).all()


def test_each_step_is_a_fitted_estimator():
    seen = []

    def on_step(model):
        seen.append((model.alpha, model.coef_, model.n_iter_, model.predict(X)))
        return len(seen) == 3

    path = lasso_path(X, Y, n_alphas=5, tol=1e-10, on_step=on_step)
    assert len(path.values) == path.coefs.shape[1] == 3
    for step, (alpha, coef, iterations, predicted) in enumerate(seen):
        assert (alpha, iterations) == (path.values[step], path.n_iters[step])
        assert np.array_equal(coef, path.coefs[:, step])
        assert np.allclose(predicted, X @ coef)


def test_not_converged_steps_warn():
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        lasso_path(X, Y, alphas=[1e-3, 1e-4], max_iter=1, tol=1e-14)
    assert len(caught) == 2
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": 0.0}, "eps=0.0"),
        ({"eps": 2}, "eps=2"),
        ({"n_alphas": 0}, "n_alphas=0"),
        ({"n_alphas": 2.5}, "n_alphas=2.5"),
        ({"alphas": []}, "alphas has the shape"),
        ({"alphas": 1.0}, "alphas has the shape"),
        ({"alphas": [1.0, 0.0]}, "alphas has 0: give positive"),
        ({"alphas": ["a"]}, "alphas: .* give numbers"),
        ({"l1_ratio": 0.0}, "l1_ratio"),
    ],
)
def test_bad_grids(arguments, message):
    with pytest.raises(strads.ArgumentError, match=message):
        lasso_path(X, Y, **arguments)


def test_bad_data():
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(strads.InputError, match="NaN in row 3, column 2"):
        lasso_path(bad, Y)
    with pytest.raises(strads.InputError, match="NaN in row 3, column 2"):
        logistic_path(bad, Y > 0)


def test_a_warm_start_below_0_is_no_start_for_positive_coefficients():
    model = Lasso(0.01, warm_start=True).fit(X, Y)
    assert (model.coef_ < 0.0).any()
    for solver in (None, strads.models.CoordinateDescent()):
        warm = Lasso(0.01, positive=True, warm_start=True, solver=solver, tol=1e-12)
        warm.coef_, warm.intercept_ = model.coef_, model.intercept_
        expected = sklearn.linear_model.Lasso(0.01, positive=True, tol=1e-14).fit(X, Y)
        assert np.allclose(warm.fit(X, Y).coef_, expected.coef_, atol=1e-6)
