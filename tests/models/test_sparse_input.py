"""Sparse matrices whose indices do not fit are refused by name before compiled code follows them."""

import numpy as np
import pytest
import scipy.sparse as sp

from strads.errors import InputError
from strads.models import (
    BayesianPersonalizedRanking,
    Lasso,
    LatentDirichletAllocation,
    LinearSVC,
    LogisticRegression,
    MatrixFactorization,
    MultinomialLogisticRegression,
)


def corrupt(kind, form):
    X = sp.random(40, 30, 0.2, random_state=0)
    X.data[:] = 1.0
    X = sp.bsr_array(X, blocksize=(2, 3)) if form == "bsr" else X.asformat(form)
    if kind == "too large":
        X.indices[5] = 10**6
    elif kind == "negative":
        X.indices[5] = -7
    elif kind == "decreasing":
        X.indptr[3] = 10**6
    elif kind == "starts elsewhere":
        X.indptr[0] = -50
    elif kind == "too short":
        X.data = X.data[:10]
    return X


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("kind", ["too large", "negative", "decreasing", "starts elsewhere", "too short"])
def test_refused_by_every_estimator(kind, form):
    refused_by_every_estimator(corrupt(kind, form))


def refused_by_every_estimator(X):
    y = np.arange(40) % 2
    for model in (Lasso(), LogisticRegression(), LinearSVC(), MultinomialLogisticRegression()):
        with pytest.raises(InputError, match="corrupt"):
            model.fit(X, y)
    for model in (MatrixFactorization(), BayesianPersonalizedRanking(), LatentDirichletAllocation()):
        with pytest.raises(InputError, match="corrupt"):
            model.fit(X)
    for model in (Lasso(0.1), LinearSVC()):
        with pytest.raises(InputError, match="corrupt"):
            model.fit(np.eye(40, 30), y).predict(X)


def test_coordinates_are_checked():
    X = sp.random(40, 30, 0.2, format="coo", random_state=0)
    X.coords[1][7] = 30
    with pytest.raises(InputError, match=r"coords\[1\]\[7\] is 30"):
        Lasso().fit(X, np.arange(40))


@pytest.mark.parametrize("kind", ["too large", "negative", "too many columns", "too many values", "fewer rows"])
def test_lists_are_checked(kind):
    X = corrupt(None, "lil")
    if kind == "too large":
        X.rows[3][0] = 30
    elif kind == "negative":
        X.rows[3][0] = -1
    elif kind == "too many columns":
        X.rows[3].append(29)
    elif kind == "too many values":
        X.data[3].append(1.0)
    else:
        X.rows = X.rows[:20]
    refused_by_every_estimator(X)


def test_diagonals_are_checked():
    X = corrupt(None, "dia")
    X.offsets = X.offsets[:3]
    refused_by_every_estimator(X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dia", "dok"])
def test_sound_matrices_of_any_format_are_accepted(form):
    X, y = corrupt(None, form), np.arange(40) % 2
    expected = Lasso(0.01).fit(corrupt(None, "csc"), y).coef_
    np.testing.assert_allclose(Lasso(0.01).fit(X, y).coef_, expected, rtol=0, atol=1e-12)
