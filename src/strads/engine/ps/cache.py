"""A client's cache of rows: which it holds, how stale they are, and which to evict (approximate LRU)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.engine.ps.messages import RETIRED, RowNumbers
from strads.engine.ps.profile import REACH

Slots = NDArray[np.int64]


class Stamps:
    """Which updates are included in the rows of a message; a stamp is kept while any of these rows is.

    Attributes
    ----------
    clocks
        Array (stamps, workers): all updates that a worker made before this clock are included.
    ages
        Smallest clock of each stamp.
    orders
        Number of the message, in order of arrival.
    references
        Reference count: rows, or shards, that have the stamp.
    hits
        Scratch counters, zero between uses.
    """

    def __init__(self, workers: int):
        self.clocks = np.zeros((16, workers), np.int64)
        self.ages = np.zeros(16, np.int64)
        self.orders = np.zeros(16, np.int64)
        self.references = np.zeros(16, np.int64)
        self.hits = np.zeros(16, np.int64)
        self._free = list(range(16))
        self._arrivals = 0

    def add(self, clocks: NDArray[np.int64]) -> int:
        """Return a new stamp."""
        if not self._free:
            self._free = np.flatnonzero(self.references == 0).tolist() or self._grow()
        stamp = self._free.pop()
        self._arrivals += 1
        self.clocks[stamp], self.ages[stamp], self.orders[stamp] = clocks, clocks.min(), self._arrivals
        return stamp

    def _grow(self) -> list[int]:
        count = len(self.ages)
        self.clocks, self.ages, self.orders, self.references, self.hits = (
            np.concatenate((kept, np.zeros_like(kept)))
            for kept in (self.clocks, self.ages, self.orders, self.references, self.hits)
        )
        return list(range(count, 2 * count))


class Cache:
    """Maps rows to slots. The client stores the rows themselves.

    Parameters
    ----------
    rows
        Number of rows of the table.
    slots
        Capacity in rows.
    shards
        Number of shards; row r belongs to shard r mod shards.
    workers
        Number of workers, whose updates the stamps track.

    Attributes
    ----------
    stamps
        The `Stamps` of the rows that are cached.
    """

    def __init__(self, rows: int, slots: int, shards: int, workers: int):
        self.stamps = Stamps(workers)
        self._slot_of = np.zeros(rows, np.int32)  # slot + 1 of each row; 0: not cached. Takes memory only where written
        self._row_of = np.empty(slots, np.int64)  # row in each slot; -1: none
        self._stamp_of = np.empty(slots, np.int64)  # stamp of the row in each slot
        self._used = np.zeros(slots, np.bool_)  # whether read since the clock hand passed
        self._pushed = np.full(shards, -1, np.int64)  # stamp of each shard's last push, valid for all its rows
        self._hand = np.zeros(3, np.int64)  # clock hand of the eviction; slots in use; rows cached

    def find(
        self, rows: RowNumbers, required: int, found: NDArray[np.bool_], stamps: NDArray[np.int64]
    ) -> tuple[Slots, int]:
        """Look up the rows not yet `found` that are at least as fresh as `required`.

        Returns
        -------
        slots
            Slot of each row that is cached and fresh enough; -1 for rows cached but too stale, -2 for rows not cached,
            -3 for rows found before.
        missing
            Number of rows not found yet.
        """
        slots = np.empty(len(rows), np.int64)
        missing = _find(
            self._slot_of, self._stamp_of, self._used, self._pushed, self.stamps.ages, self.stamps.orders,
            rows, required, found, stamps, slots,
        )  # fmt: skip
        return slots, missing

    def place(self, rows: RowNumbers, stamp: int) -> tuple[Slots, RowNumbers]:
        """Return slots to write rows to, and the rows evicted for them. Without capacity: slots -1, and all rows."""
        if not len(self._row_of):
            return np.full(len(rows), -1), rows
        slots, evicted = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        count = _place(
            self._slot_of, self._row_of, self._stamp_of, self._used, self._hand, self.stamps.references,
            rows, stamp, slots, evicted,
        )  # fmt: skip
        gone = evicted[:count]
        return slots, gone[self._slot_of[gone] == 0]  # except those that returned with the same message

    def evict(self, count: int) -> tuple[Slots, RowNumbers]:
        """Evict `count` rows; returns their slots and numbers."""
        slots, evicted = np.empty(count, np.int64), np.empty(count, np.int64)
        taken = _evict(
            self._slot_of, self._row_of, self._stamp_of, self._used, self._hand, self.stamps.references, slots, evicted
        )
        return slots[:taken], evicted[:taken]

    def pushed(self, shard: int, rows: RowNumbers, stamp: int) -> Slots:
        """Return the slots of a push's rows, -1 if not cached; the other rows of its shard have not changed."""
        if self._pushed[shard] >= 0:
            self.stamps.references[self._pushed[shard]] -= 1
        self._pushed[shard] = stamp
        self.stamps.references[stamp] += 1
        slots = np.empty(len(rows), np.int64)
        _restamp(self._slot_of, self._stamp_of, self.stamps.references, rows, stamp, slots)
        return slots

    def holds_of(self, worker: int) -> NDArray[np.int64]:
        """Return, by shard, the clock before which a worker's updates are in all cached and future rows."""
        return np.where(self._pushed >= 0, self.stamps.clocks[self._pushed, worker], 0)

    def count_reads(self, stamps: NDArray[np.int64], clock: int, histogram: NDArray[np.int64]) -> None:
        """Add the reads at a clock to the histograms of clock differentials: of all workers, and of the newest."""
        _count_reads(self.stamps.clocks, self.stamps.hits, stamps, clock, histogram)

    @property
    def size(self) -> int:
        """Number of rows cached."""
        return int(self._hand[2])


