"""Keywords of scikit-learn's estimators that have no effect here, so that a class can be swapped for its own."""

import numpy as np
import pytest

import strads
from strads.checkpoints import current_session
from strads.errors import ArgumentError
from strads.models import (
    ElasticNet,
    Lasso,
    LassoCV,
    LinearSVC,
    LogisticRegression,
    MatrixFactorization,
    MultinomialLogisticRegression,
    MultiTaskLasso,
)

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(float)
OF_LASSO = {"precompute": True, "copy_X": False, "selection": "random", "random_state": 3}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Lasso, OF_LASSO),
        (ElasticNet, OF_LASSO),
        (LassoCV, OF_LASSO | {"n_jobs": 2}),
        (LogisticRegression, {"random_state": 3, "n_jobs": 2}),
        (LinearSVC, {"dual": False, "multi_class": "ovr"}),
    ],
)
def test_they_change_nothing(kind, given, tmp_path):
    plain, model = kind().fit(X, Y), kind(**given).fit(X, Y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    model.save(tmp_path / "model.npz")
    if kind is not LassoCV:
        assert kind.load(tmp_path / "model.npz").get_params() == model.get_params()


def test_another_problem_is_refused():
    with pytest.raises(ArgumentError, match="multi_class"):
        LinearSVC(multi_class="crammer_singer").fit(X, Y)


@pytest.mark.parametrize("kind", [ElasticNet, LogisticRegression, MultinomialLogisticRegression])
def test_a_restarted_program_may_have_another_seed_if_that_has_no_effect(kind, tmp_path):
    def program(seed):
        with strads.init(threads=1, checkpoint_dir=tmp_path):
            model = kind(random_state=seed).fit(X, Y)
            current_session()._writer.wait(10.0)
            return model.coef_.tolist()

    assert program(0) == program(1)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (ElasticNet, ("fit_intercept", "standardize", "positive", "warm_start")),
        (LogisticRegression, ("fit_intercept", "standardize", "warm_start")),
        (MultinomialLogisticRegression, ("fit_intercept",)),
        (LinearSVC, ("fit_intercept", "warm_start")),
        (MultiTaskLasso, ("fit_intercept", "warm_start")),
        (MatrixFactorization, ("biases", "early_stopping", "remember_ratings", "weighted_regularization")),
    ],
)
def test_switches_are_true_or_false(kind, names):
    for name in names:
        with pytest.raises(ArgumentError, match=f"{name}='no': give True or False"):
            kind(**{name: "no"}).fit(X, Y)
