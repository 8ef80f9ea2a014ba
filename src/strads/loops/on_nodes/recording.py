"""Reconnaissance on a node: its tasks, recorded in the fastest way that the body allows (thesis §7.2.2)."""

from typing import Any

from numpy.typing import NDArray

from strads.cluster import Node, ThreadTeam
from strads.dds.shard import Shard, complete
from strads.engine.keyed import NO_SUCH_KEY
from strads.errors import BodyError, BodyIndexError, BodyKeyError
from strads.loops.arguments import BoundArguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram
from strads.loops.reconnaissance import Recorder, TaskFailed
from strads.schedule.access import AccessRecords


def record(
    node: Node,
    program: LoopProgram,
    bound: BoundArguments,
    indices: LoopIndices,
    shards: dict[int, Shard],
    team: ThreadTeam,
    memory: NDArray[Any] | None = None,
) -> AccessRecords:
    """Record with ghosts where the body allows; with the real rows of the tables, fetched first, where not.

    Records may be laid into `memory`, whatever its dtype.

    Raises
    ------
    BodyIndexError, BodyKeyError, BodyError
        When a task fails; nothing has been written.
    """
    recorder, records = program.compile_recorder(bound, indices), None
    if not recorder.scratch:
        try:
            records = recorder.run(bound, indices, team, memory)
        except TaskFailed:  # a real failure, or only made-up values: real rows tell
            records = None
    if all(node.comm.allgather(records is not None)):
        assert records is not None
        return records
    complete(node, *shards.values())
    if not recorder.scratch:
        try:
            return _recorded(program, recorder, bound, indices, team)
        except _OnlyGhostsFailed:
            pass
    return _recorded(program, program.compile_scratch_recorder(bound, indices), bound, indices, team)


class _OnlyGhostsFailed(Exception):
    pass


def _recorded(
    program: LoopProgram, recorder: Recorder, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam
) -> AccessRecords:
    try:
        return recorder.run(bound, indices, team)
    except TaskFailed as failure:
        index = indices[failure.task]
        program.explain(bound, index)
        if not recorder.scratch:
            raise _OnlyGhostsFailed from failure
        cause = failure.__cause__
        kind: type[Exception] = BodyIndexError if isinstance(cause, IndexError) else BodyError
        if isinstance(cause, KeyError) and cause.args == (NO_SUCH_KEY,):
            kind = BodyKeyError
        raise kind(f"task {index} raised {type(cause).__name__}: {cause}; no table was changed") from cause
