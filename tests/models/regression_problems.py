"""Random data for linear models, in every form that users have them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

FORMS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "CSC": scipy.sparse.csc_array,
    "CSR": scipy.sparse.csr_array,
    "CSC matrix": scipy.sparse.csc_matrix,
}


@dataclass(frozen=True)
class Data:
    """X in some form and as float64 in C order, a response, weights (None: all 1), and what the model is to do."""

    X: Any
    exact: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    fit_intercept: bool
    standardize: bool
    positive: bool
    l1_ratio: float
    share: float  # of the largest alpha that gives a nonzero coefficient

    @property
    def counts(self) -> np.ndarray:
        return np.ones(len(self.y)) if self.weights is None else self.weights

    @property
    def scales(self) -> np.ndarray:
        """What columns are divided by."""
        if not self.standardize:
            return np.ones(self.exact.shape[1])
        mean = np.average(self.exact, axis=0, weights=self.weights)
        return np.sqrt(np.average((self.exact - mean) ** 2, axis=0, weights=self.weights))


@st.composite
def data(draw: st.DrawFn) -> Data:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(8, 50)), draw(st.integers(1, 40))
    X = rng.normal(size=(n, p)) + draw(st.sampled_from([0.0, 1.0]))
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.7]))] = 0.0
    X[:2] = [[1.0], [-1.0]] * rng.uniform(0.5, 1.5, (2, p))  # no column is constant, no two are alike
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    truth = rng.normal(size=p) * (rng.random(p) < 0.4)
    y = X @ truth + rng.normal(size=n) + draw(st.sampled_from([0.0, 5.0]))
    weights = draw(st.sampled_from([None, rng.random(n) + 0.1]))
    return Data(
        FORMS[draw(st.sampled_from(sorted(FORMS)))](X),
        X.astype(np.float64),
        y.astype(np.float64),
        weights,
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([1.0, 0.9, 0.5])),
        draw(st.floats(0.05, 1.1)),
    )
