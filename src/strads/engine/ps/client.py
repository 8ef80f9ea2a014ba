"""A node's side of a table: a state machine (decision 15) from workers' reads and updates to messages to servers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.engine.ps.cache import Cache
from strads.engine.ps.in_transit import InTransit
from strads.engine.ps.messages import (
    RETIRED,
    Forget,
    Read,
    Result,
    RowNumbers,
    Rows,
    Seen,
    ToClient,
    ToServer,
    Update,
    Values,
)
from strads.engine.ps.own_writes import OwnWrites
from strads.engine.ps.profile import REACH
from strads.engine.ps.table_format import PendingUpdates, TableFormat
from strads.errors import ArgumentError
from strads.schedule.consistency import Consistency, Push


class Lookup:
    """A worker's read of some rows.

    Attributes
    ----------
    worker
        Number of the worker.
    clock
        Its clock when it began to read.
    required
        Minimum clock of the rows, see `Consistency.required`.
    rows
        Row numbers, which may repeat.
    found, asked
        Arrays (rows,): whether each row is in `out`, and whether a server has been asked for it.
    out
        Array (rows, columns), filled as rows arrive.
    missing
        Number of rows that have not arrived yet.
    """

    def __init__(self, worker: int, clock: int, required: int, rows: RowNumbers, out: Result):
        self.worker = worker
        self.clock = clock
        self.required = required
        self.rows = rows
        self.out = out
        self.missing = len(rows)
        self.found = np.zeros(len(rows), np.bool_)
        self.asked = np.zeros(len(rows), np.bool_)
        self.own_clocks = np.zeros(len(rows), np.int64)  # clock before which the reader's own updates are in each row


@dataclass(eq=False)
class _Worker:
    """A client's state for one of its workers."""

    pending: PendingUpdates
    transit: InTransit | None  # if the model has a bound
    own: OwnWrites | None
    clock: int = 0
    is_draining: bool = False
    asked: int = -1  # clock at which it last asked for permission to write


