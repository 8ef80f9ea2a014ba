"""A shard of a table: a state machine (decision 15) from messages of clients to messages to clients."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.engine.ps.messages import RETIRED, Forget, Read, RowNumbers, Rows, Seen, ToClient, ToServer, Update, Visible
from strads.engine.ps.table_format import RowStore
from strads.partition import distinct
from strads.schedule.consistency import Consistency, Push

Combine = Callable[[int, NDArray[Any]], NDArray[Any]]


class Server:
    """One shard's side of a table, in one run.

    Parameters
    ----------
    table
        Number of the table.
    store
        The rows of this shard: row r of the table at place r // shards.
    shards
        Number of shards.
    node_of
        Node of each worker; a client is a node.
    consistency
        The consistency model.
    combine
        Combines the updates of all workers at one clock: a function of the clock and the updates, an array (updates,
        rows, columns) with zeros in rows that an update lacks; by default they are summed. Only for models that are
        `in_order`.

    Attributes
    ----------
    outbox
        Messages to send: (client, message). The sender empties it.
    clock
        Clock of the table: that of the slowest worker.
    """

    def __init__(
        self,
        table: int,
        store: RowStore,
        shards: int,
        node_of: Sequence[int],
        consistency: Consistency,
        combine: Combine | None = None,
    ):
        self._table = table
        self._store = store
        self._shards = shards
        self._node_of = node_of
        self._rules = consistency
        self._combine = combine
        self.outbox: list[tuple[int, ToClient]] = []
        self.clock = 0
        self._clocks = np.zeros(len(node_of), np.int64)
        self._news = 0  # updates since the last push to all
        self._parked: list[tuple[int, Read]] = []
        self._held: list[Update] = []
        self._readers = {client: _Reader(np.zeros(len(store), np.bool_)) for client in sorted(set(node_of))}
        self._in_transit: dict[tuple[int, int], dict[int, int]] = {}  # (worker, number): {client: push that brings it}

    @property
    def is_over(self) -> bool:
        """Whether all workers have ended, and been notified that their updates are visible."""
        return self.clock == RETIRED and not self._in_transit

    def receive(self, client: int, message: ToServer) -> None:
        """Process a message of a client."""
        match message:
            case Read():
                self._read(client, message)
            case Update():
                self._update(message)
            case Seen():
                self._seen(client, message.number)
            case Forget():
                self._readers[client].registered[message.rows // self._shards] = False

    def _read(self, client: int, read: Read) -> None:
        if self.clock < read.required:
            self._parked.append((client, read))
            return
        if self._rules.push is not Push.NEVER:
            self._readers[client].registered[read.rows // self._shards] = True
        self._send(client, read.ticket, read.rows, -1)

    def _send(self, client: int, ticket: int, rows: RowNumbers, number: int) -> None:
        values = self._store.read(rows // self._shards)
        self.outbox.append((client, Rows(self._table, ticket, rows, values, self._clocks_within(), number)))

    def _clocks_within(self) -> NDArray[np.int64]:
        """Return, by worker, the clock before which all its updates are in the rows."""
        return np.full_like(self._clocks, self.clock) if self._rules.in_order else self._clocks.copy()

    def _update(self, update: Update) -> None:
        if len(update.rows):
            if self._rules.in_order:
                self._held.append(update)
            else:
                self._apply(update)
        self._clocks[update.worker] = update.after
        if self._rules.push is Push.UPDATE:
            self._follow(update)
            for client in self._readers:
                self._push_if_free(client)
        if (slowest := int(self._clocks.min())) > self.clock:
            self.clock = slowest
            self._advance()
        elif self._rules.push is Push.CLOCK and self._rules.pushes_between:
            self._news += 1
            if self._news * (self._rules.pushes_between + 1) >= len(self._clocks):
                self._push_to_all()

    def _apply(self, update: Update) -> None:
        places = update.rows // self._shards
        self._store.add(places, update.deltas)
        if self._rules.push is not Push.NEVER:
            for reader in self._readers.values():
                concerned = update.rows[reader.registered[places]]
                if len(concerned):
                    reader.changed.append(concerned)

    def _advance(self) -> None:
        """Apply updates and answer reads as the table's new clock allows."""
        due = [update for update in self._held if update.clock < self.clock]
        self._held = [update for update in self._held if update.clock >= self.clock]
        due.sort(key=lambda update: (update.clock, update.worker))  # stable: parts stay in order
        for clock, updates in groupby(due, key=lambda update: update.clock):
            for update in updates if self._combine is None else [self._combined(clock, list(updates))]:
                self._apply(update)
        waiting, self._parked = self._parked, []
        for client, read in waiting:
            self._read(client, read)
        if self._rules.push is Push.CLOCK and self.clock < RETIRED:
            self._push_to_all()

    def _push_to_all(self) -> None:
        """Send readers the changed rows, or only the new clocks."""
        self._news = 0
        for client, reader in self._readers.items():
            if reader.is_listening:
                self._send(client, -1, reader.take_changed(), -1)

    def _combined(self, clock: int, updates: list[Update]) -> Update:
        """Combine the updates of a clock into one."""
        assert self._combine is not None
        rows = distinct(np.concatenate([update.rows for update in updates]))
        deltas = np.zeros((len(updates), len(rows), updates[0].deltas.shape[1]), updates[0].deltas.dtype)
        for own, update in zip(deltas, updates, strict=True):
            own[np.searchsorted(rows, update.rows)] = update.deltas
        return updates[-1]._replace(rows=rows, deltas=self._combine(clock, deltas))

    def _follow(self, update: Update) -> None:
        """Record which clients must see an update before its worker is notified."""
        if update.number < 0:
            return
        concerned = {client: reader.pushes + 1 for client, reader in self._readers.items() if reader.changed}
        if concerned:
            self._in_transit[update.worker, update.number] = concerned
        else:
            self._visible(update.worker, update.number)

    def _visible(self, worker: int, number: int) -> None:
        self.outbox.append((self._node_of[worker], Visible(self._table, worker, number)))

    def _push_if_free(self, client: int) -> None:
        reader = self._readers[client]
        if reader.changed and reader.pushes == reader.seen:
            reader.pushes += 1
            self._send(client, -1, reader.take_changed(), reader.pushes)

    def _seen(self, client: int, number: int) -> None:
        self._readers[client].seen = number
        for (worker, update), concerned in list(self._in_transit.items()):
            if concerned.get(client, number + 1) <= number:
                del concerned[client]
                if not concerned:
                    del self._in_transit[worker, update]
                    self._visible(worker, update)
        self._push_if_free(client)


class _Reader:
    """A server's state for one client."""

    def __init__(self, registered: NDArray[np.bool_]):
        self.registered = registered  # by place: the client has read it
        self.changed: list[RowNumbers] = []  # rows changed since the last push to it
        self.pushes = 0
        self.seen = 0

    @property
    def is_listening(self) -> bool:
        """Whether it has read any row."""
        return bool(self.registered.any())

    def take_changed(self) -> RowNumbers:
        """Return the rows to push, and reset."""
        rows = distinct(np.concatenate(self.changed)) if self.changed else np.empty(0, np.int64)
        self.changed.clear()
        return rows
