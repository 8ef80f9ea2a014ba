"""One node's part of a run of the Dynamic Engine: an event loop that executes commands (thesis §5.2.2).

The coordinator sends each node one message per subplan: what to commit, what to update, which plans to propose. The
node answers with its workers' merged results, and with plans. The coordinator is node 0, which also runs workers.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node
from strads.cluster.comm import Traffic
from strads.engine.statistics import NodeStatistics
from strads.errors import PlanError
from strads.schedule.dynamic.merging import Range, merge_subtree
from strads.schedule.dynamic.pipeline import Action, Aggregate, Command, Parameters, Pipeline
from strads.schedule.dynamic.schedules import DynamicSchedule

_COMMAND, _REPORT = 1, 2  # tags


class NodeWork(Protocol):
    """The node's work, as called by the loop.

    Attributes
    ----------
    threads
        Thread count.
    tasks
        Calls of `update` so far: one per worker and part of a subplan.
    seconds
        Time spent in the program's functions so far, summed over threads.
    """

    threads: int
    tasks: int
    seconds: float

    def update(self, parameters: Parameters) -> dict[Range, Any]:
        """Return the results of this node's workers, merged to subtrees; empty where there are no workers."""

    def commit(self, parameters: Parameters, changes: NDArray[Any]) -> None:
        """Update the data of this node's workers."""


class Instance:
    """A scheduler instance, restricted to its own parameters.

    Parameters
    ----------
    number
        Number of the instance.
    schedule
        The schedule that makes proposals.
    parameters
        The parameters that it may propose.
    """

    def __init__(self, number: int, schedule: DynamicSchedule, parameters: range):
        self.number = number
        self.schedule = schedule
        self.parameters = parameters
        self._in_flight = np.zeros(len(parameters), bool)

    def propose(self) -> tuple[Parameters, NDArray[np.float64]]:
        """Return the next plan.

        Raises
        ------
        PlanError
            If a parameter does not belong to the instance, is proposed twice, or is in flight.
        """
        found, priorities = self.schedule.propose()
        parameters = np.ascontiguousarray(found, np.int64)
        priorities = np.ascontiguousarray(priorities, np.float64)
        if parameters.ndim != 1 or parameters.shape != priorities.shape:
            self._refuse(f"parameters of shape {parameters.shape} with priorities of shape {priorities.shape}")
        places = parameters - self.parameters.start
        outside = (places < 0) | (places >= len(self._in_flight))
        if outside.any():
            own = f"{self.parameters.start} … {self.parameters.stop - 1}"
            self._refuse(f"parameter {parameters[outside][0]}, but the instance has {own}")
        if self._in_flight[places].any():
            self._refuse(f"parameter {parameters[self._in_flight[places]][0]} again before `feedback` on it")
        if len(np.unique(places)) < len(places):
            self._refuse("a parameter twice in one plan")
        self._in_flight[places] = True
        return parameters, priorities

    def _refuse(self, what: str) -> None:
        raise PlanError(f"propose() of instance {self.number} ({type(self.schedule).__name__}) returned {what}")

    def feedback(self, parameters: Parameters, changes: NDArray[Any]) -> None:
        """Pass the changes of parameters to the schedule."""
        self._in_flight[parameters - self.parameters.start] = False
        size = np.abs(changes) if changes.ndim == 1 else np.linalg.norm(changes.reshape(len(changes), -1), axis=1)
        self.schedule.feedback(parameters, size.astype(np.float64, copy=False))


