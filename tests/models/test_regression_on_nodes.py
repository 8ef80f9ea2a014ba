"""Working sets whose columns lie on several nodes: scikit-learn's coefficients on every backend."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from regression_problems import data
from test_lasso import fitted, reference

on_one_cluster = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.nodes
@settings(on_one_cluster, max_examples=70)
@given(problem=data())
def test_working_sets_agree_with_scikit_learn(runtime, problem):
    model = fitted(problem, 1e-12)
    coef, intercept = reference(problem, model.alpha)
    assert np.allclose(model.coef_, coef, rtol=1e-6, atol=1e-6)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-6, abs=1e-6)
