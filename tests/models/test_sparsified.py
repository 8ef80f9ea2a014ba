"""Linear classifiers whose coefficients are sparse."""

import numpy as np
import pytest
import scipy.sparse

from strads.models import LinearSVC, LogisticRegression, MultinomialLogisticRegression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)).astype(np.float32)
Y = X[:, 0] + 0.3 * RNG.normal(size=60) > 0


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, MultinomialLogisticRegression])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_sparsified_coefficients_do_what_dense_ones_do(kind, form, tmp_path):
    model = kind().fit(form(X), Y)
    coef, scores = model.coef_, model.decision_function(form(X))
    assert scores.dtype == coef.dtype == np.float32
    assert scipy.sparse.issparse(model.sparsify().coef_)
    assert np.array_equal(model.decision_function(form(X)), scores)
    model.save(tmp_path / "model.npz")
    assert np.array_equal(kind.load(tmp_path / "model.npz").coef_, coef)
    assert np.array_equal(model.densify().coef_, coef)
    assert np.array_equal(model.sparsify().fit(form(X), Y).coef_, coef)


def test_a_warm_start_from_sparse_coefficients():
    model = LogisticRegression(warm_start=True).fit(X, Y)
    assert model.n_iter_ > 1
    assert model.sparsify().fit(X, Y).n_iter_ == 1
