"""One node's part of a plan: blocks are received and sent while its threads compute (thesis §4.2).

The arrival of a block makes jobs ready; when the last job on this node that uses it has ended, it is forwarded
immediately. The plan fixes the order of the jobs that use a block, so timing affects only speed, and a loop needs no
barrier except at its end (*macro synchronization*).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Comm
from strads.dds.shard import Shard
from strads.engine.plans.arrivals import Arrivals
from strads.engine.plans.job_pool import JobPool, arrive, stop
from strads.engine.plans.replicas import Replicas
from strads.schedule.nodes.placement import Move, NodePlan

# Attempts of a thread to take a job before it polls for messages.
_PATIENCE, _PATIENCE_ALONE = 2_000, 64

_ROWS = 16  # lowest tag of rows in transit


class TransferBuffer:
    """The memory of the rows of one move: a part of the table itself, or a copy if the rows are scattered."""

    def __init__(self, move: Move, shard: Shard):
        self.move = move
        values, rows = shard.value_rows(move.rows)
        self._values = values
        self._rows = rows
        self._copy = None if isinstance(rows, slice) else np.empty((len(rows), *values.shape[1:]), values.dtype)

    @property
    def memory(self) -> NDArray[Any]:
        """The memory to send or receive."""
        return self._values[self._rows] if self._copy is None else self._copy

    def load(self) -> NDArray[Any]:
        """Return the current contents of the rows."""
        if self._copy is not None:
            self._copy[...] = self._values[self._rows]
        return self.memory

    def unload(self) -> None:
        """Copy received rows into the table."""
        if self._copy is not None:
            self._values[self._rows] = self._copy


class NodeTransfers:
    """Departures, arrivals and barriers of one node; used for one execution of its plan.

    Parameters
    ----------
    part
        This node's part of the plan.
    departures, arrivals
        The memory of its moves, in order.
    replicas
        Relaxed tables, summed at barriers.
    comm
        Connection to the other nodes.
    threads
        Number of threads of this node.

    Attributes
    ----------
    patience
        Attempts of a thread to take a job before it polls for messages.
    arrived : (arrivals,) bool
        Whether each of the arrivals has taken place.
    """

    def __init__(
        self,
        part: NodePlan,
        departures: Sequence[TransferBuffer],
        arrivals: Sequence[TransferBuffer],
        replicas: Sequence[Replicas],
        comm: Comm,
        threads: int,
    ):
        self.patience = _PATIENCE if threads > 1 else _PATIENCE_ALONE
        self._part = part
        self._departures = departures
        self._arrivals = arrivals
        self._replicas = replicas
        self._comm = comm
        self._pool: JobPool | None = None
        self._waiting = Arrivals(part, comm, threads, lambda move: "rows")
        self.arrived = self._waiting.arrived

    def open(self, pool: JobPool) -> None:
        """Provide the memory for all arrivals, before the first job."""
        self._pool = pool
        first = self._part.plan.jobs - len(self._arrivals)
        for number, buffer in enumerate(self._arrivals):
            self._comm.expect(
                buffer.memory,
                buffer.move.source,
                _ROWS + buffer.move.number,
                on_arrival=partial(self._receive, first + number, number),
            )

    def _receive(self, job: int, number: int) -> None:
        """Called by the receiving thread; jobs that waited for the rows become ready immediately."""
        self._arrivals[number].unload()
        self._waiting.note(number)
        assert self._pool is not None
        arrive(self._pool, job)

    def serve(self, job: int) -> None:
        """Perform what an empty job stands for: send rows, or join the other nodes at a barrier."""
        if job < len(self._departures):
            buffer = self._departures[job]
            self._comm.put(buffer.load(), buffer.move.target, _ROWS + buffer.move.number)
            self._comm.progress()
        else:
            self._comm.barrier()
            for replica in self._replicas:
                replica.synchronize()

    def idle(self) -> None:
        """Wait for messages from other nodes, up to the time limit."""
        assert self._pool is not None
        self._waiting.wait(self._pool)

    def halt(self) -> None:
        """Stop the threads after a few more tasks: another node has failed."""
        if self._pool is not None:
            stop(self._pool)
