"""Turns Numba's error messages into one that names the offending line first."""

import re
from collections.abc import Callable
from typing import Any

from numba.core.errors import NumbaError

from strads.errors import CompileError
from strads.loops.source_location import describe

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = re.compile(
    r"^(Failed in nopython mode pipeline.*|During: .*|There are \d+ candidate implementations:.*|- Of which.*|"
    r"Overload .*|File .*|With argument.*|Rejected as .*|raised from .*|<source elided>|\^+|"
    r"This is not usually a problem.*|To find out.*|https?://.*|Enable logging.*|\s*)$"
)


def explain(error: NumbaError, body: Callable[..., Any]) -> CompileError:
    """Return a CompileError for a body that Numba refused; the full text stays in `__cause__`."""
    text = _ANSI.sub("", str(error))
    filename = body.__code__.co_filename
    lines = re.findall(rf'File "(?:[^"]*{re.escape(filename.rsplit("/", 1)[-1])})", line (\d+)', text)
    location = getattr(error, "loc", None)
    if lines:
        line = int(lines[-1])
    elif location is not None and location.filename == filename:
        line = location.line
    else:
        line = body.__code__.co_firstlineno
    return CompileError(
        f"{describe(filename, line)}\n  Numba cannot compile this: {_reason(text)}\n"
        "  Loop bodies use the subset of Python and NumPy that Numba supports; mode='python' runs any body, slowly."
    )


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    useful = [line for line in lines if line and not _NOISE.match(line)]
    return "\n    ".join(useful[:3]) if useful else text.strip()[:200]
