"""Workers of a parameter server, run on all nodes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.checkpoints import Load, Operator, Save, current_session, perform
from strads.cluster import Node
from strads.cluster.comm import Traffic
from strads.cluster.cores import check_count
from strads.cluster.driver import check_driver
from strads.engine.ps.client import Client
from strads.engine.ps.execution import Endpoint, WorkerThreads
from strads.engine.ps.profile import StalenessProfile
from strads.engine.ps.server import Server
from strads.engine.ps.table_format import TableFormat
from strads.errors import ArgumentError
from strads.ps.table import Table
from strads.ps.worker_table import WorkerTable
from strads.schedule.consistency import Consistency
from strads.schedule.nodes.workers import data_for_node, place_workers

_MAX_BYTES = 1 << 20  # of an array that a worker returns, for a checkpoint to hold it


class Worker:
    """Handle passed to a worker.

    Attributes
    ----------
    number, count
        Number of this worker, from 0, and the number of workers.
    data
        This worker's data, as given to `run`.
    """

    def __init__(self, number: int, count: int, data: Any, tables: Sequence[WorkerTable]):
        self.number = number
        self.count = count
        self.data = data
        self._tables = tables

    def clock(self) -> None:
        """Send the updates of all tables, and advance the clock of each."""
        for table in self._tables:
            table.clock()


@dataclass(frozen=True)
class RunStatistics:
    """Results and statistics of a run.

    Attributes
    ----------
    values
        Return value of the program, by worker.
    seconds
        Total elapsed time.
    computing, communicating
        Seconds that each worker spent in the program, and in `get`, `inc` and `clock`.
    bytes_sent, messages_sent
        Sent by each node to others.
    """

    values: list[Any]
    seconds: float
    computing: list[float]
    communicating: list[float]
    bytes_sent: list[int]
    messages_sent: list[int]


def run(
    program: Callable[..., Any],
    *arguments: Any,
    workers: int | None = None,
    data: Sequence[Any] | Callable[[int], Any] | None = None,
) -> RunStatistics:
    """Run `program(worker, *arguments)` for each worker, on threads of all nodes.

    Parameters
    ----------
    program
        A function; its first argument is a `Worker`. Tables among the other arguments become `WorkerTable`. When it
        returns, its remaining updates are sent, and no other worker waits for this one any more.
    *arguments
        Arguments common to all workers.
    workers
        Number of workers; by default one per thread of each node.
    data
        The data of each worker (`worker.data`), or a function of the worker's number that creates them on its node.

    Returns
    -------
    RunStatistics
        What the workers returned, and timings. `staleness` of each table is replaced.

    Raises
    ------
    The first exception of a worker.
    """
    check_driver()
    runtime = cluster.current()
    count = runtime.cluster.size * runtime.threads if workers is None else check_count("workers", workers)
    if data is not None and not callable(data) and len(data) != count:
        raise ArgumentError(f"data for {len(data)} workers were given, but there are {count}")
    if any(isinstance(item, Table) for value in arguments if isinstance(value, tuple | list) for item in value):
        raise ArgumentError("a table is inside a tuple or list: pass each as a separate argument")
    tables = list({id(table): table for table in arguments if isinstance(table, Table)}.values())
    if any(table._cluster is not runtime.cluster for table in tables):
        raise ArgumentError("a table was made before strads.init: its nodes are gone")

    def run_all() -> RunStatistics:
        return _run(program, arguments, tables, count, data)

    if current_session() is None:
        return run_all()

    def signature() -> Any:
        return program, count, [_described(value) for value in arguments], data

    name = f"ps.run {getattr(program, '__name__', type(program).__name__)}"
    pack, unpack = partial(_pack, tables), partial(_unpack, tables)
    return perform(Operator(name, run_all, signature, tables, changes_arguments=True, pack=pack, unpack=unpack))


def _described(value: Any) -> Any:
    return (value.shape, value.dtype, repr(value.consistency)) if isinstance(value, Table) else value


def _pack(tables: Sequence[Table], statistics: RunStatistics) -> Any:
    """Return the tree of a run's statistics, if the workers returned what a checkpoint can hold."""
    return Save(inline=_MAX_BYTES)([asdict(statistics), [table.staleness for table in tables]])


def _unpack(tables: Sequence[Table], tree: Any) -> RunStatistics:
    fields, profiles = Load(classes=[StalenessProfile])(tree)
    for table, profile in zip(tables, profiles, strict=True):
        table.staleness = profile
    return RunStatistics(**fields)


def _run(
    program: Callable[..., Any], arguments: Sequence[Any], tables: Sequence[Table], count: int, data: Any
) -> RunStatistics:
    """Run the workers."""
    runtime = cluster.current()
    node_of = tuple(place_workers(count, runtime.cluster.size))
    known = [(table._name, table._format, table.consistency) for table in tables]
    passed = [_Place(tables.index(value)) if isinstance(value, Table) else value for value in arguments]
    each = [(data if callable(data) else data_for_node(data, node_of, rank),) for rank in range(runtime.cluster.size)]
    start = time.perf_counter()
    outcomes = runtime.run(_run_workers, node_of, known, program, passed, each=each)
    seconds = time.perf_counter() - start
    for number, table in enumerate(tables):
        table.staleness = StalenessProfile.of(sum(histograms[number] for _, histograms, _ in outcomes))
        table.version += 1
    ended = {worker: end for of_node, _, _ in outcomes for worker, end in of_node.items()}
    ends = [ended[worker] for worker in range(count)]
    return RunStatistics(
        [end.value for end in ends],
        seconds,
        [end.computing for end in ends],
        [end.communicating for end in ends],
        [traffic.bytes_sent for *_, traffic in outcomes],
        [traffic.messages_sent for *_, traffic in outcomes],
    )


@dataclass(frozen=True)
class _Place:
    """Placeholder for a table among the arguments."""

    number: int


@dataclass(frozen=True)
class _End:
    """How a worker ended."""

    value: Any
    computing: float
    communicating: float


def _run_workers(
    node: Node,
    node_of: tuple[int, ...],
    known: list[tuple[str, TableFormat, Consistency]],
    program: Callable[..., Any],
    arguments: Sequence[Any],
    data: Any,
) -> tuple[dict[int, _End], list[NDArray[np.int64]], Traffic]:
    """Run the workers of this node; returns how each ended, the staleness in each table, and what was sent."""
    own = [worker for worker, place in enumerate(node_of) if place == node.rank]
    sent = node.comm.traffic.copy()
    endpoints = []
    for number, (name, format, rules) in enumerate(known):
        client = Client(number, format, node.size, own, len(node_of), rules)
        server = Server(number, node.store[name], node.size, node_of, rules)
        endpoints.append(Endpoint(node, client, server))

    def work(number: int) -> _End:
        tables = [
            WorkerTable(endpoint, format, number) for endpoint, (_, format, _) in zip(endpoints, known, strict=True)
        ]
        content = data(number) if callable(data) else data.get(number)
        worker = Worker(number, len(node_of), content, tables)
        passed = [tables[value.number] if isinstance(value, _Place) else value for value in arguments]
        start = time.perf_counter()
        value = program(worker, *passed)
        seconds, communicating = time.perf_counter() - start, sum(table.seconds for table in tables)
        return _End(value, seconds - communicating, communicating)

    ends = WorkerThreads(node, endpoints, own, work).run()
    return ends, [endpoint.histogram for endpoint in endpoints], node.comm.traffic.since(sent)
