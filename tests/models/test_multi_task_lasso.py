"""MultiTaskLasso and MultiTaskElasticNet: agreement with scikit-learn, gap, conventions, bad input."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import strads
from strads.models import Lasso, MultiTaskElasticNet, MultiTaskLasso


def problem(seed, samples=60, features=90, outputs=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features)) * (rng.random((samples, features)) < 0.5)
    X[:, 4] = 2.0  # constant
    noise = 0.1 * rng.normal(size=(samples, outputs))
    return X, X[:, :3] @ rng.normal(size=(3, outputs)) + noise + [5.0, 0.0, -1.0][:outputs]


def objective(X, Y, model):
    W, b, alpha, ratio = model.coef_, model.intercept_, model.alpha, model.l1_ratio
    fit = 0.5 * ((Y - X @ W.T - b) ** 2).sum() / len(X)
    return fit + alpha * (ratio * np.linalg.norm(W, axis=0).sum() + 0.5 * (1 - ratio) * (W**2).sum())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("alpha", "ratio"), [(0.1, 1.0), (0.02, 1.0), (0.1, 0.5)])
def test_as_scikit_learn(alpha, ratio, intercept, sparse):
    X, Y = problem(0)
    given = scipy.sparse.csr_array(X) if sparse else X
    options = {"alpha": alpha, "l1_ratio": ratio, "fit_intercept": intercept, "tol": 1e-10}
    model = MultiTaskElasticNet(**options).fit(given, Y)
    peer = sklearn.linear_model.MultiTaskElasticNet(max_iter=100_000, **options).fit(X, Y)
    assert np.allclose(model.coef_, peer.coef_, atol=1e-4)
    assert np.allclose(model.intercept_, peer.intercept_, atol=1e-4)
    assert np.allclose(model.predict(given), peer.predict(X), atol=1e-3)
    assert model.score(given, Y) == pytest.approx(peer.score(X, Y), abs=1e-4)
    assert np.array_equal(model.coef_.any(0), np.all(model.coef_ != 0, axis=0))
    assert objective(X, Y, model) <= objective(X, Y, peer) * (1 + 1e-8)
    assert model.history_[-1]["objective"] == pytest.approx(objective(X, Y, model), rel=1e-9)
    if ratio == 1.0:
        same = MultiTaskLasso(alpha, fit_intercept=intercept, tol=1e-10).fit(given, Y)
        assert same.coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_are_repetitions(intercept, form):
    X, Y = problem(4)
    counts = np.random.default_rng(5).integers(0, 4, len(X))
    options = {"alpha": 0.05, "l1_ratio": 0.9, "fit_intercept": intercept, "tol": 1e-11}
    model = MultiTaskElasticNet(**options).fit(form(X), Y, 2.5 * counts)
    same = MultiTaskElasticNet(**options).fit(np.repeat(X, counts, 0), np.repeat(Y, counts, 0))
    assert np.allclose(model.coef_, same.coef_, atol=1e-6)
    assert np.allclose(model.intercept_, same.intercept_, atol=1e-6)
    assert model.history_[-1]["objective"] == pytest.approx(same.history_[-1]["objective"], rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_bounds_the_suboptimality(seed):
    X, Y = problem(seed, samples=40, features=600)
    least = objective(X, Y, MultiTaskElasticNet(0.02, l1_ratio=0.8, tol=1e-12).fit(X, Y))
    for iterations in (1, 2, 3):
        model = MultiTaskElasticNet(0.02, l1_ratio=0.8, tol=1e-15, max_iter=iterations)
        with pytest.warns(ConvergenceWarning, match="did not converge in"):
            model.fit(X, Y)
        assert -1e-12 <= objective(X, Y, model) - least <= model.dual_gap_ * (1 + 1e-9) + 1e-15


def test_one_output_is_the_lasso():
    X, Y = problem(1, outputs=1)
    model = MultiTaskLasso(0.05, tol=1e-10).fit(X, Y)
    single = Lasso(0.05, tol=1e-10).fit(X, Y[:, 0])
    assert model.coef_.shape == (1, X.shape[1])
    assert np.allclose(model.coef_[0], single.coef_, atol=1e-5)
    assert model.intercept_[0] == pytest.approx(single.intercept_, abs=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_columns(dtype):
    X, Y = problem(2)
    model = MultiTaskLasso(0.05).fit((X + 1000.0).astype(dtype), Y)
    near = MultiTaskLasso(0.05).fit(X, Y)
    assert model.coef_.dtype == dtype
    assert np.allclose(model.coef_, near.coef_, atol=1e-3)


def test_warm_start_and_files(tmp_path):
    X, Y = problem(3)
    model = MultiTaskLasso(0.02, warm_start=True, tol=1e-8).fit(X, Y)
    assert model.n_iter_ > 1
    assert model.fit(X, Y).n_iter_ == 1
    model.save(tmp_path / "model.npz")
    loaded = MultiTaskLasso.load(tmp_path / "model.npz")
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    with pytest.raises(strads.InputError, match="fit a new estimator"):
        model.fit(X[:, 1:], Y)


@pytest.mark.few(1)
@pytest.mark.parametrize("model", [MultiTaskLasso(0.1), MultiTaskElasticNet(0.1)])
def test_conventions_of_scikit_learn(model):
    check_estimator(model)


@pytest.mark.parametrize(
    ("X", "Y", "parameters", "error", "message"),
    [
        ([[1.0], [2.0]], [1.0, 2.0], {}, strads.ArgumentError, r"y has the shape \(2,\): give a column per output"),
        ([[1.0], [2.0]], [[1.0, 2.0]], {}, strads.InputError, "X has 2 samples, but y has 1"),
        ([[1.0], [2.0]], [[1.0, 2.0], [np.nan, 1.0]], {}, strads.InputError, "y: entry 1 is"),
        ([[1.0], [np.nan]], [[1.0, 2.0], [1.0, 1.0]], {}, strads.InputError, "NaN"),
        ([[1.0], [2.0]], [[1.0], [2.0]], {"alpha": 0.0}, strads.ArgumentError, "alpha=0.0"),
        ([[1.0], [2.0]], [[1.0], [2.0]], {"tol": -1.0}, strads.ArgumentError, "tol=-1.0"),
    ],
)
def test_bad_input(X, Y, parameters, error, message):
    with pytest.raises(error, match=message):
        MultiTaskLasso(**parameters).fit(X, Y)


def test_a_hopeless_problem_ends_soon_with_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 20)) + 1e6 * (np.arange(20) % 2)  # without an intercept these columns are nearly alike
    Y = rng.normal(size=(30, 2))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = MultiTaskElasticNet(1e-7, l1_ratio=0.9, fit_intercept=False, tol=1e-12).fit(X, Y)
    assert model.n_iter_ < 100
