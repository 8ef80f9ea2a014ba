"""The driver's side of a loop: prepares it whenever something that determines it has changed, and starts each run.

There is only one code path: the nodes of a cluster, or this process as the only node, run the same node programs.
"""

import threading
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.bodies.functions import fingerprint
from strads.cluster import Cluster
from strads.dds import Accumulator, Readonly, Relaxed, at_start, dvector
from strads.dds.arguments import keep_limits, map_of, mark_written, overlaps, table_of
from strads.engine.plans.executor import zero_totals
from strads.errors import AccessPatternError, BodyIndexError, BodyKeyError, NodeFailure
from strads.loops.argument_kinds import check_call
from strads.loops.cache_keys import content_key, form_key, identity_key, kind_key
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.dealing import deal_anew
from strads.loops.on_nodes.execution import run, run_in_interpreter
from strads.loops.on_nodes.first_look import LEFT_ROWS
from strads.loops.on_nodes.minibatches import SyncResult
from strads.loops.on_nodes.preparation import prepare
from strads.loops.on_nodes.recording_decision import CHANGING, TOO_EARLY
from strads.loops.on_nodes.recovery import recover
from strads.loops.on_nodes.specs import LoopFacts, LoopOptions, LoopSpec, NodeResult, SumRef, TableRef
from strads.loops.statistics import LoopStatistics
from strads.rng.numbers import RandomNumbers
from strads.schedule.strategies.dealing import DEAL_EVERY, Deal
from strads.user_code.sent_functions import sent_to

_MAX_KEPT = 8
_MAX_OF_SCALARS = 3  # of these, loops that only need other scalars
_MANY, _MAX_FORMS = 2, 256  # new calls of a loop in a row; loops of which they are counted


class _Failed(Flag):
    """How calls of a loop have failed that were then run in another way."""

    NEVER = 0
    LEFT_ROWS = auto()  # tasks have left the rows that were recorded for them, or would have
    ROUNDED = auto()  # a task left its rows, or an index was out of range, because sums that choose rows were reordered


@dataclass(eq=False)
class _KeptLoop:
    """A loop that is prepared on the nodes, and the arguments that it was prepared for."""

    cluster: Cluster
    name: str
    key: Hashable
    indices: LoopIndices
    tables: "tuple[weakref.ref[dvector], ...]"
    facts: LoopFacts
    contents: dict[int, Hashable]
    failed: _Failed  # how an earlier call has failed
    changes: bool  # whether the data that determine the rows changed since the previous call
    deal: Deal  # how rows are dealt to blocks
    stays: str = LEFT_ROWS  # why it stays in sequence, once tasks have left their rows or would have
    users: int = 0  # running calls: until they end the loop keeps its memory and its place on the nodes

    def serves(self, call: "_Call") -> bool:
        """Whether the plan is valid for a call."""
        return (
            self.cluster is call.cluster
            and self.key == call.key
            and not self.facts.planning_is_deferred
            and not (self.facts.is_volatile and not call.remembers)
            and not (self.facts.is_volatile and _Failed.LEFT_ROWS in self.failed and not _runs_alone(call))
            and self.indices == call.indices
            and self._holds_for(call)
            and not (self.facts.is_dealt and self.users > 0 and self.deal != call.deal)
            and all(self._lies_as_planned(call, position) for position in self.facts.placed)
        )

    def _holds_for(self, call: "_Call") -> bool:
        """Whether the plan is valid for the contents of a call's arguments.

        A plan made without records is valid for any. But once contents that used to change stay the same, a recorded
        plan may pay, so the loop is prepared again. If earlier calls do not count, contents must always match.
        """
        found, takes_any = call.deciding(self.facts), self.facts.takes_any_contents and call.remembers
        if not takes_any or not self.changes:
            return takes_any or self.contents == found
        changed, self.contents = self.changed(call), found
        return bool(changed) and not (call.are_scalars(changed) and _scalars_return(call, found))

    def is_of_other_scalars(self, call: "_Call") -> bool:
        """Whether the plan is valid for other numbers, and the same tables and arrays."""
        is_valid = not (self.facts.planning_is_deferred or self.facts.takes_any_contents)
        changed = self.changed(call)
        return is_valid and bool(changed) and call.are_scalars(changed)  # one that failed for the same ones is obsolete

    def changed(self, call: "_Call") -> frozenset[int]:
        """Return the arguments whose contents determine rows, and have changed until a call."""
        found = call.deciding(self.facts)
        return frozenset(position for position, content in self.contents.items() if found.get(position) != content)

    def _lies_as_planned(self, call: "_Call", position: int) -> bool:
        table = table_of(call.arguments[position])
        assert table is not None
        table.distribute(self.cluster)
        return np.array_equal(table.bounds, self.facts.placed[position])  # type: ignore[arg-type]


