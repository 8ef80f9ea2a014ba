"""The driver's side of a loop: prepares it whenever something that determines it has changed, and starts each run.

There is only one code path: the nodes of a cluster, or this process as the only node, run the same node programs.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Cluster
from strads.dds import Accumulator, at_start
from strads.dds.arguments import keep_limits, mark_written, table_of
from strads.engine.plans.executor import zero_totals
from strads.errors import AccessPatternError, BodyIndexError, BodyKeyError, NodeFailure
from strads.loops import kept_loops
from strads.loops.argument_kinds import check_call
from strads.loops.cache_keys import content_key
from strads.loops.call import Call
from strads.loops.indices import LoopIndices
from strads.loops.kept_loops import Failure, KeptLoop, NewCalls
from strads.loops.on_nodes.dealing import deal_anew
from strads.loops.on_nodes.execution import run, run_in_interpreter
from strads.loops.on_nodes.preparation import prepare
from strads.loops.on_nodes.run_minibatches import SyncResult
from strads.loops.on_nodes.sequential_reasons import CHANGING, LEFT_ROWS, RAN_IN_SEQUENCE, TOO_EARLY
from strads.loops.on_nodes.specs import LoopFacts, LoopOptions, LoopSpec, NodeResult
from strads.loops.on_nodes.undo import undo
from strads.loops.statistics import LoopStatistics
from strads.rng.numbers import RandomNumbers
from strads.user_code.sent_functions import sent_to


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
    """Run a loop on all nodes of a cluster; for other parameters and the exceptions see `async_for`.

    A program that continues from a checkpoint skips calls, so the order of the next ones must not depend on them: then
    the loop `remembers` nothing.
    """
    start = time.perf_counter()
    arguments = tuple(map(at_start, arguments))
    check_call(body, arguments)
    statistics = _run_call(Call(cluster, body, arguments, indices, options, record_order, remembers, start))
    count_call(arguments)
    return statistics


def _run_call(call: Call) -> LoopStatistics:
    with _prepared(call) as (kept, is_new):
        try:
            return _execute(call, kept, is_new)
        except (AccessPatternError, BodyIndexError, BodyKeyError) as error:
            failed = Failure.ROUNDED if kept.facts.guards_roundings else Failure.LEFT_ROWS
            is_expected = kept.facts.is_volatile or not call.options.interpreted  # the interpreter would reveal a fault
            may_go_on = is_expected and (call.options.strategy == "auto" or not (is_new or call.options.interpreted))
            if failed is Failure.LEFT_ROWS and not (isinstance(error, AccessPatternError) and may_go_on):
                raise
    # The tables have been restored. If reordered sums chose other rows, run again with the sums in order. Otherwise the
    # recorded rows were those of an earlier call: record the loop again, or let one job own all rows.
    with _prepared(call, failed) as (kept, is_new):
        return _execute(call, kept, is_new)


def _execute(call: Call, kept: KeptLoop, is_new: bool) -> LoopStatistics:
    facts, options = kept.facts, call.options
    results = _run(call, kept)
    if reasons := [result.stays for result in results if result.stays]:
        kept.failed |= Failure.LEFT_ROWS
        kept.stays = reasons[0]
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
def _prepared(call: Call, failed: Failure = Failure.NEVER) -> Iterator[tuple[KeptLoop, bool]]:
    """Yield the prepared loop and whether it is new: it is prepared again if anything that determines it has changed.

    A loop that has just `failed` is prepared again in any case.
    """
    kept_loops.drop_closed()
    kept = None if failed else kept_loops.find(call)
    is_new = kept is None
    if kept is None:
        kept = _prepare(call, failed | kept_loops.earlier_failures(call), kept_loops.why_again(call, failed))
    try:
        if kept.facts.is_dealt and kept.deal != call.deal:
            _deal_anew(call, kept)
        yield kept, is_new
    finally:
        kept_loops.release(kept)


def _prepare(call: Call, failed: Failure, again: str) -> KeptLoop:
    """Prepare a loop, `again` for some reason if not empty; returns it marked as in use."""
    call.indices = call.indices.copy()  # the loop is kept for later calls
    cluster, arguments = call.cluster, call.arguments
    outdated = kept_loops.retire_outdated(call)
    is_new = call.remembers and outdated is None and not failed
    earlier = kept_loops.new_calls(call) if is_new else NewCalls()
    changes = earlier.are_many
    changed = frozenset[int]()
    samples_rows, stays, alone = False, LEFT_ROWS, CHANGING if changes and earlier.in_sequence else None
    may_run_alone = call.options.strategy == "auto"
    if outdated is not None and call.remembers:
        # A loop that has run in sequence continues to do so. Only once its rows have been the same in two calls is
        # reconnaissance worthwhile.
        changed = outdated.changed(call)
        found = call.deciding(outdated.facts)
        changes = bool(changed) and not (call.are_scalars(changed) and kept_loops.scalars_return(call, found))
        if outdated.facts.stays_in_sequence and may_run_alone:
            alone = RAN_IN_SEQUENCE
        samples_rows, stays = outdated.facts.samples_rows_next, outdated.stays
    leaves_rows = Failure.LEFT_ROWS in failed and may_run_alone
    spec = LoopSpec(
        cluster.new_name(),
        sent_to(cluster, call.body, compiled=True),
        call.indices,
        call.options,
        call.overlaps,
        contents={position: content_key(a) for position, a in enumerate(arguments) if table_of(a) is not None},
        alone=stays if leaves_rows else alone,
        in_order_of_sums=Failure.ROUNDED in failed,
        leaves_rows=leaves_rows,
        is_first=is_new,
        samples_rows=samples_rows,
        changes=changes,
        changed=changed,
        again=again,
        deal=call.deal,
        template=earlier.template if earlier.are_many else None,
    )
    try:
        facts = _prepare_on_nodes(call, spec)
    except BaseException:
        cluster.discard(spec.name)  # an interrupted preparation may have left a loop there
        raise
    if is_new:
        earlier.add(call, facts)
    return kept_loops.keep(call, spec.name, facts, failed, changes=changes, stays=stays)


def _prepare_on_nodes(call: Call, spec: LoopSpec) -> LoopFacts:
    references = call.references({})
    try:
        replies = call.cluster.run(prepare, spec, references)
    except (BodyIndexError, BodyKeyError) as error:
        if error.is_certain or call.options.strategy != "auto":
            raise
        replies = call.cluster.run(prepare, replace(spec, alone=TOO_EARLY, leaves_rows=True), references)
    return next(facts for facts in replies if facts is not None)


def _deal_anew(call: Call, kept: KeptLoop) -> None:
    try:
        results = call.cluster.run(deal_anew, kept.name, call.references({}), call.deal, call.options.team)
    except BaseException:
        kept_loops.drop(kept)  # some nodes may have the new plan, others the old one
        raise
    kept.facts = next(facts for facts in results if facts is not None)
    kept.deal = call.deal


def _run(call: Call, kept: KeptLoop) -> list[NodeResult]:
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
                cluster.run(undo, kept.name, cluster.runs)
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
