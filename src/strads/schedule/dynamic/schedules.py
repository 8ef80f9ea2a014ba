"""Dynamic schedules: which parameters to update together next, given their recent changes (thesis §5.1)."""

import numbers
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError
from strads.schedule.dynamic import state as dynamic_state
from strads.schedule.dynamic.dependencies import Dependencies, NoDependencies, no_dependencies
from strads.schedule.dynamic.priorities import make_tree, set_priorities, total_priority
from strads.schedule.dynamic.state import CyclicState, PrioritizedState, RandomState

Proposal = tuple[NDArray[np.int64], NDArray[np.float64]]

_LONGEST_REST = 6  # the largest `rest`


class DynamicSchedule(ABC):
    """One scheduler instance: it proposes updates of its own parameters, numbered across all instances.

    A parameter that has been proposed is in flight until its feedback; only then may it be proposed again.
    """

    @abstractmethod
    def propose(self) -> Proposal:
        """Return parameters that are safe to update together, and their priorities.

        Returns
        -------
        parameters : int64 array of shape (count,)
            All distinct. Empty only if no parameter is left to propose.
        priorities : float64 array of shape (count,)
            The larger, the sooner the update should become visible to others.
        """

    @abstractmethod
    def feedback(self, parameters: NDArray[np.int64], changes: NDArray[np.float64]) -> None:
        """Record the changes δ of parameters that were in flight, after their commit."""


class CompiledSchedule(DynamicSchedule):
    """A schedule whose state is held in arrays, so that compiled rounds can use it without the interpreter.

    Attributes
    ----------
    parameters
        The instance's own.
    concurrency
        Largest number of parameters in a proposal.
    state
        State for `dynamic_state.propose_into` and `take_feedback`.
    """

    state: Any

    def __init__(self, parameters: range, concurrency: int):
        if parameters.step != 1:
            raise ArgumentError(f"parameters={parameters!r}: give a range without gaps")
        whole = isinstance(concurrency, numbers.Integral) and not isinstance(concurrency, bool)
        if not whole or concurrency < 1:
            raise ArgumentError(f"concurrency={concurrency!r}: give a whole number, 1 or more")
        self.parameters = parameters
        self.concurrency = int(concurrency)

    def propose(self) -> Proposal:
        """Return the next proposal."""
        parameters, priorities = np.empty(self.concurrency, np.int64), np.empty(self.concurrency)
        count = dynamic_state.propose(self.state, parameters, priorities)
        return parameters[:count], priorities[:count]

    def feedback(self, parameters: ArrayLike, changes: ArrayLike) -> None:
        """Take parameters back.

        Raises
        ------
        ArgumentError
            If one is not in flight.
        """
        back, by = np.asarray(parameters, np.int64), np.asarray(changes, np.float64)
        if back.ndim != 1 or by.shape != back.shape:
            raise ArgumentError(f"feedback of shapes {back.shape} and {by.shape}: give one change for each parameter")
        if not dynamic_state.feedback(self.state, back, by, len(back)):
            raise ArgumentError("feedback for a parameter that is not in flight")

    def _limits(self, candidates: int = 0, rest: int = 0) -> NDArray[np.int64]:
        return np.array([self.parameters.start, self.concurrency, candidates, rest], np.int64)


class CyclicSchedule(CompiledSchedule):
    """All parameters in order, cyclically; its `state` is a `CyclicState`.

    Parameters
    ----------
    parameters : range
        The instance's own.
    concurrency : int
        Number of parameters in a proposal.
    """

    def __init__(self, parameters: range, concurrency: int):
        super().__init__(parameters, concurrency)
        self.state = CyclicState(self._limits(), np.zeros(5, np.int64), np.zeros(len(parameters), np.bool_))


class RandomSchedule(CompiledSchedule):
    """Parameters drawn uniformly without replacement, ignoring dependencies: Shotgun (Bradley et al. 2011).

    With P simultaneous updates it makes progress while P < p / ρ + 1, where ρ is the spectral radius of XᵀX of
    standardized columns; above that it may diverge. Its `state` is a `RandomState`.

    Parameters
    ----------
    parameters : range
        The instance's own.
    concurrency : int
        P, the number of parameters in a proposal.
    seed : int
        Seed of the draws.
    """

    def __init__(self, parameters: range, concurrency: int, *, seed: int = 0):
        super().__init__(parameters, concurrency)
        count = len(parameters)
        counters = np.zeros(5, np.int64)
        counters[dynamic_state.AVAILABLE] = count
        generator = _generator(seed, parameters)
        self.state = RandomState(self._limits(), counters, generator, np.arange(count), np.arange(count))


