"""Warnings that point at the user's code, however deep in the library they arise."""

import sys
import warnings

_WITHIN = {"strads", "sklearn"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, as if by the line outside of the library that has led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _WITHIN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