@dataclass
class _NewCalls:
    """Calls of a loop in a row that had other indices or tables than all kept ones, as if each gets a minibatch.

    Each writes one of the tables that the one before wrote: a program that is run again, with tables of its own, must
    give the same result again.
    """

    count: int = 0
    written: frozenset[Hashable] = frozenset()  # keys of the tables that the last of them wrote
    in_sequence: bool = False  # whether the last of them ran as one job for want of a plan that pays


# Most recently used last. Several threads may call loops: the lock is held while the list or its users change.
_kept: list[_KeptLoop] = []
_new: dict[Hashable, _NewCalls] = {}  # by `_Call.form`; most recently used last
_scalars: dict[Hashable, list[dict[int, Hashable]]] = {}  # by key: those of calls that seemed to be the only ones
_keeping = threading.RLock()  # tables may be collected, and drop their loops, at any time on any thread


@dataclass
class _Call:
    """One call of a loop."""

    cluster: Cluster
    body: Callable[..., Any]
    arguments: tuple[Any, ...]
    indices: LoopIndices
    options: LoopOptions
    record_order: bool
    remembers: bool  # whether what happened in earlier calls affects the order
    start: float  # when it began

    def __post_init__(self) -> None:
        self.overlaps = overlaps(self.arguments)
        body = fingerprint(self.body)
        self.key = body, self.options, tuple(map(kind_key, self.arguments)), self.overlaps
        self.form = body, self.options, tuple(map(form_key, self.arguments))
        self.deal = _deal_of(self.arguments)
        self._digests: dict[int, Hashable] = {}

    def contents(self, positions: Collection[int]) -> dict[int, Hashable]:
        """Return the content keys of the arguments at some positions; arrays are digested once a call."""
        arrays = [p for p in positions if isinstance(self.arguments[p], np.ndarray) and p not in self._digests]
        self._digests.update((p, content_key(self.arguments[p])) for p in arrays)
        return {p: self._digests.get(p) or content_key(self.arguments[p]) for p in sorted(positions)}

    def deciding(self, facts: LoopFacts) -> dict[int, Hashable]:
        """Return the content keys of what determines the rows of a prepared loop, by position."""
        of_columns = {p: content_key(self.arguments[p], facts.written_columns[p]) for p in facts.deciding_columns}
        return self.contents(facts.deciding) | dict(sorted(of_columns.items()))

    def are_scalars(self, positions: Collection[int]) -> bool:
        """Whether the arguments at some positions are all numbers, or tuples of them."""
        return all(isinstance(self.arguments[p], int | float | tuple | np.generic) for p in positions)

    def references(self, bounds: dict[int, NDArray[np.int64]]) -> tuple[Any, ...]:
        """Return the arguments as they are sent, of tables laid out by these bounds."""
        return tuple(reference(self.cluster, a, bounds.get(position)) for position, a in enumerate(self.arguments))


def run_loop(
    cluster: Cluster,
    body: Callable[..., Any],
    arguments: tuple[Any, ...],
    indices: LoopIndices,
    options: LoopOptions,
    *,
    record_order: bool,
    remembers: bool = True,
) -> LoopStatistics:
    """Run a loop on all nodes of a cluster; other arguments and what it raises are those of `async_for`.

    A program that continues from a checkpoint skips calls, so the order of the next ones must not depend on them: then
    the loop `remembers` nothing.
    """
    start = time.perf_counter()
    arguments = tuple(map(at_start, arguments))
    check_call(body, arguments)
    statistics = _run_call(_Call(cluster, body, arguments, indices, options, record_order, remembers, start))
    count_call(arguments)
    return statistics


