"""`async_for`: a loop over shared tables, in parallel and serializable (thesis §7.1.3, §7.2.4)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from strads import cluster
from strads.checkpoints import current_session, has_session
from strads.cluster import Cluster
from strads.errors import ArgumentError
from strads.loops.argument_locks import locked
from strads.loops.checkpointed import pack_async, perform_loop, unpack_async
from strads.loops.driver import run_loop
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.specs import LoopOptions
from strads.loops.statistics import LoopStatistics
from strads.schedule.choice import STRATEGIES

_STRATEGIES = ("auto", *STRATEGIES)
_MODES = ("compiled", "python")
_ORDERS = ("any", "sequential")


def async_for(
    indices: Any,
    body: Callable[..., Any],
    *arguments: Any,
    strategy: str = "auto",
    order: str = "any",
    mode: str = "compiled",
    fastmath: bool = True,
    threads: int | None = None,
    seed: int = 0,
    record_order: bool = False,
) -> LoopStatistics:
    """Run `body(k, *arguments)` for every k in `indices`, in parallel; the result is that of some serial order.

    Where a plan pays, a run without side effects records which rows each task touches. In the plan made from that, no
    two threads ever touch the same written row at the same time; it is kept for calls with the same body, indices and
    index tables. Other loops, and first calls that planning would slow down, run in their order on one thread.

    Parameters
    ----------
    indices
        A range, a number of iterations, or a one-dimensional sequence of integers.
    body
        A plain Python function in the subset that Numba compiles. Its first parameter is the loop index. It may
        call other functions. Rows selected by values that the loop itself changes are *volatile*: checked in the run.
    *arguments
        dvectors, maps (of existing whole-number keys), `strads.relaxed(v)`, `strads.readonly(v)`, `strads.snapshot(v)`,
        `strads.accumulator(...)`, `strads.random(...)`, `strads.weights(...)`, numbers, tuples of numbers, and arrays
        that it only reads. A Python float takes the floating dtype of the tables, as do float literals in the body.
    strategy
        "auto", or one of "independent", "rotation", "buckets", "components", "colouring", "wavefront", "sequential",
        "locked". The result of a "locked" loop depends on timing; that of all others depends on the plan alone.
    order
        "any": the result is that of some serial order; "sequential": that of the order of `indices`, bitwise equal to
        the sequential loop, in parallel as far as its dependences allow. For loops whose iterations read what earlier
        ones wrote: dynamic programming, triangular solves, games in chronological order.
    mode
        "compiled", or, for debugging, "python": by the interpreter, one task at a time, with every access checked.
    fastmath
        Whether sums may be reordered, which lets the compiler vectorize them.
    threads
        Number of threads; by default that of `strads.init`, which must not be overridden on a cluster.
    seed
        Determines the order of tasks if a strategy samples them.
    record_order
        Whether `order` of the result gives an equivalent serial order.

    Returns
    -------
    LoopStatistics
        Times, strategy, parallelism, and the plan: `print(stats.plan.explain())`.

    Raises
    ------
    ArgumentError
        For an invalid argument.
    CompileError
        For a body that cannot be compiled; the message starts with the offending line.
    BodyIndexError
        For an index out of range; names line, table, index and bound. No table has been changed.
    BodyKeyError
        For a key that a map does not contain; names line, map and key. No table has been changed.
    AccessPatternError
        If tasks touch other rows than those planned for by a requested `strategy`. Tables are as before the call.
    BodyError
        If the body raises.
    PlanError
        For a strategy that is not applicable to this loop.
    """
    _check_options(strategy, order, mode, seed)
    runtime = cluster.current()
    loop_indices = LoopIndices.of(indices)
    interpreted = mode == "python"
    team = None
    if runtime.is_local or interpreted:
        team = runtime.team(threads)
    else:
        check_node_threads(threads, runtime.threads)
    size = None if team is None else team.size
    options = LoopOptions(strategy, int(seed), bool(fastmath), order, interpreted, threads=size, team=team)

    def run() -> LoopStatistics:
        place: Cluster = runtime.here if runtime.is_local or interpreted else runtime.cluster
        with locked(arguments):
            return run_loop(
                place,
                body,
                arguments,
                loop_indices,
                options,
                record_order=record_order,
                remembers=not has_session(),
            )

    if current_session() is None:
        return run()
    chosen = loop_indices.signature, strategy, order, bool(fastmath), int(seed)
    return perform_loop("async_for", run, body, arguments, chosen, pack_async, unpack_async)


def check_node_threads(threads: int | None, of_node: int) -> None:
    """Reject a number of threads that differs from that of the nodes."""
    if threads is not None and cluster.check_threads(threads) != of_node:
        raise ArgumentError(
            f"threads={threads}: the nodes of this cluster have {of_node} threads each; strads.init(threads=…) chooses"
        )


def _check_options(strategy: str, order: str, mode: str, seed: int) -> None:
    for name, value, known in (("strategy", strategy, _STRATEGIES), ("order", order, _ORDERS), ("mode", mode, _MODES)):
        if value not in known:
            raise ArgumentError(f"{name}={value!r} is unknown; choose one of {', '.join(known)}")
    check_seed(seed)


def check_seed(seed: object, *, may_be_none: bool = False) -> None:
    """Reject what is no seed."""
    if seed is None and may_be_none:
        return
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        also = ", or None" if may_be_none else ""
        raise ArgumentError(f"seed={seed!r}: give a whole number, 0 or more{also}")
