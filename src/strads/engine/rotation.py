"""One node's part of a plan: blocks come from and go to other nodes while its threads compute (thesis §4.2).

A block that arrives makes jobs ready; when the last job here that uses it has ended, it is forwarded at once. The
plan fixes the order of the jobs that use a block, so timing decides nothing but speed, and a loop needs no barrier
but its end (*macro synchronization*).
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Comm
from strads.dds.shard import Shard
from strads.engine.job_pool import JobPool, arrive, stop
from strads.engine.replicas import Replicas
from strads.schedule.placement import Move, NodePlan

PATIENCE = 2_000  # attempts to find a job before a thread looks after the messages
_REST = 2e-4  # seconds that an idle thread waits for news at a time

_ROWS = 16  # lowest tag of rows on their way


class Cargo:
    """The memory of the rows of one move: a part of the table itself, or of scattered rows a copy."""

    def __init__(self, move: Move, shard: Shard):
        self.move = move
        values, rows = shard.value_rows(move.rows)
        self._values = values
        self._rows = rows
        self._copy = None if isinstance(rows, slice) else np.empty((len(rows), *values.shape[1:]), values.dtype)

    @property
    def memory(self) -> NDArray[Any]:
        """What travels."""
        return self._values[self._rows] if self._copy is None else self._copy

    def load(self) -> NDArray[Any]:
        """Return the rows as they are now."""
        if self._copy is not None:
            self._copy[...] = self._values[self._rows]
        return self.memory

    def unload(self) -> None:
        """Put rows that have arrived into their places."""
        if self._copy is not None:
            self._values[self._rows] = self._copy


class NodeStation:
    """Departures, arrivals and barriers of one node; used for one execution of its plan.

    Parameters
    ----------
    part
        What this node does.
    departures, arrivals
        The cargo of its moves, in their order.
    replicas
        Relaxed tables, summed at barriers.
    comm
        The other nodes.
    """

    def __init__(
        self,
        part: NodePlan,
        departures: Sequence[Cargo],
        arrivals: Sequence[Cargo],
        replicas: Sequence[Replicas],
        comm: Comm,
    ):
        self._part = part
        self._departures = departures
        self._arrivals = arrivals
        self._replicas = replicas
        self._comm = comm
        self._pool: JobPool | None = None
        self._news = time.monotonic()
        self.arrived = np.zeros(len(arrivals), bool)

    def open(self, pool: JobPool) -> None:
        """Name the memory for all that will arrive."""
        self._pool = pool
        first = self._part.plan.jobs - len(self._arrivals)
        for number, cargo in enumerate(self._arrivals):
            self._comm.expect(
                cargo.memory,
                cargo.move.source,
                _ROWS + cargo.move.number,
                on_arrival=partial(self._receive, first + number, number),
            )

    def _receive(self, job: int, number: int) -> None:
        """Called by whoever brings the rows in; jobs that waited for them are ready at once."""
        self._arrivals[number].unload()
        self.arrived[number] = True
        self._news = time.monotonic()
        assert self._pool is not None
        arrive(self._pool, job)

    def serve(self, job: int) -> None:
        """Send rows away, or meet the other nodes at a barrier."""
        if job < len(self._departures):
            cargo = self._departures[job]
            self._comm.put(cargo.load(), cargo.move.target, _ROWS + cargo.move.number)
            self._comm.progress()
        else:
            self._comm.barrier()
            for replica in self._replicas:
                replica.synchronize()
        self._news = time.monotonic()

    def idle(self) -> None:
        """Wait for news from other nodes, up to the limit.

        Raises
        ------
        NodeFailure
            When nothing has arrived for `timeout` seconds though something is missing.
        """
        self._comm.flush()  # who waits may be waited for
        self._comm.progress(_REST)
        missing = np.flatnonzero(~self.arrived)
        if len(missing) and time.monotonic() - self._news > self._comm.timeout:
            source = self._arrivals[int(missing[0])].move.source
            raise self._comm.timed_out(f"rows from {self._comm.name(source)}", source)

    def halt(self) -> None:
        """Stop the threads after a few more tasks: another node has failed."""
        if self._pool is not None:
            stop(self._pool)
