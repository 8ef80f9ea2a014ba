"""The first look at a loop whose rows are chosen by values that it writes: whether its tasks keep to their rows."""

from strads.loops.on_nodes.binding import compiling
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.python_mode import record_few
from strads.schedule.records.access import AccessRecords, same_rows
from strads.schedule.records.hot_rows import hot_row

LEFT_ROWS = "a task has left the rows that were recorded for it"


def look(tasks: NodeTasks) -> tuple[AccessRecords | None, float]:
    """Record some tasks with the rows as they are now (a collective); also returns the seconds spent on compiling.

    The interpreter runs a few of them, or compiled code more if they are long. None if one fails.
    """
    tasks.gather_all_rows()
    program, bound, indices = tasks.program, tasks.bound, tasks.indices
    found = record_few(program.body, bound, program.argument_roles, indices)
    if found is not None:
        return found, 0.0
    _, seconds = compiling(program, lambda: program.compile_recorder(bound, indices))
    return tasks.sample(), seconds


def reason_to_stay(before: AccessRecords | None, after: AccessRecords | None) -> str:
    """Return why a loop had better run in sequence, given what its tasks touch before and after a run; empty if not."""
    if before is None or after is None or not same_rows(before, after):
        return LEFT_ROWS
    return hot_row(after) or ""
