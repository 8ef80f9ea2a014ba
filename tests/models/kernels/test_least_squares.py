"""Sweeps by covariances do what sweeps over the columns do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strads.models.kernels.columns import DenseColumns
from strads.models.kernels.least_squares import Subproblem, covariance_sweeps, prepare, slopes, sweeps


@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(2, 12),
    count=st.integers(0, 9),
    passes=st.integers(0, 4),
    intercept=st.booleans(),
    ridge=st.sampled_from([0.0, 0.7]),
    positive=st.booleans(),
)
def test_the_same_coefficients_and_slopes(seed, samples, count, passes, intercept, ridge, positive):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.normal(size=(samples, count)))
    e = rng.uniform(0.5, 2, samples) if intercept else np.zeros(samples)
    total = float(e @ e) if intercept else 1.0
    squares, means = np.empty(count), np.empty(count)
    prepare(DenseColumns(X), e, squares, means)
    l1, l2 = rng.uniform(0.0, 1.0, count), np.full(count, ridge)
    problem = Subproblem(DenseColumns(X), squares, means, total, l1, l2, positive)
    w, everything, stored = rng.normal(size=count), np.arange(count), 3 * rng.normal(size=samples)
    shift = float(e @ stored) / total

    def find_slopes():
        found = np.empty(count)
        slopes(problem, w, stored, shift, everything, found)
        return found

    by_covariances, found = w.copy(), find_slopes()
    covariance_sweeps(X.T @ X - np.outer(means, means) / total, found, by_covariances, l1, l2, positive, passes)
    for _ in range(passes):  # one at a time: further sweeps of one call leave out what is 0
        shift, _ = sweeps(problem, w, stored, shift, 1, 1, 0)
    np.testing.assert_allclose(by_covariances, w, atol=1e-9)
    np.testing.assert_allclose(found, find_slopes(), atol=1e-9)
