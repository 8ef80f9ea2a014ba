"""The pairwise check against NumPy's correlations."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from strads.schedule.dynamic.dependencies import (
    dense_dependencies,
    forget_kept,
    keep_if_safe,
    no_dependencies,
    sparse_dependencies,
)


@njit
def keep_of(dependencies, candidates, threshold, crowding):
    forget_kept(dependencies)
    return [keep_if_safe(dependencies, candidate, threshold, crowding) for candidate in candidates]


def data(seed, rows, columns, kind):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(rows, 1))
    X = rng.normal(size=(rows, columns)) + rng.uniform(-1.5, 1.5, columns) * shared + 0.5
    if kind == "sparse":
        X[rng.uniform(size=X.shape) < 0.6] = 0.0
    X[:, 0] = 1.0 if kind == "dense" else 0.0  # constant, empty
    return X


def dependencies_of(X, kind, dtype, capacity, centre):
    if kind == "dense":
        return dense_dependencies(np.asfortranarray(X, dtype), capacity, centre=centre)
    S = sp.csc_matrix(X.astype(dtype))
    return sparse_dependencies(S.data, S.indices, S.indptr, len(X), capacity, centre=centre)


def correlations(X, centre):
    Z = X - X.mean(0) if centre else X
    norms = np.sqrt((Z**2).sum(0))
    Z = np.divide(Z, norms, out=np.zeros_like(Z), where=norms > 1e-9)
    return Z.T @ Z


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    seed=st.integers(0, 10_000),
    centre=st.booleans(),
    threshold=st.floats(0.05, 0.95),
    crowding=st.sampled_from([0.05, 0.3, np.inf]),
)
def test_keeps_greedily_what_is_safe(kind, dtype, seed, centre, threshold, crowding):
    X = data(seed, 40, 12, kind)
    C = correlations(X.astype(dtype).astype(float), centre)
    d = dependencies_of(X, kind, dtype, 12, centre)
    for _ in range(2):  # what one round kept is forgotten in the next
        order = np.random.default_rng(seed).permutation(12)
        kept = []
        for candidate, found in zip(order, keep_of(d, order, threshold, crowding), strict=True):
            of_candidate = C[candidate, kept]
            crowds = [C[k, [m for m in (*kept, candidate) if m != k]] @ C[k, [m for m in (*kept, candidate) if m != k]]
                      for k in (*kept, candidate)]  # fmt: skip
            largest, most = np.max(np.abs(of_candidate), initial=0.0), max(crowds)
            if abs(largest - threshold) > 1e-4 and abs(most - crowding) > 1e-4:  # else rounding decides
                assert found == (largest <= threshold and most <= crowding)
            if found:
                kept.append(candidate)


def test_duplicate_columns_are_never_together_and_constant_ones_are_no_trouble():
    X = np.zeros((30, 4))
    X[:, :2] = np.random.default_rng(0).normal(size=(30, 1))
    X[:, 2:] = 3.0
    d = dependencies_of(X, "dense", np.float64, 4, True)
    assert keep_of(d, np.arange(4), 0.9, np.inf) == [True, False, True, True]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_parameter_without_column_is_kept_alone(kind):
    d = dependencies_of(data(0, 20, 4, kind), kind, np.float64, 3, False)
    assert keep_of(d, np.array([4, 1, 2]), 1.0, np.inf) == [True, False, False]
    assert keep_of(d, np.array([1, 4, 2]), 1.0, np.inf) == [True, False, True]


def test_a_sample_does_not_crowd_what_is_independent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 40))
    sample = dense_dependencies(np.asfortranarray(X[::1000]), 40, all_rows=len(X))
    assert sum(keep_of(sample, np.arange(40), 1.0, 0.15)) >= 35  # of their own, 40/100 is too much


def test_nothing_depends_without_dependencies():
    assert all(keep_of(no_dependencies(), np.arange(5), 0.0, 0.0))
