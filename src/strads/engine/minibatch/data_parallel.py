"""Data-parallel engine: minibatches on replicas of the parameters, exchanged by a parameter server (thesis §7.2.4).

A *worker* of the parameter server has a replica of each written table. It is a thread, or under `Hybrid` a node, whose
threads share the replica without locks. In each round, i.e. one clock of the tables, a worker gets the rows, runs a
minibatch on each of its threads, and sends the changes.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.cluster import Node
from strads.engine.minibatch.rounds import SharedTable
from strads.engine.ps.client import Client
from strads.engine.ps.dense_rows import DenseRows, scatter
from strads.engine.ps.execution import Endpoint, WorkerThreads, WorkerTimes
from strads.engine.ps.server import Combine, Server
from strads.engine.ps.table_format import TableFormat
from strads.errors import ArgumentError, BodyError
from strads.schedule.consistency import Consistency
from strads.schedule.minibatches import Minibatches, TouchedRows

_LONGEST_ROW = 1 << 14

Aggregation = str | Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Parameter:
    """A written table during one run.

    Attributes
    ----------
    name
        Name for error messages.
    table
        All rows; only those of this node are up to date.
    bounds
        Node p holds the rows `bounds[p]:bounds[p + 1]`.
    aggregation
        "average", "sum", or a function of the changes of all tasks of a round.
    touched
        Rows that each minibatch accesses; None: all.
    """

    name: str
    table: NDArray[Any]
    bounds: NDArray[np.int64]
    aggregation: Aggregation
    touched: TouchedRows | None

    @property
    def columns(self) -> int:
        """Number of elements in a row."""
        return self.table.size // max(len(self.table), 1)

    @property
    def flat(self) -> NDArray[Any]:
        """The table with each row flattened to one dimension."""
        return self.table.reshape(len(self.table), self.columns)

    @property
    def is_packed(self) -> bool:
        """Whether all numbers are sent, regardless of rows: then the parameter server uses long rows of its own."""
        return self.touched is None and isinstance(self.aggregation, str)

    @property
    def shape(self) -> TableFormat:
        """Table format for the parameter server; packed rows may extend beyond the last number."""
        if not self.is_packed:
            return TableFormat(len(self.table), self.columns, self.table.dtype)
        columns = max(1, min(-(-self.table.size // (len(self.bounds) - 1)), _LONGEST_ROW))
        return TableFormat(-(-self.table.size // columns), columns, self.table.dtype)

    def rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the parameter server that some minibatches need."""
        return np.arange(self.shape.rows) if self.touched is None else self.touched.of(numbers)

    def weights(self, participants: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weight of one task's changes in each round, given the number of participants."""
        is_mean = self.aggregation == "average"
        return (1 / participants if is_mean else np.ones(len(participants))).astype(self.table.dtype)

    def combine(self, participants: NDArray[np.int64]) -> Combine | None:
        """Return the function that servers apply to the changes of a round; None if they are summed."""
        function = self.aggregation
        if isinstance(function, str):
            return None

        def combine(clock: int, deltas: NDArray[Any]) -> NDArray[Any]:
            absent = int(participants[clock]) - len(deltas)  # tasks that touched no row of this server
            stacked = np.concatenate([deltas, np.zeros((absent, *deltas.shape[1:]), deltas.dtype)])
            combined = np.asarray(function(stacked.reshape(*stacked.shape[:2], *self.table.shape[1:])))
            wanted = (deltas.shape[1], *self.table.shape[1:])
            if combined.shape != wanted:
                raise ArgumentError(
                    f"the aggregation of {self.name!r} returned {combined.shape} for {len(stacked)} changes of shape "
                    f"{wanted}: it must combine them along the first axis"
                )
            return combined.reshape(deltas.shape[1:]).astype(deltas.dtype)

        return combine


def share(parameter: Parameter, workers: int, participants: NDArray[np.int64]) -> SharedTable:
    """Prepare a copy of a table of a single node for compiled rounds."""
    flat, touched = parameter.flat, parameter.touched
    none = np.empty(0, np.int64)
    return SharedTable(
        flat.copy(),
        np.zeros((workers, *flat.shape), flat.dtype),
        parameter.weights(participants),
        none if touched is None else touched.offsets,  # on a single node, minibatches are numbered from 0
        none if touched is None else touched.rows,
    )


class Replica:
    """A worker's replica of a parameter.

    Attributes
    ----------
    storage
        Array (1, rows, …). Rows that no minibatch accesses take no memory.
    """

    def __init__(self, parameter: Parameter, endpoint: Endpoint, worker: int, is_bounded: bool):
        self._parameter = parameter
        self._endpoint = endpoint
        self._worker = worker
        self._is_bounded = is_bounded
        shape, table = parameter.shape, parameter.table
        self._flat = np.zeros((shape.rows, shape.columns), table.dtype)
        self.storage = self._flat.reshape(-1)[: table.size].reshape(1, *table.shape)
        self._rows = np.empty(0, np.int64)
        self._start = np.empty((0, shape.columns), table.dtype)

    def pull(self, numbers: NDArray[np.int64]) -> None:
        """Read the rows that some minibatches need."""
        if self._parameter.touched is not None or not len(self._rows):
            self._rows = self._parameter.rows_of(numbers)
            self._start = np.empty((len(self._rows), self._flat.shape[1]), self._flat.dtype)
        self._endpoint.get(self._worker, self._rows, self._start)
        scatter(self._flat, self._rows, self._start)

    def push(self, weight: Any) -> None:
        """Send the changes since `pull`, multiplied by a weight."""
        deltas = np.empty_like(self._start)
        _changes(self._flat, self._rows, self._start, weight, deltas)
        if self._is_bounded and not np.isfinite(deltas).all():
            raise BodyError(
                f"changes of {self._parameter.name!r} are infinite or not a number, which no bound allows: "
                "a smaller learning rate may help"
            )
        self._endpoint.inc(self._worker, self._rows, deltas)


@njit(nogil=True, cache=True)
def _changes(values, rows, start, weight, out):  # type: ignore[no-untyped-def]
    """out[i] = weight · (values[rows[i]] − start[i])."""
    for i in range(len(rows)):
        for column in range(out.shape[1]):
            out[i, column] = weight * (values[rows[i], column] - start[i, column])


@dataclass(frozen=True)
class Exchange:
    """Description of a run, the same for all workers.

    Attributes
    ----------
    minibatches
        The minibatches of all workers; here, workers that share a replica count as one.
    lanes
        Number of workers that share a replica: under `Hybrid` the threads of a node, otherwise 1.
    consistency
        The consistency model.
    parameters
        The written tables.
    run
        Called as `run(replicas, workers, clock)`: each of the workers, which share the replicas, runs its minibatch of
        this clock.
    turns
        What a replica holds while it runs: with BSP a node may have more of them than threads.
    """

    minibatches: Minibatches
    lanes: int
    consistency: Consistency
    parameters: Sequence[Parameter]
    run: Callable[[list[Replica], range, int], None]
    turns: threading.Semaphore

    @property
    def workers(self) -> int:
        """Number of replicas."""
        return self.minibatches.workers // self.lanes

    @cached_property
    def participants(self) -> NDArray[np.int64]:
        """Return the number of participants in each round."""
        return self.minibatches.participants(self.lanes)


def exchange(node: Node, what: Exchange) -> tuple[dict[int, WorkerTimes], list[NDArray[np.int64]]]:
    """Run all minibatches; the parameters are updated once all workers have ended (a collective).

    Returns
    -------
    Times by number of this node's workers, and staleness histograms by parameter.
    """
    workers = np.diff(what.minibatches.worker_bounds(node.size)) // what.lanes
    node_of = tuple(np.repeat(np.arange(node.size), workers).tolist())
    own = [worker for worker, place in enumerate(node_of) if place == node.rank]
    stores, endpoints = [], []
    for number, parameter in enumerate(what.parameters):
        store = DenseRows(_deal(node, parameter))
        combine = parameter.combine(what.participants)
        client = Client(number, parameter.shape, node.size, own, what.workers, what.consistency)
        server = Server(number, store, node.size, node_of, what.consistency, combine)
        stores.append(store)
        endpoints.append(Endpoint(node, client, server))
    times = WorkerThreads(node, endpoints, own, lambda worker: _work(what, endpoints, worker)).run()
    for parameter, store in zip(what.parameters, stores, strict=True):
        _collect(node, parameter, store.values)
    return times, [endpoint.histogram for endpoint in endpoints]


def _work(what: Exchange, endpoints: Sequence[Endpoint], worker: int) -> WorkerTimes:
    """Run one worker."""
    is_bounded = what.consistency.bound(0) < np.inf
    replicas = [
        Replica(parameter, endpoint, worker, is_bounded)
        for parameter, endpoint in zip(what.parameters, endpoints, strict=True)
    ]
    weights = [parameter.weights(what.participants) for parameter in what.parameters]
    sharing = range(worker * what.lanes, (worker + 1) * what.lanes)
    orders = [what.minibatches.order(one) for one in sharing]
    begin, computing = time.perf_counter(), 0.0
    for clock in range(max(map(len, orders))):
        numbers = np.array([order[clock] for order in orders if clock < len(order)])
        for replica in replicas:
            replica.pull(numbers)
        with what.turns:
            start = time.perf_counter()
            what.run(replicas, sharing, clock)
            computing += time.perf_counter() - start
        for replica, weight in zip(replicas, weights, strict=True):
            replica.push(weight[clock])
        for endpoint in endpoints:
            endpoint.clock(worker)
    return WorkerTimes(computing, time.perf_counter() - begin - computing)


def _deal(node: Node, parameter: Parameter) -> NDArray[Any]:
    """Return this node's shard for the parameter server, which keeps row r on node r mod nodes (a collective)."""
    flat, low, high = parameter.flat, parameter.bounds[node.rank], parameter.bounds[node.rank + 1]
    if parameter.is_packed:
        packed = np.zeros((parameter.shape.rows, parameter.shape.columns), flat.dtype)
        packed.reshape(-1)[: flat.size] = np.concatenate(node.comm.allgather(flat[low:high])).reshape(-1)
        return packed[node.rank :: node.size].copy()
    places = len(range(node.rank, len(flat), node.size))
    values = np.empty((places, flat.shape[1]), flat.dtype)
    sent = [np.ascontiguousarray(flat[low + (to - low) % node.size : high : node.size]) for to in range(node.size)]
    for source, part in enumerate(node.comm.alltoall(sent)):
        values[_places(node, parameter, source, node.rank)] = part
    return values


def _collect(node: Node, parameter: Parameter, values: NDArray[Any]) -> None:
    """Send the rows of a shard to the nodes that hold them in the table (a collective)."""
    flat, low, high = parameter.flat, parameter.bounds[node.rank], parameter.bounds[node.rank + 1]
    if parameter.is_packed:
        packed = np.empty((parameter.shape.rows, parameter.shape.columns), flat.dtype)
        for source, part in enumerate(node.comm.allgather(values)):
            packed[source :: node.size] = part
        flat[low:high] = packed.reshape(-1)[: flat.size].reshape(flat.shape)[low:high]
        return
    sent = [values[_places(node, parameter, to, node.rank)] for to in range(node.size)]
    for source, part in enumerate(node.comm.alltoall(sent)):
        flat[low + (source - low) % node.size : high : node.size] = part


def _places(node: Node, parameter: Parameter, holder: int, server: int) -> slice:
    """Return the places on a server of the rows that a node holds in the table."""
    low, high = int(parameter.bounds[holder]), int(parameter.bounds[holder + 1])
    return slice(-((server - low) // node.size), -((server - high) // node.size))
