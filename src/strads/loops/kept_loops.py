"""Loops that are kept prepared on the nodes: which of them serves a call, and why none does."""

import threading
import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from strads.cluster import Cluster
from strads.dds import dvector
from strads.dds.arguments import table_of
from strads.loops.cache_keys import identity_key
from strads.loops.call import Call
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.sequential_reasons import LEFT_ROWS, SequentialReason
from strads.loops.on_nodes.specs import LoopFacts
from strads.schedule.strategies.dealing import Deal

_MAX_KEPT = 8
_MAX_OF_SCALARS = 3  # kept loops that differ from the latest only in scalars that choose rows
_MANY = 2  # from this many new calls in a row on, a plan would serve one call only
_MAX_FORMS = 256  # loops whose new calls are counted


class Failure(Flag):
    """How calls of a loop have failed that were then run in another way."""

    NEVER = 0
    LEFT_ROWS = auto()  # tasks have left the rows that were recorded for them, or would have
    ROUNDED = auto()  # a task left its rows, or an index was out of range, because sums that choose rows were reordered


@dataclass(eq=False)
class KeptLoop:
    """A loop that is prepared on the nodes, and the arguments that it was prepared for."""

    cluster: Cluster
    name: str
    key: tuple[Hashable, ...]
    indices: LoopIndices
    tables: "tuple[weakref.ref[dvector], ...]"
    facts: LoopFacts
    contents: dict[int, Hashable]
    failed: Failure  # how an earlier call has failed
    changes: bool  # whether the data that determine the rows changed since the previous call
    deal: Deal  # how rows are dealt to blocks
    stays: SequentialReason = LEFT_ROWS  # why it stays in sequence, once tasks have left their rows or would have
    users: int = 0  # running calls: until they end the loop keeps its memory and its place on the nodes

    def serves(self, call: Call) -> bool:
        """Whether the plan is valid for a call."""
        return (
            self.cluster is call.cluster
            and self.key == call.key
            and not self.facts.planning_is_deferred
            and not (self.facts.is_volatile and not call.remembers)
            and not (self.facts.is_volatile and Failure.LEFT_ROWS in self.failed and call.options.strategy != "auto")
            and self.indices == call.indices
            and not (self.facts.is_dealt and self.users > 0 and self.deal != call.deal)
            and all(self._lies_as_planned(call, position) for position in self.facts.placed)
            and self._holds_for(call)  # last: it remembers the contents, which is right only if the loop serves
        )

    def _holds_for(self, call: Call) -> bool:
        """Whether the plan is valid for the contents of a call's arguments.

        A plan made without records is valid for any. But once contents that used to change stay the same, a recorded
        plan may pay, so the loop is prepared again. If earlier calls do not count, contents must always match.
        """
        found, takes_any = call.deciding(self.facts), self.facts.takes_any_contents and call.remembers
        if not takes_any or not self.changes:
            return takes_any or self.contents == found
        changed, self.contents = self.changed(call), found
        return bool(changed) and not (call.are_scalars(changed) and scalars_return(call, found))

    def is_of_other_scalars(self, call: Call) -> bool:
        """Whether the plan is valid for other numbers, and the same tables and arrays."""
        is_valid = not (self.facts.planning_is_deferred or self.facts.takes_any_contents)
        changed = self.changed(call)
        # If none has changed, the loop has failed for the same ones, and is obsolete.
        return is_valid and bool(changed) and call.are_scalars(changed)

    def changed(self, call: Call) -> frozenset[int]:
        """Return the arguments whose contents determine rows and differ in a call from those that were prepared for."""
        found = call.deciding(self.facts)
        return frozenset(position for position, content in self.contents.items() if found.get(position) != content)

    def _lies_as_planned(self, call: Call, position: int) -> bool:
        table = table_of(call.arguments[position])
        assert table is not None
        table.distribute(self.cluster)
        return np.array_equal(table.bounds, self.facts.placed[position])  # type: ignore[arg-type]


@dataclass
class NewCalls:
    """Calls of a loop in a row that had other indices or tables than all kept ones, as if each gets a minibatch.

    Each writes one of the tables that the one before wrote: a program that is run again, with tables of its own, must
    give the same result again.
    """

    count: int = 0
    written: frozenset[Hashable] = frozenset()  # keys of the tables that the last of them wrote
    in_sequence: bool = False  # whether the last of them ran as one job for want of a plan that pays
    template: LoopFacts | None = None  # of the last of them, if others can be prepared like it

    @property
    def are_many(self) -> bool:
        """Whether a plan for the next one would probably serve one call only, too."""
        return self.count >= _MANY

    def add(self, call: Call, facts: LoopFacts) -> None:
        """Count a call that has been prepared."""
        self.count += 1
        self.written = frozenset(identity_key(call.arguments[position]) for position in facts.written)
        self.in_sequence = facts.serves_one_call
        self.template = facts if facts.reusable is not None else None  # those of others may hold large plans


# Most recently used last. Several threads may call loops: the lock is held while the list or its users change.
_kept: list[KeptLoop] = []
_new: dict[Hashable, NewCalls] = {}  # by `Call.form`; most recently used last
_scalars: dict[Hashable, list[dict[int, Hashable]]] = {}  # by key: contents in calls not planned, as they seemed unique
_keeping = threading.RLock()  # tables may be collected, and drop their loops, at any time on any thread