class Coordinator:
    """Drives the pipeline on node 0: sends its commands, and receives the nodes' reports.

    Parameters
    ----------
    node
        Node 0.
    pipeline
        The pipeline of this run.
    worker_nodes, instance_nodes
        Node of each worker, and of each instance.
    merge, aggregate
        Methods of the program.

    Attributes
    ----------
    commands
        Commands for node 0 itself.
    seconds
        Time spent in `aggregate`.
    """

    def __init__(
        self,
        node: Node,
        pipeline: Pipeline,
        worker_nodes: Sequence[int],
        instance_nodes: Sequence[int],
        merge: Callable[[Any, Any], Any],
        aggregate: Callable[[Parameters, Any], NDArray[Any]],
    ):
        self._comm = node.comm
        self._pipeline = pipeline
        self._workers = len(worker_nodes)
        self._sources = set(worker_nodes)
        self._instance_nodes = instance_nodes
        self._merge = merge
        self._aggregate = aggregate
        self._owed = [0] * node.size  # outstanding reports of each node
        self.commands: deque[Command] = deque()  # for this node itself
        self.seconds = 0.0  # aggregating

    def begin(self) -> None:
        """Send the first commands."""
        self._carry_out(self._pipeline.begin())

    def report(self, report: tuple[Any, ...], source: int = 0) -> None:
        """Process a report: (number, results) of a subplan, or (plan, parameters, priorities)."""
        self._owed[source] -= 1
        if len(report) == 2:
            self._carry_out(self._pipeline.result_arrived(*report))
        else:
            self._carry_out(self._pipeline.plan_arrived(*report))

    def wait(self) -> None:
        """Process reports of other nodes until there is a command for this node itself.

        Raises
        ------
        NodeFailure
            If nothing arrives within the time limit; names the node with the most outstanding reports.
        """
        self._receive()
        while not self.commands:
            late = max(range(self._comm.size), key=self._owed.__getitem__)
            self._comm.wait_for(
                lambda: self._receive() or None, f"a result or a plan from {self._comm.name(late)}", late
            )

    def _receive(self) -> bool:
        arrived = False
        for source in range(1, self._comm.size):
            for report in self._comm.poll(source, _REPORT):
                arrived = True
                self.report(report, source)
        return arrived

    def _carry_out(self, actions: Sequence[Action]) -> None:
        waiting = deque(actions)
        while waiting:
            action = waiting.popleft()
            if isinstance(action, Command):
                self._send(action)
            else:
                waiting.extend(self._pipeline.aggregated(self._changes(action)))

    def _send(self, command: Command) -> None:
        for rank in range(1, self._comm.size):
            self._comm.send(command, rank, _COMMAND)
        self.commands.append(command)
        if len(command.parameters):
            for rank in self._sources:
                self._owed[rank] += 1
        for plan in command.pulls:
            self._owed[self._instance_nodes[plan % len(self._instance_nodes)]] += 1

    def _changes(self, action: Aggregate) -> NDArray[Any]:
        start = time.perf_counter()
        results = {workers: result for of_node in action.results for workers, result in of_node.items()}
        merged = merge_subtree((0, self._workers), results, self._merge)
        changes = np.asarray(self._aggregate(action.parameters, merged))
        if changes.ndim == 0 or len(changes) != len(action.parameters):
            raise PlanError(
                f"aggregate() returned changes of shape {changes.shape} for {len(action.parameters)} parameters: "
                "the first axis must be the parameters"
            )
        self.seconds += time.perf_counter() - start
        return changes


class DynamicExecution:
    """The event loop of a node; the object serves one run.

    Parameters
    ----------
    node
        This node.
    work
        The work of its workers.
    instances
        Instances on this node, by number.
    count
        Number of instances on all nodes.
    coordinator
        The coordinator on node 0; None elsewhere.
    """

    def __init__(
        self,
        node: Node,
        work: NodeWork,
        instances: Mapping[int, Instance],
        count: int,
        coordinator: Coordinator | None,
    ):
        self._node = node
        self._comm = node.comm
        self._work = work
        self._instances = instances
        self._count = count
        self._coordinator = coordinator
        self._commands: deque[Command] = deque() if coordinator is None else coordinator.commands
        self._taken = self._queued = self._longest = 0
        self._scheduling = 0.0  # seconds

    def run(self) -> NodeStatistics:
        """Execute commands until the last.

        Raises
        ------
        Any exception of the program.
        NodeFailure
            If nothing arrives within the limit of `strads.init(timeout=…)`.
        """
        start = time.perf_counter()
        sent = self._comm.traffic.copy()
        if self._coordinator is not None:
            self._coordinator.begin()
        is_over = False
        while not is_over:
            self._comm.check()
            command = self._next()
            self._carry_out(command)
            is_over = command.is_last
        return self._statistics(time.perf_counter() - start, self._comm.traffic.since(sent))

    def _statistics(self, seconds: float, traffic: Traffic) -> NodeStatistics:
        work = self._work
        compute = work.seconds + self._scheduling + (0.0 if self._coordinator is None else self._coordinator.seconds)
        return NodeStatistics(
            self._node.rank,
            self._comm.hosts[self._node.rank],
            work.tasks,
            traffic.bytes_sent,
            traffic.messages_sent,
            compute,
            max(seconds * work.threads - compute, 0.0),
            self._queued / self._taken,
            self._longest,
        )

    def _next(self) -> Command:
        if self._coordinator is not None:
            self._coordinator.wait()
        else:
            self._await_command()
        waiting = len(self._commands)
        self._taken += 1
        self._queued += waiting
        self._longest = max(self._longest, waiting)
        return self._commands.popleft()

    def _await_command(self) -> None:
        """Wait twice as long as the coordinator does, so that it times out first and names the late node."""
        if not self._commands:
            comm = self._comm
            what = f"a command from {comm.name(0)}"
            self._commands.extend(
                comm.wait_for(lambda: comm.poll(0, _COMMAND) or None, what, 0, limit=2 * comm.timeout)
            )

    def _carry_out(self, command: Command) -> None:
        """Execute a command; first the parts that other nodes wait for."""
        for commit in command.commits:
            self._work.commit(commit.parameters, commit.changes)
        if len(command.parameters) and (results := self._work.update(command.parameters)):
            self._report((command.number, results))
        for commit in command.commits:
            if (instance := self._instances.get(commit.instance)) is not None:
                self._timed(instance.feedback, commit.parameters, commit.changes)
        for plan in command.pulls:
            if (instance := self._instances.get(plan % self._count)) is not None:
                self._report((plan, *self._timed(instance.propose)))

    def _timed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        start = time.perf_counter()
        value = function(*arguments)
        self._scheduling += time.perf_counter() - start
        return value

    def _report(self, report: tuple[Any, ...]) -> None:
        if self._coordinator is not None:
            self._coordinator.report(report)
        else:
            self._comm.send(report, 0, _REPORT)
