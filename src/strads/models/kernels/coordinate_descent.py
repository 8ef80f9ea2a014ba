"""Coordinate descent for matrix factorization, one rank-one factor at a time, with residuals kept up to date.

For each factor k, the objective is minimized exactly over the users' w_k, then over the items' h_k, as in CCD++ (Yu et
al. 2012) and equations 2 to 5 of the supplement of Lee et al. 2014. Both updates are written as steps from the old
value, gradient over curvature: identical in exact arithmetic, but the rounding error then shrinks with the step.

One pass over a worker's ratings does three things while a user's ratings are in the cache: it applies the items' last
step, which also depends on the other workers; updates the user's factor; and accumulates the sums for the items' next
step. A rating takes 8 bytes: the item's id and the residual.
"""

from numba import njit, uint32
from numpy import empty, float32, float64

STEP = 0  # the last step of the item's previous factor, not yet applied to the residuals
FACTOR = 1  # the item's current factor
PULL = 0  # Σ residual · w over the item's ratings
CURVATURE = 1  # Σ w² over the item's ratings

# With a smaller curvature no step is taken: the quotient could leave the range of float32. Skipping a step never
# increases the objective.
_MIN_CURVATURE = float32(1e-18)


@njit(nogil=True, fastmath=True, cache=True, error_model="numpy")
def rank_one_pass(offsets, items, residuals, last, users, multipliers, table, penalty, penalty_a_rating, sums, longest):  # type: ignore[no-untyped-def]
    """Update one factor of a worker's users, and accumulate the sums for the same factor of the items.

    The loops are separate because only those without indirect access are vectorized.

    Parameters
    ----------
    offsets : int64 array of shape (users + 1,)
        The ratings of the worker's user u are `offsets[u]..offsets[u + 1] - 1`.
    items, residuals : int32 and float32 arrays of shape (ratings,)
        On entry, residuals lack the items' last step; on return they include it and the users' step.
    last : float32 array of shape (users,)
        Multiplier of the items' last step in the residuals of each user.
    users : float32 array of shape (users,)
        The factor to move.
    multipliers : float32 array of shape (users,)
        What the items' factor is multiplied by; `users` itself, but for biases.
    table : float32 array of shape (items, 2)
        STEP and FACTOR of each item.
    penalty, penalty_a_rating : float32
        λ of a user is `penalty` + its number of ratings · `penalty_a_rating`.
    sums : float32 array of shape (items, 2)
        PULL and CURVATURE of each item, added to.
    longest : int
        Largest number of ratings of a user.
    """
    steps_seen = empty(longest, float32)
    factors = empty(longest, float32)
    for user in range(len(users)):
        first, end = offsets[user], offsets[user + 1]
        own_items, own_residuals = items[first:end], residuals[first:end]
        count = end - first
        multiplier = last[user]
        for n in range(count):
            item = uint32(own_items[n])
            factors[n] = table[item, FACTOR]
            steps_seen[n] = own_residuals[n] - multiplier * table[item, STEP]
        pull = curvature = float32(0.0)
        for n in range(count):
            pull += steps_seen[n] * factors[n]
            curvature += factors[n] * factors[n]
        weight = penalty + penalty_a_rating * float32(count)
        step = float32(0.0)
        if curvature + weight > _MIN_CURVATURE:
            step = (pull - weight * users[user]) / (curvature + weight)
        users[user] += step
        for n in range(count):
            own_residuals[n] = steps_seen[n] - step * factors[n]
        multiplier = multipliers[user]
        square = multiplier * multiplier
        for n in range(count):
            item = uint32(own_items[n])
            sums[item, PULL] += own_residuals[n] * multiplier
            sums[item, CURVATURE] += square


@njit(nogil=True, fastmath=True, cache=True)
def squared_sum(values):  # type: ignore[no-untyped-def]
    """Σ v² of a float32 array, in double precision."""
    total = 0.0
    for n in range(len(values)):
        value = float64(values[n])
        total += value * value
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def item_step(total, counts, penalty, penalty_a_rating, factor, next_factor, table):  # type: ignore[no-untyped-def]
    """Update a factor of all items from the sums of all workers, and fill the table for the next pass.

    Parameters
    ----------
    total : float64 array of shape (items, 2)
        PULL and CURVATURE of each item.
    counts : int64 array of shape (items,)
        Number of ratings of each item.
    penalty, penalty_a_rating : float
        λ of an item is `penalty` + its number of ratings · `penalty_a_rating`.
    factor : float32 array of shape (items,)
        The factor to move.
    next_factor : float32 array of shape (items,)
        The factor that the next pass updates; may be the same.
    table : float32 array of shape (items, 2)
        Output: STEP and FACTOR of each item.

    Returns
    -------
    float
        The decrease of the sum of squared residuals.
    """
    fall = 0.0
    for item in range(len(factor)):
        pull, curvature = total[item, PULL], total[item, CURVATURE]
        weight = penalty + penalty_a_rating * counts[item]
        old = factor[item]
        new = old
        if curvature + weight > _MIN_CURVATURE:
            new = float32(old + (pull - weight * old) / (curvature + weight))
        step = float32(new - old)
        factor[item] = new
        table[item, STEP] = step
        fall += step * (2.0 * pull - step * curvature)
    for item in range(len(factor)):
        table[item, FACTOR] = next_factor[item]
    return fall


@njit(nogil=True, fastmath=True, cache=True)
def add_products(users, offsets, items, factor, predictions):  # type: ignore[no-untyped-def]
    """Add one factor's share to predictions: w of each user times h of each item that is paired with it.

    The items of user u are `items[offsets[u]:offsets[u + 1]]`, and the predictions are at the same positions.
    """
    for user in range(len(users)):
        w = users[user]
        for n in range(offsets[user], offsets[user + 1]):
            predictions[n] += w * factor[uint32(items[n])]