def find(call: Call) -> KeptLoop | None:
    """Return a kept loop that is valid for a call, marked as in use; None if there is none."""
    latest_first = _kept[::-1]
    for_these_contents_first = sorted(latest_first, key=lambda kept: kept.facts.takes_any_contents)
    for kept in for_these_contents_first:
        if kept.serves(call):
            with _keeping:
                if kept in _kept:  # otherwise another thread has just dropped it
                    _kept.remove(kept)
                    _kept.append(kept)
                    kept.users += 1
                    _new.pop(call.form, None)
                    return kept
    return None


def earlier_failures(call: Call) -> Failure:
    """Return how earlier calls of the same loop have failed, if they count."""
    failures = [kept.failed for kept in _kept.copy() if kept.key == call.key and call.remembers]
    return reduce(or_, failures, Failure.NEVER)


def keep(
    call: Call, name: str, facts: LoopFacts, failed: Failure, *, changes: bool, stays: SequentialReason
) -> KeptLoop:
    """Keep a loop that has just been prepared, marked as in use; drops the least recently used ones that are too many.

    See `KeptLoop` for the parameters.
    """
    tables = tuple(weakref.ref(table, _drop_with) for table in map(table_of, call.arguments) if table is not None)
    state = facts, call.deciding(facts), failed, changes, call.deal
    kept = KeptLoop(call.cluster, name, call.key, call.indices, tables, *state, stays=stays, users=1)
    with _keeping:
        _kept.append(kept)
        for idle in [loop for loop in _kept[:-_MAX_KEPT] if loop.users == 0]:
            drop(idle)
    return kept


def release(loop: KeptLoop) -> None:
    """Note that a call has ended."""
    with _keeping:
        loop.users -= 1


def drop_closed() -> None:
    """Drop the loops of clusters that have been closed."""
    for dead in [kept for kept in _kept.copy() if kept.cluster.closed]:
        drop(dead)


def retire_outdated(call: Call) -> KeptLoop | None:
    """Drop loops that a new plan makes obsolete; returns the latest one of the same tables and indices, dropped or not.

    Some are kept that only need other scalars, as these often return: the colour of a sweep, a level, a turn.
    """
    with _keeping:
        idle = [k for k in _kept if k.key == call.key and k.indices == call.indices and k.users == 0]
        others = [kept for kept in idle if kept.is_of_other_scalars(call)][-_MAX_OF_SCALARS:]
        for kept in idle:
            if kept not in others:
                drop(kept)  # free what it holds before the next one is made
    return idle[-1] if idle else None


def why_again(call: Call, failed: Failure) -> str:
    """Return why no loop that earlier calls have prepared serves a call, for `explain`; empty if there is none.

    `failed` is how this call itself has just failed.
    """
    with _keeping:
        earlier = [kept for kept in _kept if kept.cluster is call.cluster and kept.key[:2] == call.key[:2]]
    alike = [kept for kept in earlier if kept.key == call.key]
    same = [kept for kept in alike if kept.indices == call.indices]
    if not earlier:
        return ""
    if not alike:
        return "the tables or arrays are not those of earlier calls, or have other shapes or types"
    if not same:
        return "the indices of the loop are not those of earlier calls"
    latest = same[-1]
    if Failure.ROUNDED in failed:
        return "a task left its rows, as sums that choose them were reordered"
    if Failure.LEFT_ROWS in failed:
        return "tasks left the rows that were recorded in an earlier call"
    if latest.changed(call):
        return "data that choose rows have changed"
    if latest.facts.planning_is_deferred:
        return "the last call ran before a plan was made"
    if latest.facts.is_volatile and not call.remembers:
        return "rows depend on values that the loop changes, and in a program with checkpoints each call records them"
    if latest.changes:
        return "its rows are those of an earlier call, so a plan may pay"
    if Failure.LEFT_ROWS in latest.failed:
        return "tasks left their rows in an earlier call, so each call records them"
    return "the tables are stored elsewhere on the nodes, or rows are dealt to other blocks"


def new_calls(call: Call) -> NewCalls:
    """Return what is known of the calls before this one that had other indices or tables than all kept loops."""
    with _keeping:
        found = _new.pop(call.form, None)
        if found is None or found.written.isdisjoint(map(identity_key, call.arguments)):
            found = NewCalls()
        _new[call.form] = found
        if len(_new) > _MAX_FORMS:
            del _new[next(iter(_new))]
    return found


def scalars_return(call: Call, found: dict[int, Hashable]) -> bool:
    """Whether one of few sets of numbers decides the rows of a call, and did so in a call that was not planned.

    Then a plan for each is worthwhile: the colour of a sweep, whose turn it is.
    """
    with _keeping:
        earlier = _scalars.pop(call.key, [])
        is_known = found in earlier
        if not is_known:
            earlier.append(found)
        _scalars[call.key] = earlier[: _MAX_OF_SCALARS + 2]
        if len(_scalars) > _MAX_FORMS:
            del _scalars[next(iter(_scalars))]
    return is_known and len(earlier) <= _MAX_OF_SCALARS + 1


def drop(kept: KeptLoop) -> None:
    """Keep a loop no longer, here and on the nodes."""
    with _keeping:
        if kept in _kept:
            _kept.remove(kept)
    if not kept.cluster.closed:
        kept.cluster.discard(kept.name)


def _drop_with(table: "weakref.ref[dvector]", kept: list[KeptLoop] = _kept, keeping: Any = _keeping) -> None:
    """Release the plans of a table that has been collected, and the copies that they hold.

    List and lock are default arguments because tables may also be collected at interpreter shutdown, without globals.
    """
    with keeping:
        dead = [loop for loop in kept if table in loop.tables]
        kept[:] = [loop for loop in kept if table not in loop.tables]
    for loop in dead:
        if not loop.cluster.closed:
            loop.cluster.discard(loop.name)
