"""Sweeps of block coordinate descent: the coefficients of a feature for all outputs are updated together.

Minimizes ½‖R‖² + l1 Σ_j ‖W_j‖ + l2/2 ‖W‖² with the residuals R = Y − X W of centred columns x_j. For a block alone the
minimum is known: with V = ‖x_j‖² W_j + x_jᵀR it is V max(0, 1 − l1/‖V‖) / (‖x_j‖² + l2).
"""

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _shrink(pull, row, norm, l1, l2):  # type: ignore[no-untyped-def]
    """Update `row`, the block W_j, and return whether it has changed.

    `pull`, of shape (outputs,), holds x_jᵀR and receives the change of the block; `norm` is ‖x_j‖², and `l1` and `l2`
    are the strengths of the penalties.
    """
    size = 0.0
    for t in range(len(row)):
        pull[t] += norm * row[t]
        size += pull[t] * pull[t]
    size = np.sqrt(size)
    factor = (1.0 - l1 / size) / (norm + l2) if size > l1 else 0.0
    changes = False
    for t in range(len(row)):
        new = factor * pull[t]
        pull[t] = new - row[t]
        row[t] = new
        changes |= pull[t] != 0.0
    return changes


@njit(nogil=True, cache=True)
def sweep_dense(columns: Any, norms: Any, order: Any, l1: float, l2: float, W: Any, residuals: Any) -> None:
    """Update blocks in the given order.

    Parameters
    ----------
    columns : float64 array of shape (features, samples)
        Centred columns, times the roots of the samples' weights, in rows.
    norms : float64 array of shape (features,)
        Their squared norms; columns with a norm of 0 are passed over.
    order : int64 array
        Features to update, one after the other.
    l1, l2 : float
        Strengths of the penalties.
    W : float64 array of shape (features, outputs)
        Coefficients; updated.
    residuals : float64 array of shape (outputs, samples)
        Rᵀ, times the roots of the samples' weights; updated.
    """
    outputs = len(residuals)
    pull = np.empty(outputs)
    for j in order:
        if norms[j] == 0.0:
            continue
        for t in range(outputs):
            pull[t] = np.dot(columns[j], residuals[t])
        if _shrink(pull, W[j], norms[j], l1, l2):
            for t in range(outputs):
                change, residual, column = pull[t], residuals[t], columns[j]
                for i in range(len(column)):
                    residual[i] -= change * column[i]


@njit(nogil=True, cache=True)
def sweep_sparse(  # type: ignore[no-untyped-def]
    data, indices, indptr, means, roots, norms, order, l1: float, l2: float, W, residuals, offsets
) -> None:
    """Update blocks as `sweep_dense` does, for sparse columns that are centred implicitly.

    `data`, `indices` and `indptr` are the columns in CSC form, not centred but multiplied by `roots`, the roots of the
    samples' weights; `means` are the weighted means of the columns before that. The residuals of output t, multiplied
    likewise, are `residuals[t] + offsets[t] * roots`, because the mean of a column moves all of them alike; `offsets`
    (float64, one per output) is updated as well. `norms`, those of the centred columns, `order`, `W` and the penalties
    are as in `sweep_dense`.
    """
    outputs = len(residuals)
    pull = np.empty(outputs)
    for j in order:
        if norms[j] == 0.0:
            continue
        begin, end = indptr[j], indptr[j + 1]
        for t in range(outputs):
            total = weight = 0.0
            for p in range(begin, end):
                total += data[p] * residuals[t, indices[p]]
                weight += data[p] * roots[indices[p]]
            # The weighted residuals sum to 0, so that the mean of the column contributes nothing.
            pull[t] = total + offsets[t] * weight
        if _shrink(pull, W[j], norms[j], l1, l2):
            for t in range(outputs):
                for p in range(begin, end):
                    residuals[t, indices[p]] -= pull[t] * data[p]
                offsets[t] += pull[t] * means[j]
