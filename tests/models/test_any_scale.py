"""Linear models on columns of sizes from 1e-6 to 1e9, with means up to 1e9: at the minimum, or warned of.

The objective is computed in extended precision, from the coefficients as a user gets them, and compared with the best
of the same model at a tighter tolerance. Differences are relative to the objective at w = 0, as `tol` is.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from strads.errors import InputError
from strads.models import (
    ElasticNet,
    Lasso,
    LinearSVC,
    LogisticRegression,
    MultinomialLogisticRegression,
    PoissonRegressor,
    alpha_max,
    l1_min_c,
)

Long = np.longdouble
TOL, TIGHTER = 1e-9, 1e-12


@dataclass(frozen=True)
class Problem:
    """A model as a function of `tol`, what it is fitted to, its objective, and the objective at w = 0."""

    make: Callable[[float], Any]
    X: np.ndarray
    y: np.ndarray
    objective: Callable[[Any], Any]
    null: float


def draw(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Columns of random sizes and means, and what depends on them linearly."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(20, 200)), int(rng.integers(2, 30))
    sizes = 10.0 ** rng.uniform(-6, 9, p) if rng.random() < 0.7 else np.full(p, 10.0 ** rng.uniform(-6, 9))
    means = np.where(rng.random(p) < 0.5, 0.0, 10.0 ** rng.uniform(-3, 9, p)) * rng.choice([-1, 1], p)
    Z = rng.normal(size=(n, p))
    z = Z @ (rng.normal(size=p) * (rng.random(p) < 0.5)) + 0.3 * rng.normal(size=n)
    return rng, Z * sizes + means, z


def deviations(X: np.ndarray, standardize: bool) -> np.ndarray:
    long = X.astype(Long)
    return np.sqrt(((long - long.mean(0)) ** 2).mean(0)) if standardize else np.ones(X.shape[1], Long)


def lasso(seed: int) -> Problem:
    rng, X, z = draw(seed)
    y = z * 10.0 ** rng.uniform(-6, 9) + (10.0 ** rng.uniform(-3, 9) if rng.random() < 0.5 else 0.0)
    options = {"standardize": rng.random() < 0.5, "fit_intercept": rng.random() < 0.7, "max_iter": 30}
    alpha = alpha_max(X, y, **options) * 10.0 ** rng.uniform(-3, -0.3)
    scales = deviations(X, options["standardize"])

    def objective(model: Lasso) -> Any:
        rest = y.astype(Long) - X.astype(Long) @ model.coef_.astype(Long) - Long(model.intercept_)
        return (rest**2).mean() / 2 + alpha * (np.abs(model.coef_) * scales).sum()

    centre = y.astype(Long).mean() if options["fit_intercept"] else Long(0.0)
    null = float(((y.astype(Long) - centre) ** 2).mean() / 2)
    return Problem(lambda tol: Lasso(alpha, tol=tol, **options), X, y, objective, null)


def logistic(seed: int) -> Problem:
    rng, X, z = draw(seed)
    y = z > np.median(z)
    options = {"standardize": rng.random() < 0.5, "fit_intercept": rng.random() < 0.7, "max_iter": 30}
    C = l1_min_c(X, y, **options) * 10.0 ** rng.uniform(0.3, 3)
    scales = deviations(X, options["standardize"])

    def objective(model: LogisticRegression) -> Any:
        z = X.astype(Long) @ model.coef_[0].astype(Long) + Long(model.intercept_[0])
        return C * np.logaddexp(Long(0.0), np.where(y, -z, z)).sum() + (np.abs(model.coef_[0]) * scales).sum()

    return Problem(lambda tol: LogisticRegression(C=C, tol=tol, **options), X, y, objective, C * len(y) * np.log(2.0))


def support_vectors(seed: int, loss: str = "squared_hinge") -> Problem:
    rng, X, z = draw(seed)
    y, power = z > np.median(z), 2 if loss == "squared_hinge" else 1
    options = {"C": 10.0 ** rng.uniform(-3, 2), "fit_intercept": rng.random() < 0.7, "loss": loss, "max_iter": 300}

    def objective(model: LinearSVC) -> Any:
        w, b = model.coef_[0].astype(Long), Long(model.intercept_[0])
        z = X.astype(Long) @ w + b
        return (w @ w + b * b) / 2 + model.C * (np.maximum(1 - np.where(y, z, -z), 0) ** power).sum()

    return Problem(lambda tol: LinearSVC(tol=tol, **options), X, y, objective, options["C"] * len(y))


def hinge(seed: int) -> Problem:
    return support_vectors(seed, "hinge")


def sparse_support_vectors(seed: int) -> Problem:
    rng, X, z = draw(seed)
    y = z > np.median(z)
    options = {"C": 10.0 ** rng.uniform(-3, 2), "fit_intercept": rng.random() < 0.7, "max_iter": 30}

    def objective(model: LinearSVC) -> Any:
        w, b = model.coef_[0].astype(Long), Long(model.intercept_[0])
        z = X.astype(Long) @ w + b
        return np.abs(w).sum() + abs(b) + model.C * (np.maximum(1 - np.where(y, z, -z), 0) ** 2).sum()

    return Problem(lambda tol: LinearSVC(penalty="l1", tol=tol, **options), X, y, objective, options["C"] * len(y))


def multinomial(seed: int, penalty: str = "l2") -> Problem:
    rng, X, z = draw(seed)
    y = z > np.median(z)
    options = {"C": 10.0 ** rng.uniform(-3, 2), "fit_intercept": rng.random() < 0.7, "max_iter": 300}

    def objective(model: MultinomialLogisticRegression) -> Any:
        W, b = model.coef_.astype(Long), model.intercept_.astype(Long)
        z = X.astype(Long) @ (W[1] - W[0]) + b[1] - b[0]
        size = (W**2).sum() / 2 if penalty == "l2" else np.abs(W).sum()
        return model.C * np.logaddexp(Long(0.0), np.where(y, -z, z)).sum() + size

    null = options["C"] * len(y) * np.log(2.0)
    return Problem(lambda tol: MultinomialLogisticRegression(penalty, tol=tol, **options), X, y, objective, null)


def sparse_multinomial(seed: int) -> Problem:
    return multinomial(seed, "l1")


MODELS = [lasso, logistic, support_vectors, hinge, sparse_support_vectors, multinomial, sparse_multinomial]


def is_at_the_minimum_or_said(problem: Problem) -> bool:
    values, said = [], []
    for tol in (TOL, TIGHTER):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values.append(problem.objective(problem.make(tol).fit(problem.X, problem.y)))
        said.append(any(issubclass(each.category, ConvergenceWarning) for each in caught))
    return said[0] or float(values[0] - min(values)) <= 1e-8 * problem.null


@pytest.mark.few(2)
@pytest.mark.parametrize("model", MODELS)
def test_some_problems(model):
    assert [seed for seed in range(12) if not is_at_the_minimum_or_said(model(seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_three_hundred_problems(model):
    assert [seed for seed in range(300) if not is_at_the_minimum_or_said(model(seed))] == []


@pytest.mark.parametrize(
    "model", [LogisticRegression(None), MultinomialLogisticRegression(None), PoissonRegressor(0.0), Lasso(0.0)]
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_without_a_penalty_the_units_of_columns_do_not_matter(model, form):
    rng = np.random.default_rng(0)
    X, units = rng.normal(size=(60, 5)), 2.0 ** np.array([-20, 30, 0, 10, -10])
    z = X[:, 0] - X[:, 1]
    classes = np.digitize(z + rng.normal(size=60), [-1, 1])
    y = {PoissonRegressor: rng.poisson(np.exp(z)), Lasso: z + rng.normal(size=60)}.get(type(model), classes)
    expected, found = clone(model).fit(form(X), y), clone(model).fit(form(X * units), y)
    np.testing.assert_allclose(found.coef_ * units, expected.coef_, rtol=1e-7, atol=1e-9)
    assert found.n_iter_ == expected.n_iter_


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(loss="hinge"), ElasticNet(1e-9, l1_ratio=0.0), Lasso(0.0)])
def test_rounding_to_single_precision_is_said(model):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 6))
    X = (Z + np.array([1e5, 3e6, 1e6, 1e7, 6e5, 0])).astype(np.float32)
    y = Z @ [1, -1, 1, 0, 0, 0] + 0.3 * rng.normal(size=60)
    y = np.sign(y) if isinstance(model, LinearSVC) else y
    with pytest.warns(ConvergenceWarning, match="rounding the coefficients to float32"):
        clone(model).set_params(tol=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(Z.astype(np.float32), y)


@pytest.mark.parametrize("weight", [1e-310, 1e-160, 1e150, 1e308])
@pytest.mark.parametrize("model", [Lasso(0.1), Lasso(0.0), LogisticRegression(), LinearSVC(), PoissonRegressor(0.1)])
def test_weights_of_no_ordinary_size_are_refused(model, weight):
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    with pytest.raises(InputError, match="sample_weight: the weights sum to"):
        clone(model).fit(rng.normal(size=(20, 3)), y, sample_weight=np.full(20, weight))