def _run_call(call: _Call) -> LoopStatistics:
    with _prepared(call) as (kept, is_new):
        try:
            return _execute(call, kept, is_new)
        except (AccessPatternError, BodyIndexError, BodyKeyError) as error:
            failed = _Failed.ROUNDED if kept.facts.guards_roundings else _Failed.LEFT_ROWS
            is_expected = kept.facts.is_volatile or not call.options.interpreted  # the interpreter would reveal a fault
            may_go_on = is_expected and (_runs_alone(call) or not (is_new or call.options.interpreted))
            if failed is _Failed.LEFT_ROWS and not (isinstance(error, AccessPatternError) and may_go_on):
                raise
    # The tables have been restored. If reordered sums chose other rows, run again with the sums in order. Otherwise the
    # recorded rows were those of an earlier call: record the loop again, or let one job own all rows.
    with _prepared(call, failed) as (kept, is_new):
        return _execute(call, kept, is_new)


def _execute(call: _Call, kept: _KeptLoop, is_new: bool) -> LoopStatistics:
    facts, options = kept.facts, call.options
    results = _run(call, kept)
    if any(result.stays for result in results):
        kept.failed |= _Failed.LEFT_ROWS
        kept.stays = next(result.stays for result in results if result.stays)
    add_sums(call.arguments, facts.plan.jobs, results)
    keep_limits(call.arguments, results[0].limits)
    copied = max(result.copy_seconds for result in results) if is_new else 0.0
    return LoopStatistics(
        tasks=len(call.indices),
        seconds=time.perf_counter() - call.start,
        compile_seconds=max(result.compile_seconds for result in results) + (facts.compile_seconds if is_new else 0.0),
        reconnaissance_seconds=facts.reconnaissance_seconds if is_new else 0.0,
        planning_seconds=facts.planning_seconds + copied if is_new else 0.0,
        copy_seconds=copied,
        execution_seconds=max(result.seconds for result in results),
        strategy=facts.plan.strategy,
        parallelism=facts.plan.parallelism,
        threads=1 if options.interpreted else call.cluster.size * (options.threads or call.cluster.threads),
        plan=facts.plan,
        nodes=tuple(result.statistics for result in results),
        order=_order(facts, call.indices, results) if call.record_order else None,
    )


def _order(facts: LoopFacts, indices: LoopIndices, results: list[NodeResult]) -> NDArray[np.integer]:
    """Return the loop indices in an equivalent serial order.

    It is that of the plan: jobs are numbered by priority, so it obeys every precedence. Under row locks it depends on
    timing.
    """
    sequences = [result.sequence for result in results if result.sequence is not None]
    return indices.at(sequences[0] if sequences else facts.plan.order)


@contextmanager
def _prepared(call: _Call, failed: _Failed = _Failed.NEVER) -> Iterator[tuple[_KeptLoop, bool]]:
    """Yield the prepared loop and whether it is new: it is prepared again if anything that determines it has changed.

    A loop that has just `failed` is prepared again in any case.
    """
    for dead in [kept for kept in _kept.copy() if kept.cluster.closed]:
        _drop(dead)
    kept = None if failed else _find(call)
    is_new = kept is None
    if kept is None:
        earlier = [other.failed for other in _kept.copy() if other.key == call.key and call.remembers]
        kept = _prepare(call, reduce(or_, earlier, failed))
    try:
        if kept.facts.is_dealt and kept.deal != call.deal:
            _deal_anew(call, kept)
        yield kept, is_new
    finally:
        with _keeping:
            kept.users -= 1


def _find(call: _Call) -> _KeptLoop | None:
    """Return a kept loop that is valid for a call, marked as in use; None if there is none."""
    latest_first = _kept[::-1]
    for kept in sorted(latest_first, key=lambda kept: kept.facts.takes_any_contents):  # those for these contents first
        if kept.serves(call):
            with _keeping:
                if kept in _kept:  # otherwise another thread has just dropped it
                    _kept.remove(kept)
                    _kept.append(kept)
                    kept.users += 1
                    _new.pop(call.form, None)
                    return kept
    return None


