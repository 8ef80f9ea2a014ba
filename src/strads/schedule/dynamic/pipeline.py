"""The coordinator of the Dynamic Engine as a state machine from plans and results to commands (thesis §5.2.2).

Plans are pulled round-robin from the scheduler instances, ahead of need. Each is split into subplans, several of which
are in flight. Subplan t sees the commits of all subplans up to t − depth and no others, and the state that a plan is
proposed from is determined by its number as well: arrival times affect nothing but speed.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Parameters = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Commit:
    """Changes that the workers apply, and that are reported to the instance that proposed them.

    Attributes
    ----------
    number
        Number of the subplan.
    instance
        Instance that proposed it.
    parameters, changes
        Arrays whose first axis runs over the parameters of the subplan.
    """

    number: int
    instance: int
    parameters: Parameters
    changes: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Command:
    """The next steps of every node: apply changes, update a subplan, then let its own instances propose plans.

    Attributes
    ----------
    commits
        Commits to apply, in the order of subplans.
    number
        Number of the subplan to update; −1: none.
    parameters
        Parameters to update; none for an empty plan.
    pulls
        Numbers of plans to propose.
    is_last
        Whether the run ends with this command.
    """

    commits: tuple[Commit, ...] = ()
    number: int = -1
    parameters: Parameters = field(default_factory=lambda: np.empty(0, np.int64))
    pulls: tuple[int, ...] = ()
    is_last: bool = False


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The coordinator combines all sources' results of a subplan and then calls `Pipeline.aggregated`.

    Attributes
    ----------
    number
        Number of the subplan.
    parameters
        Parameters that it updates.
    results
        One result from each source, in the order of arrival.
    """

    number: int
    parameters: Parameters
    results: list[Any]


Action = Command | Aggregate


@dataclass(eq=False)
class _Subplan:
    instance: int
    parameters: Parameters
    results: list[Any] = field(default_factory=list)


class Pipeline:
    """Determines when each subplan is updated, in one run.

    A method is called for each event and returns the resulting actions, in order.

    Parameters
    ----------
    rounds
        Number of plans to execute.
    instances
        Number of scheduler instances; plan k comes from instance k mod `instances`.
    sources
        Number of results that a subplan needs: one from each node that has workers.
    depth
        Largest number of subplans in flight, s + 1 in the thesis; 1: each sees the changes of all before it.
    subplans
        Number of parts that a plan is split into.
    first
        Number of the first plan: that of all earlier runs, so that instances keep taking turns.
    reorder
        Whether the parameters of highest priority come first, in a subplan of their own: with no more than `subplans`
        in flight they always see the changes of those of the previous plan (figure 5.3). Otherwise parameters are
        dealt out to the subplans one by one.

    Attributes
    ----------
    updates
        Number of parameters dispatched so far.
    """

    def __init__(
        self,
        rounds: int,
        instances: int,
        sources: int,
        depth: int,
        subplans: int,
        reorder: bool = True,
        *,
        first: int = 0,
    ):
        self.updates = 0
        self._first = self._begun = self._pulled = first
        self._end = first + rounds
        self._instances = instances
        self._sources = sources
        self._depth = depth
        self._subplans = subplans
        self._reorder = reorder
        # One plan ahead suffices for overlap. With many instances, two cost nothing: an instance's last plan has still
        # been committed by the time it is asked for the next.
        self._ahead = 1 if instances < 4 else 2
        self._arrived: dict[int, list[Parameters]] = {}  # plans, already split
        self._waiting: deque[Parameters] = deque()  # subplans of the current plan
        self._in_flight: dict[int, _Subplan] = {}
        self._commits: dict[int, Commit] = {}  # not yet sent
        self._dispatched = self._aggregated = 0
        self._aggregating = False
        self._empty = 0  # consecutive empty plans
        self._is_over = False

    @property
    def plans(self) -> int:
        """Number of plans whose dispatch has begun: below `rounds` if the instances have nothing left to propose."""
        return self._begun - self._first

    def begin(self) -> list[Action]:
        """Return the first actions."""
        return [Command(pulls=self._pull(self._ahead))] if self._end > self._first else self._advance()

    def plan_arrived(self, plan: int, parameters: Parameters, priorities: NDArray[np.float64]) -> list[Action]:
        """Handle a plan that an instance has proposed."""
        self._arrived[plan] = self._split(parameters, priorities)
        return self._advance()

    def result_arrived(self, number: int, result: Any) -> list[Action]:
        """Handle a source's result of a subplan."""
        self._in_flight[number].results.append(result)
        return self._advance()

    def aggregated(self, changes: NDArray[Any]) -> list[Action]:
        """Handle the changes computed by the last Aggregate."""
        number = self._aggregated
        subplan = self._in_flight.pop(number)
        self._commits[number] = Commit(number, subplan.instance, subplan.parameters, changes)
        self._aggregated += 1
        self._aggregating = False
        return self._advance()

    def _pull(self, count: int) -> tuple[int, ...]:
        first = self._pulled
        self._pulled = min(first + count, self._end)
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
        """Aggregate the earliest subplan if all its results have arrived."""
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

    def _issue(self) -> Command | None:
        """Dispatch the next subplan if it may begin."""
        number = self._dispatched
        if self._aggregated <= number - self._depth:
            return None
        pulls: tuple[int, ...] = ()
        if not self._waiting:
            if self._begun == self._pulled:
                return self._finish()
            if self._begun not in self._arrived:
                return None
            pulls = self._begin_plan()
        parameters = self._waiting.popleft()
        self._in_flight[number] = _Subplan((self._begun - 1) % self._instances, parameters)
        self._dispatched += 1
        self.updates += len(parameters)
        commit = self._commits.pop(number - self._depth, None)
        return Command(() if commit is None else (commit,), number, parameters, pulls)

    def _begin_plan(self) -> tuple[int, ...]:
        subplans = self._arrived.pop(self._begun)
        self._begun += 1
        self._waiting.extend(subplans)
        self._empty = 0 if len(subplans[0]) else self._empty + 1
        if self._empty >= self._instances + self._ahead + self._depth:  # all were asked with nothing in flight
            self._end = self._pulled
        return self._pull(1)

    def _finish(self) -> Command | None:
        if self._in_flight or self._is_over:
            return None
        self._is_over = True
        commits = tuple(self._commits[number] for number in sorted(self._commits))
        return Command(commits, is_last=True)
