"""A design matrix with plain NumPy behind it, to test solvers apart from the designs that they are used with."""

import numpy as np
import scipy.sparse as sp

from strads.models.kernels.columns import DenseColumns, SparseColumns
from strads.models.regression.design import Design


class PlainDesign(Design):
    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
        self.columns = SparseColumns(X.data, X.indices, X.indptr) if sp.issparse(X) else DenseColumns(X)

    def correlate(self, vector, columns=None):
        found = np.asarray(self.X.T @ vector, np.float64)
        return found if columns is None else found[columns]

    def moments(self, weights):
        square = self.X.multiply(self.X) if sp.issparse(self.X) else self.X**2
        return np.asarray(self.X.T @ weights, np.float64), np.asarray(square.T @ weights, np.float64)

    def gather(self, columns):
        return PlainDesign(self.X[:, columns]).columns
