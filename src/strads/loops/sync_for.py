"""`sync_for`: a loop over minibatches, data-parallel on replicas of the parameters (thesis §7.1.3, §7.2.4)."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from strads import cluster
from strads.checkpoints import current_session
from strads.cluster import Runtime
from strads.cluster.cores import check_count
from strads.dds import KeyedTable, at_start, dvector
from strads.dds.arguments import mark_written, overlaps, table_of
from strads.engine.ps.profile import StalenessProfile
from strads.errors import ArgumentError
from strads.loops.aggregation import aggregation_of
from strads.loops.argument_kinds import check_call
from strads.loops.argument_locks import locked
from strads.loops.async_for import check_node_threads, check_seed
from strads.loops.cache_keys import content_key, kind_key
from strads.loops.call import reference
from strads.loops.checkpointed import pack_sync, perform_loop, unpack_sync
from strads.loops.driver import add_sums, count_call
from strads.loops.on_nodes.bound_minibatches import SyncCall
from strads.loops.on_nodes.run_minibatches import SyncResult, run_minibatches
from strads.loops.statistics import SyncStatistics
from strads.schedule.consistency import BSP, Consistency
from strads.schedule.minibatches import Minibatches
from strads.user_code.sent_functions import sent_to

_WORKERS, _MOST = 8, 512  # default, so that results do not depend on threads; maximum, as code is compiled for each


def sync_for(
    data: dvector | range | int,
    body: Callable[..., Any],
    *arguments: Any,
    batch_size: int,
    consistency: Consistency | None = None,
    recon: bool = False,
    workers: int | None = None,
    threads: int | None = None,
    seed: int | None = None,
    fastmath: bool = True,
) -> SyncStatistics:
    """Run `body(batch, *arguments)` for all minibatches of data, in parallel, each on a replica of the written tables.

    The data are cut into minibatches of `batch_size` rows, which are divided among the workers of all nodes in
    contiguous parts. After a minibatch, a worker's changes go to a parameter server, and from there to the others under
    the rules of a consistency model. Replicas are averaged unless `register_aggregation` says otherwise.

    Parameters
    ----------
    data
        A dvector of rows, records or ragged rows; or a range or a number of rows, in which case the body gets numbers.
    body
        A plain Python function in the subset that Numba compiles. Its first parameter is a minibatch: `len(batch)`,
        `batch[i]`, read only; an array for dense rows and records.
    *arguments
        As in `async_for`: dvectors and maps, `strads.readonly(v)`, `strads.accumulator(...)`, numbers, tuples of
        numbers, and NumPy arrays that it only reads. Tables that the body writes are the parameters: rows of numbers,
        which it may also use as a whole (`w -= rate * gradient`, `np.dot(w, x)`).
    batch_size
        Number of rows per minibatch; the last one may have fewer.
    consistency
        `BSP()`, the default: a round is one minibatch per worker, and all workers see the sum of all earlier rounds.
        `Hybrid()`: threads of a node work on one replica without locks; on one node, on the tables themselves.
        `SSP(s)`, `ESSP(s)`, `ASP()`, `VAP(v0)`: see these classes.
    recon
        Whether to determine which rows of the parameters each minibatch touches, so that only these are sent: for
        sparse access. Otherwise all rows are sent. Tables that are only read are always replicated on every node.
    workers
        Under `BSP()`, into how many parts the minibatches are divided: a round is one minibatch of each part, so the
        result depends on it. By default 8, or the number of nodes if that is larger; each node needs one.
        At most 512. Under other models each thread is a worker.
    threads
        Number of threads; by default that of `strads.init`, which must not be overridden on a cluster.
    seed
        Determines the order in which each worker takes its minibatches; by default the storage order.
    fastmath
        Whether sums may be reordered, which lets the compiler vectorize them.

    Returns
    -------
    SyncStatistics
        Times, bytes sent, and the staleness of the parameters that minibatches read.

    Raises
    ------
    ArgumentError
        For an invalid argument.
    CompileError
        For a body that cannot be compiled; the message starts with the offending line.
    BodyIndexError, BodyKeyError
        For an index out of range, or a missing key. No table has been changed.
    BodyError
        If the body raises. No table has been changed; under `Hybrid()` on one node, tables keep the changes so far.

    Notes
    -----
    Under `BSP()` the result depends only on data, `batch_size`, `seed` and `workers`: it is bitwise identical for any
    number of threads and nodes and every backend. The data are laid out so that each node has whole minibatches.
    """
    rules = BSP() if consistency is None else consistency
    if not isinstance(rules, Consistency):
        raise ArgumentError(f"consistency={consistency!r}: give an object such as strads.BSP() or strads.Hybrid()")
    rows = _check_data(data)
    check_call(body, arguments, "the minibatch")
    check_seed(seed, may_be_none=True)
    runtime = cluster.current()
    if not runtime.is_local:
        check_node_threads(threads, runtime.threads)
    each = runtime.threads if threads is None else cluster.check_threads(threads)
    size, count = check_count("batch_size", batch_size), _count_workers(workers, rules, runtime.cluster.size, each)
    call = SyncCall(
        body,
        range(int(data)) if isinstance(data, int | np.integer) else data,
        arguments,
        Minibatches(rows, size, count, None if seed is None else int(seed)),
        rules,
        recon=bool(recon),
        fastmath=bool(fastmath),
        team=runtime.team(threads) if runtime.is_local else None,
    )

    def run() -> SyncStatistics:
        with locked((*arguments, data)):
            return _run(runtime, call)

    if current_session() is None:
        return run()
    chosen = call.minibatches, repr(rules), call.recon, call.fastmath
    unpack = partial(unpack_sync, rules=rules)
    return perform_loop("sync_for", run, body, (*arguments, data), chosen, pack_sync, unpack)


def _run(runtime: Runtime, call: SyncCall) -> SyncStatistics:
    """Run the loop."""
    start = time.perf_counter()
    call = replace(call, arguments=tuple(map(at_start, call.arguments)))
    results: list[SyncResult] = []
    sent = _sent(runtime, call)
    try:
        results = runtime.run(run_minibatches, sent)
    finally:
        # After a failure it is unknown what has changed.
        positions = results[0].written if results else range(len(call.arguments))
        mark_written(runtime.cluster, call.arguments, positions)
    add_sums(call.arguments, call.minibatches.workers, results)
    count_call(call.arguments)
    return _statistics(call, results, time.perf_counter() - start)


def _count_workers(workers: int | None, rules: Consistency, nodes: int, threads: int) -> int:
    """Return the number of workers of all nodes."""
    if type(rules) is not BSP:
        if workers is not None:
            raise ArgumentError(f"workers={workers!r} is for BSP(): under {rules} each thread is a worker")
        return nodes * threads
    if workers is None:
        return max(_WORKERS, nodes)
    if not nodes <= check_count("workers", workers) <= _MOST:
        raise ArgumentError(f"workers={workers}: each of the {nodes} nodes needs one; give {nodes} to {_MOST}")
    return int(workers)


def _check_data(data: Any) -> int:
    """Return the number of rows."""
    if isinstance(data, bool) or not isinstance(data, dvector | range | int | np.integer):
        hint = ": give its table (m.table)" if isinstance(data, KeyedTable) else ": strads.dvector(…) makes one"
        raise ArgumentError(f"data is a {type(data).__name__}, but sync_for takes a dvector, a range or a number{hint}")
    if isinstance(data, int | np.integer):
        if data < 0:
            raise ArgumentError(f"data={data}: give a dvector, a range, or a number of rows, 0 or more")
        return int(data)
    return len(data)


def _sent(runtime: Runtime, call: SyncCall) -> SyncCall:
    """Return a call as it is sent to the nodes: with references to tables, and what identifies them."""
    given = (*call.arguments, call.data)
    tables = list(map(table_of, given))
    aggregations = {position: aggregation_of(table) for position, table in enumerate(tables[:-1]) if table is not None}
    for position, aggregation in aggregations.items():
        if callable(aggregation) and not call.consistency.in_order:
            raise ArgumentError(
                f"argument {position + 1} after the minibatch has an aggregation that needs the changes of a whole "
                f'round, but {call.consistency} has no rounds: use BSP() or Hybrid(), or register "average" or "sum"'
            )
    passed, rows, nodes = call.arguments, call.data, runtime.cluster
    if not runtime.is_local:
        passed = tuple(reference(nodes, argument) for argument in passed)
        if isinstance(rows, dvector):
            rows = reference(nodes, rows, call.minibatches.row_bounds(nodes.size))
    return replace(
        call,
        body=sent_to(nodes, call.body, compiled=True),
        data=rows,
        arguments=passed,
        kinds=tuple(map(kind_key, given)),
        contents=tuple(None if table is None else content_key(table) for table in tables),
        overlaps=overlaps(given),
        aggregations=aggregations,
    )


def _statistics(call: SyncCall, results: list[SyncResult], seconds: float) -> SyncStatistics:
    times = [result.times[worker] for result in results for worker in sorted(result.times)]
    histograms: dict[int, Any] = {}
    for result in results:
        for position, histogram in result.histograms.items():
            histograms[position] = histograms.get(position, 0) + histogram
    return SyncStatistics(
        batches=call.minibatches.count,
        workers=call.minibatches.workers,
        consistency=call.consistency,
        seconds=seconds,
        compile_seconds=max(result.compile_seconds for result in results),
        reconnaissance_seconds=max(result.reconnaissance_seconds for result in results),
        execution_seconds=max(result.execution_seconds for result in results),
        computing=[worker.computing for worker in times],
        communicating=[worker.communicating for worker in times],
        bytes_sent=[result.bytes_sent for result in results],
        messages_sent=[result.messages_sent for result in results],
        staleness={position: StalenessProfile.of(histogram) for position, histogram in histograms.items()},
    )