class PrioritySchedule(CompiledSchedule):
    """Prioritized draws and a dependency check, the two phases of thesis §5.1.1 (algorithm 6).

    Phase I draws candidates with probability p(j) ∝ (δβ_j)² + η, where δβ_j is the last change (proved optimal for
    uncorrelated columns in the supplement of Lee et al. 2014). A share of the draws goes to every parameter in turn, in
    random order, regardless of priority: this is η, relative to the mean of the (δβ_j)², so that it neither vanishes
    nor dominates as the changes become small. Parameters that have never been updated come before all others.

    Phase II visits the candidates by decreasing priority and keeps those whose dependency on each kept one is at most
    ρ. The rest, the victims, come first in the next round. Many weak dependencies do as much harm as a strong one,
    and with prioritized draws nearly every update has an effect, so the sum of their squares is limited by `crowding`
    as well (see `dependencies.keep_if_safe`; infinity gives the thesis' rule). The `state` is a `PrioritizedState`.

    Parameters
    ----------
    parameters : range
        The instance's own.
    concurrency : int
        Largest number of parameters in a proposal. In a round there are up to twice as many candidates (L').
    threshold : float, default 0.3
        ρ: largest |correlation| within a proposal.
    crowding : float, default 0.15
        Largest sum of the squared correlations of a parameter with the others of a proposal.
    dependencies : Dependencies, optional
        Dependencies of the instance's own parameters, from `dense_dependencies` or `sparse_dependencies`, with a
        capacity of at least `concurrency`; by default there are none. The last parameter need not have a column.
    prioritize : bool, default True
        False: all draws are uniform.
    check_dependencies : bool, default True
        False: all candidates are kept.
    eta : float, default 0.1
        Share of the draws that ignore the priorities.
    rest : int, default 0
        A parameter whose updates have had no effect is skipped for up to 2^rest − 1 sweeps: 1 after the first such
        update, 3 after the second, … (0: the thesis' rule). In a sparse model, most coefficients stay 0 and are far
        from entering, so most of these draws are saved (shrinking: Joachims 1999, Hsieh et al. 2008).
    scales : float64 array of shape (len(parameters),), optional
        Factors applied to the changes before they are compared: the norms of the columns, if these differ.
    seed : int
        Seed of the draws.
    """

    state: PrioritizedState

    def __init__(
        self,
        parameters: range,
        concurrency: int,
        *,
        threshold: float = 0.3,
        crowding: float = 0.15,
        dependencies: Dependencies | None = None,
        prioritize: bool = True,
        check_dependencies: bool = True,
        eta: float = 0.1,
        rest: int = 0,
        scales: NDArray[np.float64] | None = None,
        seed: int = 0,
    ):
        super().__init__(parameters, concurrency)
        limit = 2 * self.concurrency
        for name, value, most in (("threshold", threshold, 1.0), ("eta", eta, 1.0), ("crowding", crowding, np.inf)):
            if not 0.0 <= value <= most:
                raise ArgumentError(f"{name}={value!r}: give a number from 0 to {most:g}")
        if rest not in range(_LONGEST_REST + 1):
            raise ArgumentError(f"rest={rest!r}: give a whole number from 0 to {_LONGEST_REST}")
        count = len(parameters)
        if scales is not None and np.shape(scales) != (count,):
            raise ArgumentError(f"scales of shape {np.shape(scales)} for {count} parameters")
        if dependencies is None or not check_dependencies:
            dependencies, limit = no_dependencies(), self.concurrency
        elif not isinstance(dependencies, NoDependencies) and count - len(dependencies.means) not in (0, 1):
            raise ArgumentError(f"dependencies of {len(dependencies.means)} columns for {count} parameters")
        weights = np.full(count, dynamic_state.UNSEEN if prioritize else 1.0)
        counters = np.zeros(5, np.int64)
        counters[dynamic_state.MEMBERS] = count
        self._random = np.random.default_rng((seed, parameters.start))
        self.state = PrioritizedState(
            self._limits(limit, rest),
            counters,
            _generator(seed, parameters),
            make_tree(weights),
            weights,
            np.ones(count) if scales is None else np.array(scales, np.float64),
            np.full(count, dynamic_state.FREE, np.int8),
            np.zeros(count, np.bool_),
            np.zeros(count, np.int8),
            self._random.permutation(count),
            np.empty(limit, np.int64),
            np.empty(self.concurrency, np.int64),
            dependencies,
            np.array([threshold, crowding, eta, prioritize], np.float64),
            np.zeros(3),
        )


class ViolationSchedule(PrioritySchedule):
    """`PrioritySchedule` whose priorities come from occasional full passes over the problem.

    One pass over all columns tells what past changes cannot: the current violation of each parameter's optimality
    condition, even if it was never drawn, and which parameters cannot be in the solution at all (screening: El Ghaoui
    et al. 2012, Fercoq et al. 2015). Between two passes only the remaining parameters are drawn. Before the first pass
    it behaves like `PrioritySchedule`.

    Parameters
    ----------
    parameters, concurrency, seed, **options
        As in `PrioritySchedule`.
    """

    def refresh(self, violations: ArrayLike) -> None:
        """Replace all priorities, while nothing is in flight.

        Parameters
        ----------
        violations : array of shape (len(parameters),)
            Expected |δ| of each parameter, in the unit of scaled changes; 0 for those that are only drawn in turn,
            negative for those that are not drawn at all until the next refresh. NaN counts as the largest, as the
            changes of a model that diverges do in `feedback`.

        Raises
        ------
        ArgumentError
            If a parameter is in flight, or the shape is wrong.
        """
        values = np.asarray(violations, np.float64)
        state = self.state
        if values.shape != state.weights.shape:
            raise ArgumentError(f"violations of shape {values.shape} for {len(state.weights)} parameters")
        if (state.taken == dynamic_state.IN_FLIGHT).any():
            raise ArgumentError("refresh while parameters are in flight")
        values = np.fmin(values, dynamic_state.LARGEST_CHANGE)  # which is that for NaN, too
        dynamic_state.release_victims(state)
        members = self._random.permutation(np.flatnonzero(values >= 0.0))
        state.sweep[: len(members)] = members
        state.counters[dynamic_state.MEMBERS] = len(members)
        state.counters[dynamic_state.CURSOR] = 0
        state.idle[:] = 0
        state.weights[:] = np.maximum(values, 0.0) ** 2 if state.rules[dynamic_state.PRIORITIZE] else values >= 0.0
        set_priorities(state.tree, state.weights)

    def expected(self) -> float:
        """Return the sum of the expected squared changes of the parameters, except those in flight and the victims."""
        return float(total_priority(self.state.tree))


def _generator(seed: int, parameters: range) -> NDArray[np.uint64]:
    """Return the state of an instance's own generator."""
    return np.asarray(np.random.SeedSequence((seed, parameters.start)).generate_state(1, np.uint64), np.uint64)
