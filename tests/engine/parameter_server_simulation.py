"""Random histories of a parameter server, without threads or clocks: workers take steps, messages arrive, in any order.

A table has a column for each worker and clock, and an update adds 1 to that of its worker and clock: what a row holds
tells which updates are in it.
"""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.engine.ps.client import Client, Lookup
from strads.engine.ps.server import Server
from strads.engine.ps.sparse_rows import SparseResult
from strads.engine.ps.table_format import TableFormat
from strads.ps._values import checked_values
from strads.schedule.consistency import Consistency
from strads.schedule.nodes.workers import place_workers

Script = Sequence[tuple[str, NDArray[np.int64]]]  # "get" or "inc" with rows; "clock"


class Deadlock(AssertionError):
    """Nothing can happen any more, but not all workers have ended."""


class Simulation:
    """One history.

    Parameters
    ----------
    scripts
        What each worker does.
    nodes, rows
        How many.
    consistency
        The rules.
    choose
        Called with n, returns what happens next: a number below n.
    slots
        Rows that a client can keep.
    read_my_writes, sparse
        As of the table.
    """

    def __init__(
        self,
        scripts: Sequence[Script],
        nodes: int,
        rows: int,
        consistency: Consistency,
        choose: Any,
        slots: int | None = None,
        read_my_writes: bool = False,
        sparse: bool = False,
    ):
        self.scripts = scripts
        self.rules = consistency
        self.choose = choose
        workers = len(scripts)
        self.node_of = place_workers(workers, nodes)
        self.clocks = max(sum(step == "clock" for step, _ in script) for script in scripts) + 1
        columns = workers * self.clocks
        cache = None if slots is None else slots * (columns * 8 + 17)
        self.format = TableFormat(rows, columns, np.float64, cache, read_my_writes, sparse)
        self.stores = [self.format.make_rows(len(range(node, rows, nodes))) for node in range(nodes)]
        self.servers = [Server(0, store, nodes, self.node_of, consistency) for store in self.stores]
        self.clients = [
            Client(0, self.format, nodes, [w for w in range(workers) if self.node_of[w] == node], workers, consistency)
            for node in range(nodes)
        ]
        self.made = np.zeros((rows, columns))  # all updates that workers have made
        self.at = [0] * workers  # place in the script
        self.reading: list[Lookup | None] = [None] * workers
        self.adding: list[tuple[NDArray[np.int64], Any] | None] = [None] * workers
        self.waiting = [False] * workers  # after a clock
        self.own: list[NDArray[Any]] = [np.zeros((rows, columns)) for _ in range(workers)]
        self.channels: dict[tuple[bool, int, int], deque[Any]] = {}
        self.messages = 0
        self.reads: list[tuple[int, int, NDArray[np.int64], NDArray[Any]]] = []
        self.differentials: Counter[int] = Counter()

    def run(self) -> None:
        """Let things happen until nothing can."""
        while True:
            ready = [worker for worker in range(len(self.scripts)) if self._can_step(worker)]
            full = [key for key, channel in self.channels.items() if channel]
            if not ready and not full:
                break
            chosen = self.choose(len(ready) + len(full))
            if chosen < len(ready):
                self._step(ready[chosen])
            else:
                self._arrive(full[chosen - len(ready)])
            self._send()
        unfinished = [worker for worker, script in enumerate(self.scripts) if self.at[worker] <= len(script)]
        if unfinished or not all(server.is_over for server in self.servers):
            raise Deadlock(f"{unfinished} wait for ever")

    def table(self) -> NDArray[Any]:
        """Return the rows of all shards."""
        out = np.empty_like(self.made)
        for node, store in enumerate(self.stores):
            out[node :: len(self.stores)] = self._dense(store.read(np.arange(len(store))))
        return out

    def _dense(self, values: Any) -> NDArray[Any]:
        """Return rows as an array."""
        if not self.format.sparse:
            return values
        entries = values.assembled() if isinstance(values, SparseResult) else values
        out = np.zeros((len(entries), self.format.columns))
        out[np.repeat(np.arange(len(entries)), np.diff(entries.starts)), entries.columns] = entries.values
        return out

    def _can_step(self, worker: int) -> bool:
        client = self.clients[self.node_of[worker]]
        if self.at[worker] > len(self.scripts[worker]):
            return False
        lookup = self.reading[worker]
        if lookup is not None:
            return lookup.missing == 0
        if self.waiting[worker]:
            return client.is_within_value_bound(worker)
        return self.adding[worker] is None  # what could not be added is tried again when something arrives

    def _step(self, worker: int) -> None:
        client = self.clients[self.node_of[worker]]
        lookup = self.reading[worker]
        if lookup is not None:
            values = self._dense(lookup.out)
            self.reads.append((worker, lookup.clock, lookup.rows, values))
            self.check_read(worker, lookup, values)
            self.reading[worker] = None
            return
        self.waiting[worker] = False
        script, place = self.scripts[worker], self.at[worker]
        self.at[worker] += 1
        if place == len(script):
            client.retire(worker)
            return
        step, rows = script[place]
        if step == "get":
            out = self.format.make_result(len(rows))
            if not self.format.sparse:
                out[...] = np.nan
            self.reading[worker] = client.read(worker, rows, out)
        elif step == "inc":
            deltas = np.zeros((len(rows), self.made.shape[1]))
            deltas[:, worker * self.clocks + client._workers[worker].clock] = 1
            self._add(worker, rows, checked_values(deltas, len(rows), self.format))
        else:
            client.advance(worker)
            self.waiting[worker] = True

    def _add(self, worker: int, rows: NDArray[np.int64], deltas: Any) -> None:
        rest = self.clients[self.node_of[worker]].add(worker, rows, deltas)
        taken = self._dense(deltas) - (0 if rest is None else self._dense(rest))
        np.add.at(self.made, rows, taken)
        np.add.at(self.own[worker], rows, taken)
        self.adding[worker] = None if rest is None else (rows, rest)

    def _arrive(self, key: tuple[bool, int, int]) -> None:
        to_server, sender, receiver = key
        message = self.channels[key].popleft()
        if to_server:
            self.servers[receiver].receive(sender, message)
            return
        self.clients[receiver].receive(sender, message)
        self._send()
        for worker, node in enumerate(self.node_of):
            again = self.adding[worker]
            if node == receiver and again is not None:
                self._add(worker, *again)

    def _send(self) -> None:
        for node, client in enumerate(self.clients):
            for shard, message in client.outbox:
                self.channels.setdefault((True, node, shard), deque()).append(message)
            client.outbox.clear()
        for shard, server in enumerate(self.servers):
            for node, answer in server.outbox:
                self.channels.setdefault((False, shard, node), deque()).append(answer)
            server.outbox.clear()

    def check_read(self, worker: int, lookup: Lookup, values: NDArray[Any]) -> None:
        """Called with every read that has ended."""
