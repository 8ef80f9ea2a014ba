"""A client's cache of rows: which it holds, how old they are, and which have to go (approximate LRU)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.engine.ps.messages import RETIRED, RowNumbers
from strads.engine.ps.profile import REACH

Slots = NDArray[np.int64]


class Stamps:
    """Which updates are in the rows of a message, kept for as long as any of these rows is.

    Attributes
    ----------
    clocks
        Array (stamps, workers): all updates of a worker made before this clock are in.
    ages
        Smallest clock of each stamp.
    orders
        Number of the message, in the order of arrival.
    references
        Rows, or shards, that have the stamp.
    hits
        Zeros, for counting.
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
    """Which rows are in which slot. The rows themselves are the client's.

    Parameters
    ----------
    rows
        Of the table.
    slots
        How many rows there is room for.
    shards
        Row r belongs to shard r mod shards.
    workers
        Whose updates stamps tell of.
    """

    def __init__(self, rows: int, slots: int, shards: int, workers: int):
        self.stamps = Stamps(workers)
        self._slot_of = np.zeros(rows, np.int32)  # + 1; 0: nowhere. Memory is taken where it is written
        self._row_of = np.empty(slots, np.int64)  # -1: none
        self._stamp_of = np.empty(slots, np.int64)
        self._used = np.zeros(slots, np.bool_)
        self._pushed = np.full(shards, -1, np.int64)  # stamp of the last push of each shard, good for all its rows
        self._hand = np.zeros(3, np.int64)  # of the clock that looks for what has not been used; slots taken; rows here

    def find(
        self, rows: RowNumbers, required: int, found: NDArray[np.bool_], stamps: NDArray[np.int64]
    ) -> tuple[Slots, int]:
        """Look for rows of at least an age, but those already found.

        Returns
        -------
        slots
            Of each row that is here and new enough; -1 for those that are here but too old, -2 for those that are
            not here, -3 for those that were found before.
        missing
            How many are not found yet.
        """
        slots = np.empty(len(rows), np.int64)
        missing = _find(
            self._slot_of, self._stamp_of, self._used, self._pushed, self.stamps.ages, self.stamps.orders,
            rows, required, found, stamps, slots,
        )  # fmt: skip
        return slots, missing

    def place(self, rows: RowNumbers, stamp: int) -> tuple[Slots, RowNumbers]:
        """Return slots to write rows to, and the rows that have to go for them. With no room: slots -1, and all go."""
        if not len(self._row_of):
            return np.full(len(rows), -1), rows
        slots, evicted = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        count = _place(
            self._slot_of, self._row_of, self._stamp_of, self._used, self._hand, self.stamps.references,
            rows, stamp, slots, evicted,
        )  # fmt: skip
        gone = evicted[:count]
        return slots, gone[self._slot_of[gone] == 0]  # not those that came back with the same message

    def evict(self, count: int) -> tuple[Slots, RowNumbers]:
        """Let so many rows go; returns their slots and numbers."""
        slots, evicted = np.empty(count, np.int64), np.empty(count, np.int64)
        taken = _evict(
            self._slot_of, self._row_of, self._stamp_of, self._used, self._hand, self.stamps.references, slots, evicted
        )
        return slots[:taken], evicted[:taken]

    def pushed(self, shard: int, rows: RowNumbers, stamp: int) -> Slots:
        """Return the slots of those rows of a push that are here; the others of its shard have not changed."""
        if self._pushed[shard] >= 0:
            self.stamps.references[self._pushed[shard]] -= 1
        self._pushed[shard] = stamp
        self.stamps.references[stamp] += 1
        slots = np.empty(len(rows), np.int64)
        _restamp(self._slot_of, self._stamp_of, self.stamps.references, rows, stamp, slots)
        return slots

    def holds_of(self, worker: int) -> NDArray[np.int64]:
        """By shard: all a worker's updates before this clock are in the rows here, and in those that will come."""
        return np.where(self._pushed >= 0, self.stamps.clocks[self._pushed, worker], 0)

    def count_reads(self, stamps: NDArray[np.int64], clock: int, histogram: NDArray[np.int64]) -> None:
        """Add to histograms of clock differentials, of each worker and of the newest, what reads at a clock found."""
        _count_reads(self.stamps.clocks, self.stamps.hits, stamps, clock, histogram)

    @property
    def size(self) -> int:
        """Rows that are here."""
        return int(self._hand[2])


@njit(nogil=True, cache=True)
def _find(slot_of, stamp_of, used, pushed, ages, orders, rows, required, found, stamps, slots):  # type: ignore[no-untyped-def]
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
    """Return the next slot of the clock that has not been used since the hand came by: a second chance for each."""
    while used[hand[0]]:
        used[hand[0]] = False
        hand[0] = (hand[0] + 1) % hand[1]
    slot = hand[0]
    hand[0] = (hand[0] + 1) % hand[1]
    return slot


@njit(nogil=True, cache=True)
def _evict(slot_of, row_of, stamp_of, used, hand, references, slots, evicted):  # type: ignore[no-untyped-def]
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
    for i in range(len(rows)):
        slot = slot_of[rows[i]] - 1
        slots[i] = slot
        if slot >= 0:
            references[stamp_of[slot]] -= 1
            stamp_of[slot] = stamp
            references[stamp] += 1


@njit(nogil=True, cache=True)
def _count_reads(clocks, hits, stamps, clock, histogram):  # type: ignore[no-untyped-def]
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
