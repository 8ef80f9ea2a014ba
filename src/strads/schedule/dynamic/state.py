"""State of dynamic schedules, as arrays, and the two events that change it; for all kinds of compiled code."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from strads.schedule.dynamic.dependencies import Dependencies, forget_kept, keep_if_safe
from strads.schedule.dynamic.priorities import (
    PriorityTree,
    find_leaf,
    random_below,
    random_share,
    set_priority,
    total_priority,
)

UNSEEN = 1e150  # priority of parameters that have never been updated: above all others, so that they come first
LARGEST_CHANGE = 1e60  # its square is below UNSEEN; larger changes, and NaN, are clipped to this

_BATCH = 16  # candidates drawn at a time
_MEMORY = 1.0 / 512.0  # weight of the latest update in the running means
_MAX_IN_TURN = 0.9  # largest share of draws made in turn rather than by priority

# Fields of `rules`, see `PrioritySchedule`: `threshold`, `crowding`, `eta`, and whether to `prioritize` (0 or 1).
# Fields of `gains`, see `PrioritizedState`.
THRESHOLD, CROWDING, MIN_IN_TURN, PRIORITIZE = range(4)
IN_TURN, PROMISED, DELIVERED = range(3)
# Values of `PrioritizedState.taken`.
FREE, IN_FLIGHT, VICTIM = range(3)
# Fields of `limits`: number of the instance's first parameter, most parameters in a plan, most candidates in a round,
# and `rest` of `PrioritySchedule`.
FIRST, CONCURRENCY, CANDIDATES, REST = range(4)
# Fields of `counters`: next place in the cyclic order or in `sweep`, number of victims, entries of `sweep` that may be
# drawn, entries of `pool` that are not in flight, and sweeps begun.
CURSOR, VICTIMS, MEMBERS, AVAILABLE, TURN = range(5)


class CyclicState(NamedTuple):
    """Cyclic order."""

    limits: NDArray[np.int64]  # (4,): see `FIRST` and the fields after it
    counters: NDArray[np.int64]  # (5,): see `CURSOR` and the fields after it
    taken: NDArray[np.bool_]  # whether each parameter is in flight


class RandomState(NamedTuple):
    """Uniformly without replacement: the first `counters[AVAILABLE]` of the pool are not in flight."""

    limits: NDArray[np.int64]  # (4,): see `FIRST` and the fields after it
    counters: NDArray[np.int64]  # (5,): see `CURSOR` and the fields after it
    generator: NDArray[np.uint64]  # (1,): state of the random numbers, see `random_bits`
    pool: NDArray[np.int64]  # (parameters,): a permutation of them, numbered from 0 within the instance
    position: NDArray[np.int64]  # of each parameter in the pool


class PrioritizedState(NamedTuple):
    """By priority, with a dependency check; parameters are numbered from 0 within the instance.

    `limits`, `counters` and `generator` are as in `RandomState`; `rules` (4,) holds settings, see `THRESHOLD` and the
    fields after it, and `dependencies` are those of the instance's parameters.

    `taken` marks parameters in flight and the victims of the last round (listed in `victims`); in `tree` their priority
    is 0 meanwhile, while `weights` keeps it. `scales` multiplies changes. The first `counters[MEMBERS]` entries of
    `sweep` are the parameters that may be drawn at all, in random order; `in_turn` marks those last drawn from there.
    A parameter whose last k updates had no effect is only drawn in every 2^min(k, REST)-th sweep: that exponent is
    `idle`. `batch` holds the latest draws. `gains` are running means of squared changes: of parameters drawn in turn,
    and of those drawn by priority, before (promised) and after (delivered) the update.
    """

    limits: NDArray[np.int64]
    counters: NDArray[np.int64]
    generator: NDArray[np.uint64]
    tree: PriorityTree
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    taken: NDArray[np.int8]
    in_turn: NDArray[np.bool_]
    idle: NDArray[np.int8]
    sweep: NDArray[np.int64]
    victims: NDArray[np.int64]
    batch: NDArray[np.int64]
    dependencies: Dependencies
    rules: NDArray[np.float64]
    gains: NDArray[np.float64]


def propose_into(state: Any, parameters: NDArray[np.int64], priorities: NDArray[np.float64]) -> int:
    """Write the next plan, of up to `limits[CONCURRENCY]` parameters; returns their number. For compiled code only.

    `parameters` and `priorities` have room for that many; parameters are numbered across all instances.
    """
    raise NotImplementedError


def take_feedback(state: Any, parameters: NDArray[np.int64], changes: NDArray[np.float64], count: int) -> bool:
    """Take back the first `count` of `parameters`, with the `changes` δ made to them; for compiled code only.

    Returns
    -------
    bool
        False, leaving the rest unchanged, if one was not in flight.
    """
    raise NotImplementedError


@njit(nogil=True, cache=True)
def _propose_cyclic(state, parameters, priorities):  # type: ignore[no-untyped-def]
    count = len(state.taken)
    kept = 0
    for _ in range(count):
        if kept == state.limits[CONCURRENCY]:
            break
        leaf = state.counters[CURSOR]
        state.counters[CURSOR] = (leaf + 1) % count
        if not state.taken[leaf]:
            state.taken[leaf] = True
            parameters[kept], priorities[kept] = state.limits[FIRST] + leaf, 1.0
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def _feedback_cyclic(state, parameters, changes, count):  # type: ignore[no-untyped-def]
    """Implement `take_feedback(state, parameters, changes, count)` for `CyclicState`, which ignores the changes."""
    for n in range(count):
        leaf = parameters[n] - state.limits[FIRST]
        if leaf < 0 or leaf >= len(state.taken) or not state.taken[leaf]:
            return False
        state.taken[leaf] = False
    return True


@njit(nogil=True, cache=True)
def _swap(state, one, other):  # type: ignore[no-untyped-def]
    pool, position = state.pool, state.position
    pool[one], pool[other] = pool[other], pool[one]
    position[pool[one]], position[pool[other]] = one, other


@njit(nogil=True, cache=True)
def _propose_random(state, parameters, priorities):  # type: ignore[no-untyped-def]
    available = state.counters[AVAILABLE]
    kept = min(state.limits[CONCURRENCY], available)
    for n in range(kept):
        available -= 1
        _swap(state, random_below(state.generator, available + 1), available)
        parameters[n], priorities[n] = state.limits[FIRST] + state.pool[available], 1.0
    state.counters[AVAILABLE] = available
    return kept


@njit(nogil=True, cache=True)
def _feedback_random(state, parameters, changes, count):  # type: ignore[no-untyped-def]
    """Implement `take_feedback(state, parameters, changes, count)` for `RandomState`, which ignores the changes."""
    for n in range(count):
        leaf = parameters[n] - state.limits[FIRST]
        available = state.counters[AVAILABLE]
        if leaf < 0 or leaf >= len(state.pool) or state.position[leaf] < available:
            return False
        _swap(state, state.position[leaf], available)
        state.counters[AVAILABLE] += 1
    return True


@njit(nogil=True, cache=True)
def _next_of_sweep(state):  # type: ignore[no-untyped-def]
    members = state.counters[MEMBERS]
    for _ in range(members << state.limits[REST]):
        place = state.counters[CURSOR]
        state.counters[CURSOR] = (place + 1) % members
        if place == 0:
            state.counters[TURN] += 1
        leaf = state.sweep[place]
        is_due = (state.counters[TURN] + leaf) & ((1 << state.idle[leaf]) - 1) == 0
        if is_due and state.taken[leaf] == FREE:
            return leaf
    return -1


@njit(nogil=True, cache=True)
def _share_in_turn(state):  # type: ignore[no-untyped-def]
    """Share of the draws made in turn: p η / (p η + Σ (δβ_j)²), measured by the actual gains of draws."""
    gains = state.gains
    least = state.rules[MIN_IN_TURN]
    by_priority = total_priority(state.tree)
    if state.rules[PRIORITIZE] == 0.0:
        return least
    if gains[PROMISED] > 0.0:
        by_priority *= min(gains[DELIVERED] / gains[PROMISED], 1.0)
    in_turn = gains[IN_TURN] * state.counters[MEMBERS]
    if in_turn <= 0.0:
        return least
    return min(max(in_turn / (in_turn + by_priority), least), max(_MAX_IN_TURN, least))


@njit(nogil=True, cache=True)
def _draw(state, share):  # type: ignore[no-untyped-def]
    """Draw one parameter, in turn with probability `share`, else by priority; −1 if none is left."""
    leaf = -1
    if random_share(state.generator) >= share:
        leaf = find_leaf(state.tree, random_share(state.generator))
    in_turn = leaf < 0
    if in_turn:
        leaf = _next_of_sweep(state)
    if leaf >= 0:
        state.taken[leaf] = IN_FLIGHT
        state.in_turn[leaf] = in_turn
        set_priority(state.tree, leaf, 0.0)
    return leaf


@njit(nogil=True, cache=True)
def _draw_batch(state, count):  # type: ignore[no-untyped-def]
    """Draw up to `count` parameters into `state.batch`, by decreasing priority; returns their number."""
    share = _share_in_turn(state)
    for drawn in range(count):
        leaf = _draw(state, share)
        if leaf < 0:
            return drawn
        place = drawn
        while place > 0 and state.weights[state.batch[place - 1]] < state.weights[leaf]:
            state.batch[place] = state.batch[place - 1]
            place -= 1
        state.batch[place] = leaf
    return count


@njit(nogil=True, cache=True)
def _is_safe(state, leaf):  # type: ignore[no-untyped-def]
    return keep_if_safe(state.dependencies, leaf, state.rules[THRESHOLD], state.rules[CROWDING])


@njit(nogil=True, cache=True)
def _keep_or_reserve(state, leaf, parameters, priorities, kept):  # type: ignore[no-untyped-def]
    """Append the candidate `leaf` to the plan or, if it is full or the candidate unsafe, to the victims in `state`.

    The plan is the first `kept` entries of `parameters` and `priorities`. Returns its new size.
    """
    if kept < state.limits[CONCURRENCY] and _is_safe(state, leaf):
        state.taken[leaf] = IN_FLIGHT
        parameters[kept], priorities[kept] = state.limits[FIRST] + leaf, state.weights[leaf]
        return kept + 1
    state.taken[leaf] = VICTIM
    state.victims[state.counters[VICTIMS]] = leaf
    state.counters[VICTIMS] += 1
    return kept


@njit(nogil=True, cache=True)
def _propose_prioritized(state, parameters, priorities):  # type: ignore[no-untyped-def]
    forget_kept(state.dependencies)
    tried = state.counters[VICTIMS]
    state.counters[VICTIMS] = 0
    kept = 0
    for n in range(tried):  # remaining victims overwrite entries already read
        kept = _keep_or_reserve(state, state.victims[n], parameters, priorities, kept)
    concurrency, candidates = state.limits[CONCURRENCY], state.limits[CANDIDATES]
    # A plan that cannot be filled because no more candidates are safe gets only candidates in proportion to its size.
    while kept < concurrency and (tried < _BATCH or (tried - kept) * concurrency <= kept * (candidates - concurrency)):
        drawn = _draw_batch(state, min(min(concurrency - kept, candidates - tried), _BATCH))
        if drawn == 0:
            break
        tried += drawn
        for n in range(drawn):
            kept = _keep_or_reserve(state, state.batch[n], parameters, priorities, kept)
    return kept


@njit(nogil=True, cache=True)
def _learn(state, leaf, weight):  # type: ignore[no-untyped-def]
    """Update the running means."""
    gains, before = state.gains, state.weights[leaf]
    if state.in_turn[leaf]:
        gains[IN_TURN] += (weight - gains[IN_TURN]) * _MEMORY
    elif before < UNSEEN:
        gains[PROMISED] += (before - gains[PROMISED]) * _MEMORY
        gains[DELIVERED] += (weight - gains[DELIVERED]) * _MEMORY


@njit(nogil=True, cache=True)
def _feedback_prioritized(state, parameters, changes, count):  # type: ignore[no-untyped-def]
    """Implement `take_feedback(state, parameters, changes, count)` for `PrioritizedState`."""
    for n in range(count):
        leaf = parameters[n] - state.limits[FIRST]
        if leaf < 0 or leaf >= len(state.taken) or state.taken[leaf] != IN_FLIGHT:
            return False
        weight = 1.0
        if state.rules[PRIORITIZE] != 0.0:
            change = abs(changes[n]) * state.scales[leaf]
            weight = change * change if change < LARGEST_CHANGE else LARGEST_CHANGE * LARGEST_CHANGE
            _learn(state, leaf, weight)
        state.taken[leaf] = FREE
        state.idle[leaf] = 0 if weight > 0.0 else min(state.idle[leaf] + 1, state.limits[REST])
        state.weights[leaf] = weight
        set_priority(state.tree, leaf, weight)
    return True


@njit(nogil=True, cache=True)
def release_victims(state: PrioritizedState) -> None:
    """Return the victims of the last round to the pool of parameters that may be drawn."""
    for n in range(state.counters[VICTIMS]):
        leaf = state.victims[n]
        state.taken[leaf] = FREE
        set_priority(state.tree, leaf, state.weights[leaf])
    state.counters[VICTIMS] = 0


@overload(propose_into)
def _propose_into(state, parameters, priorities):  # type: ignore[no-untyped-def]
    if state.instance_class is CyclicState:
        return lambda state, parameters, priorities: _propose_cyclic(state, parameters, priorities)
    if state.instance_class is RandomState:
        return lambda state, parameters, priorities: _propose_random(state, parameters, priorities)
    return lambda state, parameters, priorities: _propose_prioritized(state, parameters, priorities)


@overload(take_feedback)
def _take_feedback(state, parameters, changes, count):  # type: ignore[no-untyped-def]
    if state.instance_class is CyclicState:
        return lambda state, parameters, changes, count: _feedback_cyclic(state, parameters, changes, count)
    if state.instance_class is RandomState:
        return lambda state, parameters, changes, count: _feedback_random(state, parameters, changes, count)
    return lambda state, parameters, changes, count: _feedback_prioritized(state, parameters, changes, count)


@njit(nogil=True, cache=True)
def propose(state, parameters, priorities):  # type: ignore[no-untyped-def]
    """Call `propose_into(state, parameters, priorities)` from the interpreter."""
    return propose_into(state, parameters, priorities)


@njit(nogil=True, cache=True)
def feedback(state, parameters, changes, count):  # type: ignore[no-untyped-def]
    """Call `take_feedback(state, parameters, changes, count)` from the interpreter."""
    return take_feedback(state, parameters, changes, count)
