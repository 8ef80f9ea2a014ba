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
    X = sp.random(40, 30, 0.2, format=form, random_state=0)
    X.data[:] = 1.0
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


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("kind", ["too large", "negative", "decreasing", "starts elsewhere", "too short"])
def test_refused_by_every_estimator(kind, form):
    X, y = corrupt(kind, form), np.arange(40) % 2
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