class Client:
    """One node's side of a table, in one run.

    Parameters
    ----------
    table
        Number of the table.
    format
        Format of the table.
    shards
        Number of shards.
    workers
        Workers of this node.
    count
        Number of workers on all nodes.
    consistency
        The consistency model.

    Attributes
    ----------
    outbox
        Messages to send: (shard, message). The sender empties it.
    histogram
        Clock differentials of reads so far, from -REACH to REACH: of all workers' updates, and of the newest.
    """

    def __init__(
        self, table: int, format: TableFormat, shards: int, workers: Sequence[int], count: int, consistency: Consistency
    ):
        self._table = table
        self._shards = shards
        self._rules = consistency
        self._share = 1 / count
        self.outbox: list[tuple[int, ToServer]] = []
        self.histogram = np.zeros((2, 2 * REACH + 1), np.int64)
        self._cache = Cache(format.rows, format.slots, shards, count)
        self._store = format.make_rows(format.slots)
        self._slowest = 0  # latest known clock of the slowest worker
        self._lookups: list[Lookup] = []
        self._tickets: dict[int, tuple[Lookup, NDArray[np.int64], NDArray[np.int64]]] = {}
        self._next_ticket = 0
        self._place_of = np.zeros(format.rows, np.int32)  # scratch, 0 between uses; takes memory only where written
        bounded = consistency.bound(0) < np.inf
        self._cache_bytes = format.cache_bytes if format.sparse else None
        self._workers = {
            worker: _Worker(
                format.make_pending(),
                InTransit(format.rows, format.columns, format.dtype) if bounded else None,
                OwnWrites(self._store.accumulate) if format.read_my_writes else None,
            )
            for worker in workers
        }

    def read(self, worker: int, rows: RowNumbers, out: Result) -> Lookup:
        """Begin to read rows, which may repeat, into `out`; the read is complete when none is missing."""
        clock = self._workers[worker].clock
        lookup = Lookup(worker, clock, self._rules.required(clock), rows, out)
        self._look(lookup)
        if lookup.missing:
            self._lookups.append(lookup)
        return lookup

    def _look(self, lookup: Lookup) -> None:
        stamps = np.full(len(lookup.rows), -1, np.int64)
        slots, lookup.missing = self._cache.find(lookup.rows, lookup.required, lookup.found, stamps)
        self._store.read_into(slots, lookup.out)
        self._account(lookup, stamps)
        if lookup.missing:
            wanted = slots == -2
            if self._rules.push is not Push.CLOCK:  # otherwise the next push refreshes all cached rows
                wanted |= slots == -1
            self._ask(lookup, np.flatnonzero(wanted & ~lookup.asked))

    def _ask(self, lookup: Lookup, positions: NDArray[np.int64]) -> None:
        """Ask the servers for the rows at positions of a lookup."""
        if not len(positions):
            return
        lookup.asked[positions] = True
        order, rows, places, bounds, counts = _by_shard(lookup.rows[positions], self._shards, self._place_of)
        for shard in range(self._shards):
            start, end = bounds[shard], bounds[shard + 1]
            if end > start:
                wanted = rows[start : start + counts[shard]]
                self._tickets[self._next_ticket] = lookup, positions[order[start:end]], places[start:end]
                self.outbox.append((shard, Read(self._table, self._next_ticket, wanted, lookup.required)))
                self._next_ticket += 1

    def _account(self, lookup: Lookup, stamps: NDArray[np.int64]) -> None:
        """Record the staleness of the rows just found."""
        self._cache.count_reads(stamps, lookup.clock, self.histogram)
        worker = self._workers[lookup.worker]
        if worker.own is not None:
            new = np.flatnonzero(stamps >= 0)
            lookup.own_clocks[new] = self._cache.stamps.clocks[stamps[new], lookup.worker]
            if lookup.missing == 0:
                worker.own.overlay(lookup.rows, lookup.own_clocks, lookup.out)
                worker.pending.overlay(lookup.rows, lookup.out)

    def receive(self, shard: int, message: ToClient) -> None:
        """Process a message of a server."""
        if isinstance(message, Rows):
            self._arrived(shard, message)
        else:
            self._visible(shard, self._workers[message.worker], message.number)

    def _visible(self, shard: int, state: _Worker, number: int) -> None:
        assert state.transit is not None  # servers confirm numbered updates only
        state.transit.visible(shard, number)
        if state.transit.is_empty:
            if state.is_draining and state.own is not None:
                state.own.clear()
            state.is_draining = False
            if not state.pending.count:
                state.transit.reset()

    def _arrived(self, shard: int, message: Rows) -> None:
        self._slowest = max(self._slowest, int(message.clocks.min()))
        stamp = self._cache.stamps.add(message.clocks)
        if message.ticket >= 0:
            self._answer(message, stamp)
            slots, evicted = self._cache.place(message.rows, stamp)
            self._forget(evicted)
        else:
            slots = self._cache.pushed(shard, message.rows, stamp)
        self._store.write(slots, message.values)
        self._make_room()
        if message.number >= 0:
            self.outbox.append((shard, Seen(self._table, message.number)))
        for lookup in self._lookups:
            if lookup.missing:
                self._look(lookup)
        self._lookups = [lookup for lookup in self._lookups if lookup.missing]

    def _answer(self, message: Rows, stamp: int) -> None:
        """Pass rows to the lookup that waits for them, even if the cache has no room."""
        if message.ticket not in self._tickets:
            return
        lookup, positions, places = self._tickets.pop(message.ticket)
        new = ~lookup.found[positions]
        if not new.all():  # the others have meanwhile been found in the cache
            positions, places = positions[new], places[new]
            if not len(positions):
                return
        lookup.out[positions] = message.values[places]
        lookup.found[positions] = True
        lookup.missing -= len(positions)
        stamps = np.full(len(lookup.rows), -1, np.int64)
        stamps[positions] = stamp
        self._account(lookup, stamps)

    def _make_room(self) -> None:
        """Evict sparse rows until the rest fits; dense rows never exceed the limit."""
        while self._cache_bytes is not None and self._store.nbytes > self._cache_bytes and self._cache.size:
            slots, evicted = self._cache.evict(-(-self._cache.size // 8))
            self._store.clear(slots)
            self._forget(evicted)

    def _forget(self, rows: RowNumbers) -> None:
        """Tell the servers which rows were evicted, except those requested again, whose answer arrives later."""
        if self._rules.push is Push.NEVER or not len(rows):
            return
        for lookup, positions, _ in self._tickets.values():
            rows = rows[~np.isin(rows, lookup.rows[positions])]
        for shard in range(self._shards):
            of_shard = rows[rows % self._shards == shard]
            if len(of_shard):
                self.outbox.append((shard, Forget(self._table, of_shard)))

    def add(self, worker: int, rows: RowNumbers, deltas: Values) -> Values | None:
        """Accept a worker's updates of rows, which may repeat.

        Returns
        -------
        None, or the part that could not be accepted: to be passed again after the next arrival.

        Raises
        ------
        ArgumentError
            If it can never be accepted, because the bound leaves no room for an integer.
        """
        state = self._workers[worker]
        if self._slowest < self._rules.required(state.clock):
            if state.asked < state.clock:
                state.asked = state.clock
                self._ask_for_clock(worker, state.clock)
            return deltas
        if state.transit is None:
            state.pending.add(rows, deltas)
            return None
        if state.is_draining:
            return deltas
        taken, rest = state.transit.within(rows, deltas, self._bound(state))
        if taken.any():
            state.pending.add(rows, taken)
            state.transit.add(rows, taken)
        if rest is not None:
            if not state.pending.count and state.transit.is_empty:
                raise ArgumentError(
                    f"each worker may have {self._bound(state):.3g} in transit, which is less than 1, and the table "
                    "holds whole numbers: give VAP a larger v0, or a decay of 0"
                )
            state.is_draining = True  # until all sent updates are visible
            self._send(worker, state.clock)
        return rest

    def _bound(self, state: _Worker) -> float:
        """Return the bound on one worker's updates in transit."""
        return self._rules.bound(state.clock) * self._share

    def _ask_for_clock(self, worker: int, clock: int) -> None:
        """Ask for notification when the slowest worker has caught up enough; any shard knows."""
        none = np.empty(0, np.int64)
        read = Read(self._table, self._next_ticket, none, self._rules.required(clock))
        self.outbox.append((worker % self._shards, read))
        self._next_ticket += 1  # belongs to no lookup

    def advance(self, worker: int) -> None:
        """Send a worker's updates, and advance its clock."""
        state = self._workers[worker]
        self._send(worker, state.clock + 1)

    def retire(self, worker: int) -> None:
        """Send a worker's last updates after it has ended."""
        self._send(worker, RETIRED)

    def is_within_value_bound(self, worker: int) -> bool:
        """Whether a worker's updates in transit are within the bound of VAP; True under models without one."""
        state = self._workers[worker]
        return state.transit is None or state.transit.largest <= self._bound(state)

    def _send(self, worker: int, after: int) -> None:
        state = self._workers[worker]
        rows, deltas = state.pending.take()
        if state.own is not None:
            held = np.maximum(self._cache.holds_of(worker), self._rules.required(after))
            state.own.sent(state.clock, rows, deltas, held)
        for shard in range(self._shards):
            which = slice(None) if self._shards == 1 else np.flatnonzero(rows % self._shards == shard)
            part, values = rows[which], deltas[which]
            if len(part) or after != state.clock:
                number = -1 if state.transit is None or not len(part) else state.transit.sent(shard, part, values)
                self.outbox.append((shard, Update(self._table, worker, state.clock, after, part, values, number)))
        state.clock = after


@njit(nogil=True, cache=True)
def _by_shard(rows, shards, place_of):  # type: ignore[no-untyped-def]
    """Group rows by shard, without repetitions; `place_of` is scratch memory of zeros, by row.

    Returns
    -------
    order, distinct, places, bounds, counts
        With `part = slice(bounds[s], bounds[s + 1])`, shard s has `rows[order[part]]`. The first `counts[s]` of
        `distinct[part]` are the rows to request, and `places[part]` maps each of `order[part]` to one of these.
    """
    bounds, counts, filled = np.zeros(shards + 1, np.int64), np.zeros(shards, np.int64), np.zeros(shards, np.int64)
    for row in rows:
        bounds[row % shards + 1] += 1
    for shard in range(shards):
        bounds[shard + 1] += bounds[shard]
    order, distinct, places = np.empty_like(rows), np.empty_like(rows), np.empty_like(rows)
    for i in range(len(rows)):
        shard = rows[i] % shards
        if place_of[rows[i]] == 0:
            distinct[bounds[shard] + counts[shard]] = rows[i]
            counts[shard] += 1
            place_of[rows[i]] = counts[shard]
        here = bounds[shard] + filled[shard]
        order[here], places[here] = i, place_of[rows[i]] - 1
        filled[shard] += 1
    for row in rows:
        place_of[row] = 0
    return order, distinct, places, bounds, counts
