"""The coordinator of the Dynamic Engine as a state machine: plans and results in, orders out (thesis §5.2.2).

Plans are pulled round-robin from the scheduler instances, ahead of need. Each is split into subplans, of which
several are in flight. Subplan t is updated with the commits of all subplans up to t − depth and of no other, and what
a plan is proposed from follows from its number as well: when something arrives decides nothing but speed.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Parameters = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Commit:
    """Changes that the workers bring in, and of which the instance that proposed them is told.

    Attributes
    ----------
    number
        Of the subplan.
    instance
        That proposed it.
    parameters, changes
        Arrays whose first axis is the parameters of the subplan.
    """

    number: int
    instance: int
    parameters: Parameters
    changes: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Order:
    """What every node does next: bring in changes, update a subplan, then let its own instances propose plans.

    Attributes
    ----------
    commits
        In the order of subplans.
    number
        Of the subplan to update; −1: none.
    parameters
        To update; none of a plan that was empty.
    pulls
        Numbers of plans to propose.
    is_last
        Whether the run ends with this.
    """

    commits: tuple[Commit, ...] = ()
    number: int = -1
    parameters: Parameters = field(default_factory=lambda: np.empty(0, np.int64))
    pulls: tuple[int, ...] = ()
    is_last: bool = False


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The coordinator combines all sources' results of a subplan, and then calls `Pipeline.aggregated`."""

    number: int
    parameters: Parameters
    results: list[Any]


Action = Order | Aggregate


@dataclass(eq=False)
class _Subplan:
    instance: int
    parameters: Parameters
    results: list[Any] = field(default_factory=list)


class Pipeline:
    """Which subplan is updated when, in one run.

    A method is called for each event, and returns the actions that it leads to, in order.

    Parameters
    ----------
    rounds
        Plans to carry out.
    instances
        Scheduler instances; plan k comes from instance k mod `instances`.
    sources
        How many results a subplan needs: one from each node that has workers.
    depth
        Subplans in flight at most, s + 1 of the thesis; 1: each sees the changes of all before it.
    subplans
        Parts that a plan is split into.
    reorder
        Whether the parameters of highest priority come first, in a subplan of their own: with no more in flight than
        `subplans` they always see what became of those of the plan before (figure 5.3). Else parameters are dealt out
        to the subplans one by one.

    Attributes
    ----------
    updates
        Parameters dispatched so far.
    plans
        Plans whose dispatch has begun. Stays below `rounds` when the instances have nothing left to propose.
    """

    def __init__(self, rounds: int, instances: int, sources: int, depth: int, subplans: int, reorder: bool = True):
        self.updates = 0
        self.plans = 0
        self._rounds = rounds
        self._instances = instances
        self._sources = sources
        self._depth = depth
        self._subplans = subplans
        self._reorder = reorder
        # One plan ahead suffices for overlap. With many instances two cost nothing: an instance's last plan has been
        # committed all the same when it is asked for the next.
        self._ahead = 1 if instances < 4 else 2
        self._pulled = 0
        self._arrived: dict[int, list[Parameters]] = {}  # plans, split
        self._waiting: deque[Parameters] = deque()  # subplans of the plan that has begun
        self._in_flight: dict[int, _Subplan] = {}
        self._commits: dict[int, Commit] = {}  # not sent yet
        self._dispatched = self._aggregated = 0
        self._aggregating = False
        self._empty = 0  # plans in succession
        self._is_over = False

    # -- events --------------------------------------------------------------------------------------------

    def begin(self) -> list[Action]:
        """Return the first actions."""
        return [Order(pulls=self._pull(self._ahead))] if self._rounds else self._advance()

    def plan_arrived(self, plan: int, parameters: Parameters, priorities: NDArray[np.float64]) -> list[Action]:
        """Take in what an instance has proposed."""
        self._arrived[plan] = self._split(parameters, priorities)
        return self._advance()

    def result_arrived(self, number: int, result: Any) -> list[Action]:
        """Take in a source's result of a subplan."""
        self._in_flight[number].results.append(result)
        return self._advance()

    def aggregated(self, changes: NDArray[Any]) -> list[Action]:
        """Take in what the last Aggregate has changed."""
        number = self._aggregated
        subplan = self._in_flight.pop(number)
        self._commits[number] = Commit(number, subplan.instance, subplan.parameters, changes)
        self._aggregated += 1
        self._aggregating = False
        return self._advance()

    # -- transitions ---------------------------------------------------------------------------------------

    def _pull(self, count: int) -> tuple[int, ...]:
        first = self._pulled
        self._pulled = min(first + count, self._rounds)
        return tuple(range(first, self._pulled))

    def _split(self, parameters: Parameters, priorities: NDArray[np.float64]) -> list[Parameters]:
        """Return the subplans of a plan; an empty plan is one empty subplan, so that the pipeline moves on."""
        count = max(1, min(self._subplans, len(parameters)))
        if self._reorder:
            return np.array_split(parameters[np.argsort(-priorities, kind="stable")], count)
        return [parameters[first::count] for first in range(count)]

    def _advance(self) -> list[Action]:
        actions: list[Action] = []
        while (action := self._retire() or self._issue()) is not None:
            actions.append(action)
        return actions

    def _retire(self) -> Action | None:
        """Aggregate the earliest subplan if all its results are here."""
        while not self._aggregating and (subplan := self._in_flight.get(self._aggregated)) is not None:
            if len(subplan.parameters) == 0:
                del self._in_flight[self._aggregated]
                self._aggregated += 1
            elif len(subplan.results) == self._sources:
                self._aggregating = True
                return Aggregate(self._aggregated, subplan.parameters, subplan.results)
            else:
                break
        return None

    def _issue(self) -> Order | None:
        """Dispatch the next subplan if it may begin."""
        number = self._dispatched
        if self._aggregated <= number - self._depth:
            return None
        pulls: tuple[int, ...] = ()
        if not self._waiting:
            if self.plans == self._pulled:
                return self._end()
            if self.plans not in self._arrived:
                return None
            pulls = self._begin_plan()
        parameters = self._waiting.popleft()
        self._in_flight[number] = _Subplan((self.plans - 1) % self._instances, parameters)
        self._dispatched += 1
        self.updates += len(parameters)
        commit = self._commits.pop(number - self._depth, None)
        return Order(() if commit is None else (commit,), number, parameters, pulls)

    def _begin_plan(self) -> tuple[int, ...]:
        subplans = self._arrived.pop(self.plans)
        self.plans += 1
        self._waiting.extend(subplans)
        self._empty = 0 if len(subplans[0]) else self._empty + 1
        if self._empty >= self._instances + self._ahead + self._depth:  # all were asked while nothing was in flight
            self._rounds = self._pulled
        return self._pull(1)

    def _end(self) -> Order | None:
        if self._in_flight or self._is_over:
            return None
        self._is_over = True
        commits = tuple(self._commits[number] for number in sorted(self._commits))
        return Order(commits, is_last=True)
