"""What can go wrong, by name. Every message says what was wrong, where, and what to do."""


class StradsError(Exception):
    """Base of all errors that strads raises on purpose."""


class ArgumentError(StradsError, TypeError):
    """An argument of a wrong type, or a combination of arguments that has no meaning."""


class InputError(StradsError, ValueError):
    """Data that cannot be used: a malformed line, a NaN, an id out of range, an empty file."""


class CompileError(StradsError):
    """A loop body that Numba cannot compile; the offending line comes first."""


class BodyIndexError(StradsError, IndexError):
    """A loop body indexes a table out of its bounds; found before anything was written."""


class BodyError(StradsError, RuntimeError):
    """A loop body raised an exception of its own while it ran."""


class AccessPatternError(StradsError):
    """A loop body touched a row that reconnaissance did not see: the plan would not be safe for it."""


class PlanError(StradsError, ValueError):
    """A strategy was asked for that cannot serve this loop."""
