"""Newton's method on the primal and sequential sweeps of the dual: the same minimum, to the gap that was asked for."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from strads.errors import InputError
from strads.models import LinearSVC, linear_svc
from strads.models.regression import support_vector_solver

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 12))
Y = X[:, 0] - X[:, 1] + 0.8 * RNG.normal(size=400) > 0


def started(monkeypatch):
    kinds = []
    start = linear_svc.start_descent

    def remember(*arguments):
        descent = start(*arguments)
        kinds.append(type(descent))
        return descent

    monkeypatch.setattr(linear_svc, "start_descent", remember)
    return kinds


def by_sweeps(model, *data):
    """Fit by sweeps over the samples, which data with more features than samples take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support_vector_solver, "_MAX_FEATURES", 0)
        return model.fit(*data)


def objective(X, y, model):
    """In extended precision, of the coefficients as they are."""
    coef, intercept = model.coef_.ravel().astype(np.longdouble), np.longdouble(model.intercept_[0])
    v = intercept / model.intercept_scaling
    missing = np.maximum(1 - np.where(y, 1, -1) * (X.astype(np.longdouble) @ coef + intercept), 0)
    power = 2 if model.loss == "squared_hinge" else 1
    return 0.5 * (coef @ coef + v * v) + model.C * (missing**power).sum()


def test_the_method_follows_the_shape(monkeypatch):
    kinds = started(monkeypatch)
    LinearSVC().fit(X, Y)
    LinearSVC(loss="hinge", C=0.01).fit(X, Y)
    LinearSVC().fit(sp.csr_array(X), Y)
    LinearSVC().fit(X[:10], [0, 1] * 5)
    LinearSVC(concurrency=2, tol=1e-2).fit(X, Y)
    assert [kind.__name__ for kind in kinds] == [
        "PrimalNewton",
        "PrimalNewton",
        "PrimalNewton",
        "SequentialDescent",
        "DualDescent",
    ]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_primal_and_dual_meet(intercept, dtype, form, loss):
    data = (X * (np.abs(X) > 1.5)).astype(dtype)
    weights = RNG.uniform(0.0, 2.0, 400)
    weights[:20] = 0.0
    options = {"tol": 1e-11, "max_iter": 100_000, "fit_intercept": intercept, "intercept_scaling": 3.0, "C": 0.1}
    finest = options if loss == "squared_hinge" else options | {"tol": 1e-8}
    primal = LinearSVC(loss=loss, **finest).fit(form(data), Y, weights)
    dual = by_sweeps(LinearSVC(loss=loss, **options), form(data), Y, weights)
    accuracy = 1e-5 if loss == "squared_hinge" else 1e-3
    np.testing.assert_allclose(primal.coef_, dual.coef_, atol=accuracy)
    np.testing.assert_allclose(primal.intercept_, dual.intercept_, atol=accuracy)
    if loss == "squared_hinge":  # else several points of the dual may be equally good
        np.testing.assert_allclose(primal.dual_coef_, dual.dual_coef_, atol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.filterwarnings("error")
def test_columns_of_different_sizes(form, loss):
    """Sweeps need more epochs than anybody waits for."""
    data = X * (np.abs(X) > 1.0) * 10.0 ** np.linspace(-3, 3, 12)
    model = LinearSVC(loss=loss, tol=1e-6, max_iter=200).fit(form(data), Y)
    assert model.dual_gap_ <= 1e-6 * len(Y)
    best = LinearSVC(loss=loss, tol=1e-8).fit(form(data), Y)
    assert objective(data, Y, model) - objective(data, Y, best) <= model.dual_gap_


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("data", [np.zeros((4, 1)), np.repeat(np.eye(2), 2, axis=0)], ids=["zeros", "indicators"])
@pytest.mark.filterwarnings("error")
def test_features_that_say_nothing(data, loss, intercept):
    model = LinearSVC(loss=loss, fit_intercept=intercept).fit(data, [0, 1, 0, 1])
    assert not model.coef_.any()
    assert not np.any(model.intercept_)
    assert model.dual_gap_ <= 1e-12


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("mean", [0.0, 1.0, 1e9])
@pytest.mark.filterwarnings("error")
def test_columns_of_any_size(scale, mean):
    data = X * scale + mean
    model = LinearSVC(tol=1e-9).fit(data, Y)
    try:
        best = LinearSVC(tol=1e-14).fit(data, Y)
    except ConvergenceWarning:
        return
    assert objective(data, Y, model) <= objective(data, Y, best) * (1 + 1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_warm_starts_are_where_the_fit_ended(form):
    model = LinearSVC(tol=1e-8, warm_start=True).fit(form(X), Y)
    assert model.n_iter_ > 0
    assert model.fit(form(X), Y).n_iter_ <= 1


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_columns_that_repeat(scale):
    model = LinearSVC(tol=1e-9).fit(np.hstack([X * scale] * 30), Y)
    single = LinearSVC(tol=1e-9).fit(X * scale * np.sqrt(30), Y)
    np.testing.assert_allclose(model.coef_[0].reshape(30, 12).mean(0) * np.sqrt(30), single.coef_[0], rtol=1e-4)


def test_what_is_not_finite_ends_no_loop():
    with pytest.raises(InputError, match="too large"):
        LinearSVC().fit(X * 1e200, Y)
    with pytest.raises(InputError, match="too large"), np.errstate(all="ignore"):
        LinearSVC(C=1e90).fit(X * 1e130, Y)


def test_an_unfinished_fit_is_said():
    with pytest.warns(ConvergenceWarning, match="LinearSVC did not converge in 1 iteration:"):
        LinearSVC(max_iter=1).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="LinearSVC did not converge in 2 iterations:"):
        by_sweeps(LinearSVC(max_iter=2, C=100.0), X, Y)


def test_seeds_and_solutions_of_the_sweeps():
    first, second = (by_sweeps(LinearSVC(random_state=seed, tol=1e-3), X, Y).coef_ for seed in (0, 1))
    assert (first != second).any()
    again = by_sweeps(LinearSVC(random_state=0, tol=1e-3), X, Y).coef_
    np.testing.assert_array_equal(first, again)


def test_several_classes():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    primal, dual = LinearSVC(tol=1e-10).fit(X, labels), LinearSVC(tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(primal.coef_, by_sweeps(dual, X, labels).coef_, atol=1e-4)
