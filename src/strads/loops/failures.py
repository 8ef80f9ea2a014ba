"""Converts exceptions that a loop raises while it runs."""

from strads.bodies.functions import plain_function
from strads.engine.stopping import StoppedError
from strads.engine.views.indices import INDEX_ERROR, PATTERN_CHANGED
from strads.engine.views.keyed import NO_SUCH_KEY
from strads.errors import AccessPatternError, BodyError, BodyIndexError, BodyKeyError
from strads.loops.program import LoopProgram
from strads.user_code.source_location import SourceLine, describe, innermost_user_line

_NUMBA_INDEX_ERROR = "index is out of bounds"


def explain_failed_run(
    program: LoopProgram, error: Exception, *, restored: bool, how: str = "mode='python' shows the line"
) -> Exception:
    """Return the error to raise; `restored` says whether tables are as before the call, `how` how to find the line."""
    changed = "tables are as before the call" if restored else "tables keep the updates so far"
    body = plain_function(program.body)
    where = describe(*(program.facts.first_volatile_line or SourceLine.of(body)))
    hint = "" if program.facts.volatile else f". {how}"  # the interpreter refuses to run such a loop
    if isinstance(error, StoppedError):
        return BodyError(f"{where}\n  the loop was interrupted; {changed}")
    if isinstance(error, RuntimeError) and error.args == (PATTERN_CHANGED,):
        return AccessPatternError(
            f"{where}\n  a task touches other rows than reconnaissance recorded, because they depend on values "
            f"that the loop changes; {changed}. Choose rows by indices, read-only tables or the numbers of "
            "strads.random(seed), or read every row before the branch that may need it"
        )
    if isinstance(error, IndexError) and str(error) in (INDEX_ERROR, _NUMBA_INDEX_ERROR):
        return BodyIndexError(
            f"{where}\n  an index that depends on values that the loop changes is out of range ({error}); "
            f"{changed}{hint}"
        )
    if isinstance(error, KeyError) and error.args == (NO_SUCH_KEY,):
        return BodyKeyError(
            f"{where}\n  a key that depends on values that the loop changes is not in its map; {changed}{hint}"
        )
    where = innermost_user_line(error.__traceback__) or where  # Numba adds the line that raises
    return BodyError(f"{where}\n  the body raised {type(error).__name__}: {error}; {changed}")
