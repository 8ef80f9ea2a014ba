"""Whether a program that is executed again is the one that wrote the checkpoint."""

from collections.abc import Mapping
from typing import Any

from strads.checkpoints.journal import Entry
from strads.checkpoints.re_execution import LateOperator
from strads.errors import CheckpointError, NodeFailure, ProgramStopped


def check_operator(late: LateOperator, contents: Mapping[int, str | None], entry: Entry, url: str) -> None:
    """Compare an operator with that of the earlier run, of which the journal has the entry.

    `contents`: checksums of what it is the first to use, or to use since the program's own code has written it, by
    number; None where unknown.

    Raises
    ------
    CheckpointError
        If they differ.
    """
    found = [(contents.get(n, ""), entry.contents.get(n, "")) for n in contents.keys() | entry.contents.keys()]
    is_same = all(None in pair or pair[0] == pair[1] for pair in found)  # one that only one run has written differs
    if entry.name == late.operator.name and entry.signature == late.signature and is_same:
        return
    if entry.name != late.operator.name:
        what = f"there it was {entry.name!r}"
    elif entry.signature != late.signature:
        what = "its arguments, its code or the version of Python or strads differ"
    else:
        what = "the content of a table, or of an engine, differs"
    raise _other_program(late, url, what)


def run_once_more(late: LateOperator, entry: Entry, url: str) -> Any:
    """Run an operator whose result the journal does not have: it must end as it did.

    Raises
    ------
    CheckpointError
        If it fails now and did not then, or the reverse. Where it fails as it did, its own error.
    """
    try:
        result = late.operator.run()
    except Exception as error:
        if is_of_program(error) and name_of(error) != entry.error:
            raise _other_program(late, url, f"it raises {name_of(error)} now, but did not then") from error
        raise
    if entry.error is not None:
        raise _other_program(late, url, f"there it raised {entry.error}")
    return result


def is_of_program(error: BaseException) -> bool:
    """Whether an error belongs to what a program does; interrupts, lost nodes and exhausted memory do not."""
    return isinstance(error, Exception) and not isinstance(error, NodeFailure | ProgramStopped | MemoryError)


def name_of(error: BaseException) -> str:
    """Return the name of an error's class, for the journal."""
    return type(error).__qualname__


def _other_program(late: LateOperator, url: str, what: str) -> CheckpointError:
    return CheckpointError(
        f"operator {late.position} of this program, {late.operator.name!r}, is not the one of the run that wrote the "
        f"checkpoint in {url}: {what}. Run the same program with the same input, or choose another checkpoint_dir to "
        "start from the beginning"
    )
