"""Loss and gradient of multinomial logistic regression over a block of rows: two matrix products around a softmax.

With Z = X W + 1 bᵀ and P the softmax of its rows, the loss is Σ_i c_i (log Σ_k exp Z_ik − Z_{i, y_i}), its gradient
Xᵀ R with R_i = c_i (P_i − Y_i), where Y_i is the indicator of the class y_i (thesis §7.3: "MLR").
"""

import numpy as np
from numba import njit

_ROWS = 256  # rows at a time: read from memory once, they stay in the cache for the second product


@njit(nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"}, cache=True, forceinline=True)
def residuals(z, codes, weights, intercept):  # type: ignore[no-untyped-def]
    """Replace the predictors of rows by R = c (P − Y).

    Parameters
    ----------
    z : array of shape (rows, K), float32 or float64
        X W, without the intercepts; becomes R.
    codes : int32 array of shape (rows,)
        y.
    weights : float64 array of shape (rows,)
        c.
    intercept : array of shape (K,)
        b, of the dtype of z.

    Returns
    -------
    The loss, and Σ_i c_i Σ_k P_ik log P_ik, the negative entropy of the predictions.
    """
    loss = negative_entropy = 0.0
    for i in range(len(z)):
        row = z[i]
        largest = row[0] + intercept[0]
        for k in range(len(row)):
            row[k] += intercept[k]
            largest = max(largest, row[k])
        of_label = row[codes[i]] - largest
        total = mean = row[0] - row[0]
        for k in range(len(row)):
            shifted = row[k] - largest
            power = np.exp(shifted)
            total += power
            mean += power * shifted
            row[k] = power
        scale = row.dtype.type(weights[i]) / total
        for k in range(len(row)):
            row[k] *= scale
        row[codes[i]] -= row.dtype.type(weights[i])
        logarithm = np.log(np.float64(total))
        loss += weights[i] * (logarithm - of_label)
        negative_entropy += weights[i] * (np.float64(mean) / np.float64(total) - logarithm)
    return loss, negative_entropy


@njit(nogil=True, fastmath=True, cache=True, forceinline=True)
def add_curvature(r, codes, weights, curvature):  # type: ignore[no-untyped-def]
    """Add Σ_i c_i (diag P_i − P_i P_iᵀ), the Hessian with respect to the intercepts, to `curvature`.

    `r` is R, as `residuals` leaves it, for `codes` and `weights` as there.
    """
    classes = len(curvature)
    p = np.empty(classes)
    for i in range(len(r)):
        if weights[i] > 0.0:
            for k in range(classes):
                p[k] = r[i, k]
            p[codes[i]] += weights[i]
            for k in range(classes):
                curvature[k, k] += p[k]
                scaled = p[k] / weights[i]
                for other in range(classes):
                    curvature[k, other] -= scaled * p[other]


@njit(nogil=True, cache=True)
def dense_rows(X, codes, weights, W, intercept, gradient, sums, curvature):  # type: ignore[no-untyped-def]
    """Evaluate a block of dense rows, in the precision of W.

    Parameters
    ----------
    X : array of shape (n, p), float32 or float64, in C order
    codes, weights
        As of `residuals`, of shape (n,).
    W : array of shape (p, K), float32 or float64, in C order
    intercept : array of shape (K,), of the dtype of W
    gradient : float64 array of shape (p, K)
        Becomes Xᵀ R.
    sums : float64 array of shape (K,)
        Becomes Σ_i R_i.
    curvature : float64 array of shape (K, K) or (0, 0)
        The Hessian with respect to the intercepts is added, unless it is empty.

    Returns
    -------
    As of `residuals`.
    """
    count, (features, classes) = len(X), W.shape
    chunks = max(1, (count + _ROWS - 1) // _ROWS)
    size = (count + chunks - 1) // chunks
    rows, z = np.empty((size, features), W.dtype), np.empty((size, classes), W.dtype)
    part = np.empty((features, classes), W.dtype)
    gradient[:] = 0.0
    sums[:] = 0.0
    loss = negative_entropy = 0.0
    for begin in range(0, count, size):
        end = min(begin + size, count)
        these, predictors = rows[: end - begin], z[: end - begin]
        these[:] = X[begin:end]
        np.dot(these, W, predictors)
        more, entropy = residuals(predictors, codes[begin:end], weights[begin:end], intercept)
        loss += more
        negative_entropy += entropy
        if len(curvature):
            add_curvature(predictors, codes[begin:end], weights[begin:end], curvature)
        np.dot(these.T, predictors, part)
        gradient += part
        for i in range(end - begin):
            for k in range(classes):
                sums[k] += predictors[i, k]
    return loss, negative_entropy


@njit(nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"}, cache=True)
def sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, indptr, codes, weights, W, intercept, gradient, sums, curvature
):
    """Evaluate a block of sparse rows in CSR form: `values`, `columns` and `indptr`.

    `codes`, `weights`, `W`, `intercept`, `gradient`, `sums`, `curvature` and the result are as in `dense_rows`.
    """
    classes = W.shape[1]
    z = np.empty((1, classes), W.dtype)
    row = z[0]
    gradient[:] = 0.0
    sums[:] = 0.0
    loss = negative_entropy = 0.0
    for i in range(len(codes)):
        row[:] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            value, source = W.dtype.type(values[place]), W[columns[place]]
            for k in range(classes):
                row[k] += value * source[k]
        more, entropy = residuals(z, codes[i : i + 1], weights[i : i + 1], intercept)
        loss += more
        negative_entropy += entropy
        if len(curvature):
            add_curvature(z, codes[i : i + 1], weights[i : i + 1], curvature)
        for place in range(indptr[i], indptr[i + 1]):
            value, target = np.float64(values[place]), gradient[columns[place]]
            for k in range(classes):
                target[k] += value * row[k]
        for k in range(classes):
            sums[k] += row[k]
    return loss, negative_entropy
