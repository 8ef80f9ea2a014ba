"""The first look at a loop whose rows are chosen by values that it writes: whether its tasks keep to their rows."""

from dataclasses import dataclass

from strads.loops.on_nodes.binding import compiling
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.sequential_reasons import LEFT_ROWS, SequentialReason
from strads.loops.python_mode import record_few
from strads.schedule.records.access import AccessRecords, same_rows
from strads.schedule.records.hot_rows import hot_row


@dataclass(frozen=True)
class Look:
    """What some tasks touch at one point in time."""

    records: AccessRecords | None  # None if one of them fails
    is_interpreted: bool  # whether the interpreter has run them, not compiled code
    compile_seconds: float


def look(tasks: NodeTasks, earlier: Look | None = None) -> Look:
    """Record some tasks with the rows as they are now, in the same way as `earlier` (a collective).

    The interpreter runs a few of them, or compiled code more if they are long.
    """
    tasks.gather_all_rows()
    program, bound, indices = tasks.program, tasks.bound, tasks.indices
    if earlier is None or earlier.is_interpreted:
        found = record_few(program.body, bound, program.argument_roles, indices)
        if earlier is not None or found is not None:
            return Look(found, True, 0.0)
    _, seconds = compiling(lambda: program.compile_recorder(bound, indices))
    return Look(tasks.over(indices).sample, False, seconds)  # `tasks` would return that of an earlier look


def reason_to_stay(before: Look, after: Look, *, in_order: bool) -> SequentialReason | None:
    """Return why a loop had better run in sequence, if so, given what its tasks touch before and after a run.

    `in_order`: whether their order matters.
    """
    if before.records is None or after.records is None or not same_rows(before.records, after.records):
        return LEFT_ROWS
    crowded = hot_row(after.records, in_order=in_order)
    return SequentialReason(crowded) if crowded else None
