"""Working sets whose columns lie on several nodes: scikit-learn's coefficients on every backend.

On 25 random problems each; the heavy tests start these again, on 200.
"""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import test_lasso as lasso
import test_logistic_regression as logistic
from hypothesis import HealthCheck, given, settings
from launching import environment, needs_mpi, run_under_mpi
from regression_problems import data

PROBLEMS = "STRADS_TEST_PROBLEMS"
on_one_cluster = settings(
    max_examples=int(os.environ.get(PROBLEMS, 25)), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.nodes
@settings(on_one_cluster)
@given(problem=data())
def test_lasso_agrees_with_scikit_learn(runtime, problem):
    model = lasso.fitted(problem, 1e-12)
    coef, intercept = lasso.reference(problem, model.alpha)
    assert np.allclose(model.coef_, coef, rtol=1e-6, atol=1e-6)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-6, abs=1e-6)


@pytest.mark.nodes
@settings(on_one_cluster)
@given(problem=data())
def test_logistic_regression_agrees_with_scikit_learn(runtime, problem):
    model = logistic.fitted(problem, 1e-13)
    coef, intercept = logistic.reference(problem, model.C)
    # A gap of 1e-13 of the objective leaves coefficients that hardly matter open by some 1e-6.
    assert np.allclose(model.coef_[0], coef, rtol=1e-5, atol=1e-5)
    assert model.intercept_[0] == pytest.approx(intercept, rel=1e-6, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threads", pytest.param("mpi", marks=needs_mpi), "ray"])
def test_200_problems(backend, monkeypatch):
    monkeypatch.setenv(PROBLEMS, "200")
    tests = ["-m", "pytest", "-p", "no:cacheprovider", "--color=no", "-m", "nodes", "--hypothesis-show-statistics"]
    where = ["--backend", backend, "--nodes", "2", __file__]
    if backend == "mpi":
        ended = run_under_mpi(2, *tests, *where, timeout=600)
    else:
        command = [sys.executable, *tests, *where]
        ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-2000:]
    assert re.findall(r"(\d+) passing", ended.stdout) == ["200", "200"]