def _prepare(call: _Call, failed: _Failed) -> _KeptLoop:
    """Prepare a loop; returns it marked as in use."""
    cluster, arguments = call.cluster, call.arguments
    outdated, is_kept = _retire_outdated(call)
    is_new = call.remembers and outdated is None and not failed
    earlier = _new_calls(call) if is_new else _NewCalls()
    changes = earlier.count >= _MANY  # again a plan would serve one call only
    changed = frozenset[int]()
    samples_rows, stays, alone = False, LEFT_ROWS, CHANGING.reason if changes and earlier.in_sequence else ""
    if outdated is not None and call.remembers:
        # A loop that has run in sequence continues to do so. Only once its rows have been the same in two calls is
        # reconnaissance worthwhile.
        changed = outdated.changed(call)
        found = call.deciding(outdated.facts)
        changes = bool(changed) and not (call.are_scalars(changed) and _scalars_return(call, found))
        if outdated.facts.stays_in_sequence and call.options.strategy == "auto":
            alone = "its rows have changed, and it already ran in sequence before"
        samples_rows, stays = outdated.facts.samples_rows_next, outdated.stays
    leaves_rows = _Failed.LEFT_ROWS in failed and _runs_alone(call)
    spec = LoopSpec(
        cluster.new_name(),
        sent_to(cluster, call.body, compiled=True),
        call.indices,
        call.options,
        call.overlaps,
        contents={position: content_key(a) for position, a in enumerate(arguments) if table_of(a) is not None},
        alone=stays if leaves_rows else alone,
        in_order_of_sums=_Failed.ROUNDED in failed,
        leaves_rows=leaves_rows,
        is_first=is_new,
        samples_rows=samples_rows,
        changes=changes,
        changed=changed,
        deal=call.deal,
        replaces=None if outdated is None or is_kept else outdated.name,
    )
    references = call.references({})
    try:
        replies = cluster.run(prepare, spec, references)
    except (BodyIndexError, BodyKeyError) as error:
        if error.is_certain or call.options.strategy != "auto":
            raise
        replies = cluster.run(prepare, replace(spec, alone=TOO_EARLY.reason, leaves_rows=True), references)
    facts = next(facts for facts in replies if facts is not None)
    if is_new:
        earlier.count += 1
        earlier.written = frozenset(identity_key(arguments[position]) for position in facts.written)
        earlier.in_sequence = facts.serves_one_call
    tables = tuple(weakref.ref(table, _drop_with) for table in map(table_of, arguments) if table is not None)
    state = facts, call.deciding(facts), failed, changes, call.deal
    kept = _KeptLoop(cluster, spec.name, call.key, call.indices, tables, *state, stays=stays, users=1)
    with _keeping:
        _kept.append(kept)
        for idle in [loop for loop in _kept[:-_MAX_KEPT] if loop.users == 0]:
            _drop(idle)
    return kept


def _new_calls(call: _Call) -> _NewCalls:
    """Return what is known of the calls before this one that had other indices or tables than all kept loops."""
    with _keeping:
        found = _new.pop(call.form, None)
        if found is None or found.written.isdisjoint(map(identity_key, call.arguments)):
            found = _NewCalls()
        _new[call.form] = found
        if len(_new) > _MAX_FORMS:
            del _new[next(iter(_new))]
    return found


def _scalars_return(call: _Call, found: dict[int, Hashable]) -> bool:
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


def _runs_alone(call: _Call) -> bool:
    """Whether a loop whose tasks leave their recorded rows may run as one job."""
    return call.options.strategy == "auto"


