"""Warnings of models point at the user's line, however deep in the library they arise."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from strads.models import (
    ElasticNet,
    Lasso,
    LinearSVC,
    LogisticRegression,
    MultinomialLogisticRegression,
    MultiTaskLasso,
    TransE,
    lasso_path,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 20)), RNG.normal(size=(60, 2))
y, labels = Y[:, 0], (Y[:, 0] > 0).astype(int)
SHORT = {"max_iter": 1, "tol": 1e-12}


@pytest.mark.parametrize(
    "fit",
    [
        lambda: Lasso(0.01, **SHORT).fit(X, y),
        lambda: lasso_path(X, y, alphas=[0.01], **SHORT),
        lambda: ElasticNet(0.01, l1_ratio=0.0, tol=0.0).fit(X, y),
        lambda: LogisticRegression(**SHORT).fit(X, labels),
        lambda: LogisticRegression("l2", l1_ratio=0.0, **SHORT).fit(X, labels),
        lambda: MultinomialLogisticRegression(**SHORT).fit(X, labels),
        lambda: LinearSVC(**SHORT).fit(X, labels),
        lambda: MultiTaskLasso(0.01, **SHORT).fit(X, Y),
    ],
)
def test_models_that_have_not_converged(fit):
    with pytest.warns(ConvergenceWarning) as caught:
        fit()
    assert {each.filename for each in caught} == {__file__}


def test_triples_that_are_there_twice():
    with pytest.warns(UserWarning, match="1 triple is a duplicate") as caught:
        TransE(2, max_iter=1).fit([("a", "r", "b"), ("a", "r", "b"), ("b", "r", "a")])
    assert caught[0].filename == __file__
