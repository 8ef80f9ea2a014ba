"""LinearSVC on the nodes of every backend against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC as Peer

from strads.models import LinearSVC

on_one_cluster = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def data(seed, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.7)
    y = np.digitize(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=40), np.linspace(-1, 1, classes + 1)[1:-1])
    return X, y


@pytest.mark.few(1)
@pytest.mark.nodes
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@settings(on_one_cluster, max_examples=3)
@given(
    seed=st.integers(0, 1000), classes=st.sampled_from([2, 3]), intercept=st.booleans(), count=st.sampled_from([1, 4])
)
def test_agrees_with_scikit_learn(runtime, loss, form, seed, classes, intercept, count):
    X, y = data(seed, classes)
    options = {"loss": loss, "C": 0.1, "fit_intercept": intercept}
    own = LinearSVC(**options, concurrency=count, tol=1e-12, max_iter=10_000).fit(form(X), y)
    peer = Peer(**options, dual=True, tol=1e-10, max_iter=10**6).fit(X, y)
    assert own.history_[-1]["relative_gap"] <= 1e-12
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=2e-6)
    np.testing.assert_allclose(own.intercept_, peer.intercept_, atol=2e-6)


@pytest.mark.nodes
def test_the_seed_decides(runtime):
    X, y = data(0)
    first, again, other = (LinearSVC(C=0.1, tol=1e-2, concurrency=4, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert (first.coef_ != other.coef_).any()


@pytest.mark.nodes
def test_a_warm_start_has_little_to_do(runtime):
    X, y = data(1, classes=3)
    model = LinearSVC(warm_start=True, tol=1e-4, concurrency=2).fit(X, y)
    found, epochs = model.coef_, model.n_iter_
    model.set_params(tol=1e-3).fit(X, y)
    assert model.n_iter_ == 0 < epochs
    np.testing.assert_allclose(model.coef_, found, rtol=1e-12)
