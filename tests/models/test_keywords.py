"""Keywords of scikit-learn's estimators that have no effect here, so that a class can be swapped for its own."""

import numpy as np
import pytest

from strads.errors import ArgumentError
from strads.models import ElasticNet, Lasso, LassoCV, LinearSVC, LogisticRegression

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