@njit(nogil=True, cache=True)
def _find(slot_of, stamp_of, used, pushed, ages, orders, rows, required, found, stamps, slots):  # type: ignore[no-untyped-def]
    """Implement `Cache.find`: writes `found`, `stamps` and `slots` of each of `rows`; returns the number missing.

    `slot_of`, `stamp_of`, `used` and `pushed` are those of the `Cache`, `ages` and `orders` those of its `Stamps`. A
    row has the age of its own stamp or, if that arrived later, of its shard's last push; it is fresh enough if this is
    at least `required`.
    """
    missing = 0
    for i in range(len(rows)):
        if found[i]:
            slots[i] = -3
            continue
        slot = slot_of[rows[i]] - 1
        if slot < 0:
            slots[i] = -2
            missing += 1
            continue
        stamp, push = stamp_of[slot], pushed[rows[i] % len(pushed)]
        if push >= 0 and orders[push] > orders[stamp]:
            stamp = push
        if ages[stamp] < required:
            slots[i] = -1
            missing += 1
            continue
        used[slot] = True
        found[i] = True
        stamps[i] = stamp
        slots[i] = slot
    return missing


@njit(nogil=True, cache=True)
def _place(slot_of, row_of, stamp_of, used, hand, references, rows, stamp, slots, evicted):  # type: ignore[no-untyped-def]
    """Implement `Cache.place`: writes the `slots` of `rows`, and the `evicted` rows; returns how many these are.

    `slot_of`, `row_of`, `stamp_of`, `used` and `hand` are those of the `Cache`, `references` those of its `Stamps`; all
    are updated. The rows get the `stamp`.
    """
    count = 0
    for i in range(len(rows)):
        slot = slot_of[rows[i]] - 1
        if slot < 0:
            if hand[1] < len(row_of):
                slot = hand[1]
                stamp_of[slot] = -1
                hand[1] += 1
            else:
                slot = _turn(used, hand)
                if row_of[slot] >= 0:
                    slot_of[row_of[slot]] = 0
                    evicted[count] = row_of[slot]
                    count += 1
                    hand[2] -= 1
            hand[2] += 1
            slot_of[rows[i]] = slot + 1
            row_of[slot] = rows[i]
        if stamp_of[slot] >= 0:
            references[stamp_of[slot]] -= 1
        stamp_of[slot] = stamp
        references[stamp] += 1
        used[slot] = True
        slots[i] = slot
    return count


@njit(nogil=True, cache=True)
def _turn(used, hand):  # type: ignore[no-untyped-def]
    """Return the next slot not used since the clock hand last passed (second-chance algorithm)."""
    while used[hand[0]]:
        used[hand[0]] = False
        hand[0] = (hand[0] + 1) % hand[1]
    slot = hand[0]
    hand[0] = (hand[0] + 1) % hand[1]
    return slot


@njit(nogil=True, cache=True)
def _evict(slot_of, row_of, stamp_of, used, hand, references, slots, evicted):  # type: ignore[no-untyped-def]
    """Evict up to `len(slots)` rows; writes their `slots` and numbers (`evicted`); returns how many these are.

    `slot_of`, `row_of`, `stamp_of`, `used`, `hand` and `references` are as in `_place`, and updated as well.
    """
    count = 0
    while count < len(slots) and hand[2] > 0:
        slot = _turn(used, hand)
        if row_of[slot] >= 0:
            slots[count], evicted[count] = slot, row_of[slot]
            count += 1
            hand[2] -= 1
            references[stamp_of[slot]] -= 1
            stamp_of[slot] = -1
            slot_of[row_of[slot]] = 0
            row_of[slot] = -1
    return count


@njit(nogil=True, cache=True)
def _restamp(slot_of, stamp_of, references, rows, stamp, slots):  # type: ignore[no-untyped-def]
    """Give the cached ones of `rows` a new stamp; writes their `slots`, -1 if not cached."""
    for i in range(len(rows)):
        slot = slot_of[rows[i]] - 1
        slots[i] = slot
        if slot >= 0:
            references[stamp_of[slot]] -= 1
            stamp_of[slot] = stamp
            references[stamp] += 1


@njit(nogil=True, cache=True)
def _count_reads(clocks, hits, stamps, clock, histogram):  # type: ignore[no-untyped-def]
    """Implement `Cache.count_reads`; `clocks` and `hits` as in `Stamps`, `stamps` of the rows read (negative: none)."""
    for stamp in stamps:
        if stamp >= 0:
            hits[stamp] += 1
    for stamp in stamps:
        if stamp >= 0 and hits[stamp] > 0:
            newest = -REACH
            for worker in range(clocks.shape[1]):
                if clocks[stamp, worker] < RETIRED:
                    differential = min(max(clocks[stamp, worker] - 1 - clock, -REACH), REACH)
                    histogram[0, differential + REACH] += hits[stamp]
                    newest = max(newest, differential)
            histogram[1, newest + REACH] += hits[stamp]
            hits[stamp] = 0