def _retire_outdated(call: _Call) -> tuple[_KeptLoop | None, bool]:
    """Drop loops that a new plan makes obsolete; returns the latest that it replaces, and whether it is still kept.

    If it is not, the new loop may reuse its memory. Some are kept that only need other scalars, as these often return:
    the colour of a sweep, a level, a turn.
    """
    with _keeping:
        idle = [k for k in _kept if k.key == call.key and k.indices == call.indices and k.users == 0]
        others = [kept for kept in idle if kept.is_of_other_scalars(call)][-_MAX_OF_SCALARS:]
        obsolete = [kept for kept in idle if kept not in others]
        for kept in obsolete:
            if kept is idle[-1]:
                _kept.remove(kept)
            else:
                _drop(kept)  # free what it holds before the next one is made
    return (idle[-1], idle[-1] in others) if idle else (None, False)


def _deal_of(arguments: tuple[Any, ...]) -> Deal:
    """Return the deal that a call uses: it changes every few calls, with the random numbers."""
    numbers = next((argument for argument in arguments if isinstance(argument, RandomNumbers)), None)
    return () if numbers is None else (numbers.seed, numbers.calls // DEAL_EVERY)


def _deal_anew(call: _Call, kept: _KeptLoop) -> None:
    try:
        results = call.cluster.run(deal_anew, kept.name, call.references({}), call.deal, call.options.team)
    except BaseException:
        _drop(kept)  # some nodes may have the new plan, others the old one
        raise
    kept.facts = next(facts for facts in results if facts is not None)
    kept.deal = call.deal


def _run(call: _Call, kept: _KeptLoop) -> list[NodeResult]:
    cluster, arguments, facts = kept.cluster, call.arguments, kept.facts
    references = call.references(facts.bounds)
    given = call.contents(facts.aligned), call.options.team, call.record_order
    try:
        if call.options.interpreted:
            return cluster.run(run_in_interpreter, kept.name, references)
        return cluster.run(run, kept.name, references, *given)
    except BaseException as error:
        if not isinstance(error, NodeFailure):
            try:
                cluster.run(recover, kept.name, cluster.runs)
            except Exception as failure:  # the first error is more informative
                error.add_note(f"and the tables could not be restored: {failure}")
        raise
    finally:
        mark_written(cluster, arguments, facts.written, facts.written_columns)


def count_call(arguments: tuple[Any, ...]) -> None:
    """Make the next loop draw other random numbers; after an error the same ones are drawn again."""
    for numbers in {id(argument): argument for argument in arguments if isinstance(argument, RandomNumbers)}.values():
        numbers.calls += 1


def add_sums(arguments: tuple[Any, ...], parts: int, results: Sequence[NodeResult | SyncResult]) -> None:
    """Add up the partial sums of accumulators, of which there are `parts`, in their order."""
    for position, argument in enumerate(arguments):
        if isinstance(argument, Accumulator):
            totals = zero_totals(parts, argument.dtype)
            for result in results:
                own = result.jobs >= 0
                totals[result.jobs[own], 0] += result.totals[position][own]
            argument.add(totals[:, 0].sum().item())


def reference(cluster: Cluster, argument: Any, bounds: Any = None) -> Any:
    """Return the reference to an argument in messages to the nodes; the argument itself in a single process."""
    table, keyed = table_of(argument), map_of(argument)
    if cluster.is_local:
        return argument
    if table is not None:
        name = table.distribute(cluster, bounds)
        index = None if keyed is None else keyed.distribute_index(cluster)
        return TableRef(name, isinstance(argument, Relaxed), isinstance(argument, Readonly), index)
    if isinstance(argument, Accumulator):
        return SumRef(0.0 if isinstance(argument.value, float) else 0)
    return argument


def _drop(kept: _KeptLoop) -> None:
    with _keeping:
        if kept in _kept:
            _kept.remove(kept)
    if not kept.cluster.closed:
        kept.cluster.discard(kept.name)


def _drop_with(table: "weakref.ref[dvector]", kept: list[_KeptLoop] = _kept, keeping: Any = _keeping) -> None:
    """Release the plans of a table that has been collected, and the copies that they hold.

    List and lock are default arguments because tables may also be collected at interpreter shutdown, without globals.
    """
    with keeping:
        dead = [loop for loop in kept if table in loop.tables]
        kept[:] = [loop for loop in kept if table not in loop.tables]
    for loop in dead:
        if not loop.cluster.closed:
            loop.cluster.discard(loop.name)
