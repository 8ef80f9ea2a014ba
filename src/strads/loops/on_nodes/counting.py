"""Loops that count: threads add integers to copies of the counters, and run concurrently whatever rows they share."""

from strads.cluster import Node
from strads.loops.arguments import BoundArguments
from strads.loops.on_nodes.recording import find_crowded_row
from strads.loops.on_nodes.specs import LoopFacts, LoopSpec
from strads.loops.program import LoopProgram

_CACHED = 1 << 20  # bytes of counters that stay in a core's cache: then no order of the tasks is faster than another
_LINE = 64  # bytes: to copy as many is negligible beside a task


def able_counters(spec: LoopSpec, bound: BoundArguments, program: LoopProgram) -> frozenset[int]:
    """Return the tables to which the loop only adds integers, if threads can have copies of them."""
    counters, tables = program.facts.counters, bound.tables()
    if spec.counters or spec.alone or spec.options.strategy != "auto":
        return frozenset()
    if bound.sums_floats or program.cast.near:
        return frozenset()  # sums of floats and draws depend on the jobs, and these would on the number of threads
    size = sum(tables[position].storage.nbytes for position in counters)
    return counters if size <= _LINE * len(spec.indices) else frozenset()


def are_best_apart(counters: frozenset[int], bound: BoundArguments, program: LoopProgram) -> bool:
    """Whether no plan is faster than copies: the counters are all that the loop writes, and fit in a cache."""
    size = sum(bound.tables()[position].storage.nbytes for position in counters)
    return _are_all(counters, program) and size <= _CACHED


def hold_all_up(
    counters: frozenset[int],
    node: Node,
    spec: LoopSpec,
    bound: BoundArguments,
    program: LoopProgram,
    facts: LoopFacts | None,
) -> bool:
    """Whether a loop that one thread has to run could run on several if its counters were copied.

    `facts`: those of the loop without copies, on node 0.
    """
    if _are_all(counters, program):
        return True
    if node.size > 1:  # records are together on node 0
        return any(node.comm.allgather(facts is not None and not facts.crowds_apart))
    team = spec.options.team or node.team
    return find_crowded_row(program, bound, spec.indices, team, ignoring=counters) is None


def _are_all(counters: frozenset[int], program: LoopProgram) -> bool:
    """Whether tasks conflict over the counters only."""
    return counters == {p for p in program.facts.written if program.cast.roles[p].is_recorded} and bool(counters)
