"""Sweeps of coordinate descent over the samples of a support vector machine, with shrinking (Hsieh et al. 2008)."""

from numba import njit
from numpy import inf

from strads.models.kernels.columns import column_add, column_dot


@njit(nogil=True, fastmath={"contract", "arcp", "nsz", "reassoc"}, cache=True)
def sweep(columns, squares, labels, upper, ridge, constant, w, variables, order, count, limits):  # type: ignore[no-untyped-def]
    """Minimize over the variables `order[:count]` one after the other; those settled at a bound leave the order.

    Parameters
    ----------
    columns
        The samples, as columns.
    squares, labels, upper, ridge
        As in `DualProblem` and `Box`; arrays of shape (samples,).
    constant
        Value of the constant feature.
    w : array of shape (features + 1,)
        Weights, the last one that of the constant feature; kept up to date.
    variables : array of shape (samples,)
        y_i a_i.
    order : int64 array of shape (samples,)
        Those that leave are moved behind those that stay.
    count
        How many of them are visited.
    limits : array of shape (2,)
        Smallest and largest projected gradient of the previous sweep, replaced by those of this one.

    Returns
    -------
    How many stay, the sum of the duality gap's terms of those visited, each at its visit, and the entries touched.
    """
    least, most = limits[0], limits[1]
    smallest, largest = inf, -inf
    gap = 0.0
    touched = 0
    place = 0
    weights, constant_weight = w[:-1], w[-1]
    while place < count:
        i = order[place]
        label, bound = labels[i], upper[i]
        a = label * variables[i]
        margin = label * (column_dot(columns, i, weights) + constant * constant_weight)
        slope = margin - 1.0 + ridge[i] * a
        violation = slope
        if a <= 0.0:
            violation = min(slope, 0.0)
        elif a >= bound:
            violation = max(slope, 0.0)
        if (a <= 0.0 and slope > most) or (a >= bound and slope < least):
            count -= 1
            order[place], order[count] = order[count], i
            continue
        gap += _term(margin, a, bound, ridge[i])
        smallest, largest = min(smallest, violation), max(largest, violation)
        place += 1
        if violation == 0.0:
            continue
        bend = squares[i] + constant * constant + ridge[i]
        new = bound if slope < 0.0 else 0.0
        if bend > 0.0:
            new = min(max(a - slope / bend, 0.0), bound)
        change = label * (new - a)
        if change != 0.0:
            variables[i] = label * new
            column_add(columns, i, change, weights)
            constant_weight += constant * change
            touched += 1
    w[-1] = constant_weight
    limits[0], limits[1] = smallest, largest
    return count, gap, touched


@njit(nogil=True, cache=True)
def _term(margin, a, bound, ridge):  # type: ignore[no-untyped-def]
    """Σ of these is the gap at w = Σ a_i y_i x_i: loss + conjugate − a · (1 − margin), each at least 0."""
    missing = 1.0 - margin
    if ridge > 0.0:  # squared hinge: (max(0, 1 − margin) − ridge · a)² / (2 ridge), plus what is left beyond the margin
        if missing > 0.0:
            return (missing - ridge * a) ** 2 / (2.0 * ridge)
        return 0.5 * ridge * a * a - a * missing
    if bound <= 0.0:
        return 0.0
    return bound * max(missing, 0.0) - a * missing
