"""The exceptions of strads. Every message says what was wrong, where, and what to do."""

from functools import partial


class StradsError(Exception):
    """Base of all errors that strads raises on purpose."""


class ArgumentError(StradsError, TypeError, ValueError):
    """An argument of the wrong type or value, or an invalid combination of arguments."""


class InputError(StradsError, ValueError):
    """Data that cannot be used: a malformed line, a NaN, an id out of range, an empty file."""


class UnknownKeyError(InputError, KeyError):
    """A key that a map does not have, or a word, a user or an item that a model does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


class CompileError(StradsError):
    """A loop body that cannot be compiled; the offending line comes first."""


class BodyIndexError(StradsError, IndexError):
    """A loop body indexes a table out of bounds; detected before anything was written.

    `is_certain`: whether it occurs whatever earlier iterations write.
    """

    is_certain = True


class BodyKeyError(StradsError, KeyError):
    """A loop body looks up a key that the map does not have; detected before anything was written.

    `is_certain`: whether it occurs whatever earlier iterations write.
    """

    is_certain = True

    def __str__(self) -> str:
        return str(self.args[0])


class BodyError(StradsError, RuntimeError):
    """A loop body raised an exception while it ran."""


class AccessPatternError(StradsError):
    """A loop body accessed a row that reconnaissance did not see, so the plan is not safe for it."""


class PlanError(StradsError, ValueError):
    """The requested strategy cannot be used for this loop."""


class CheckpointError(StradsError, RuntimeError):
    """A checkpoint cannot be written, read, or continued by this program."""


class NodeFailure(StradsError, RuntimeError):
    """A node of the cluster is lost, or has not answered within the time limit.

    Attributes
    ----------
    rank, host
        The node, if known.
    """

    def __init__(self, message: str, *, rank: int | None = None, host: str | None = None):
        super().__init__(message)
        self.rank = rank
        self.host = host

    def __reduce__(self) -> tuple[object, ...]:
        return partial(NodeFailure, rank=self.rank, host=self.host), (str(self),)


class NodeError(StradsError, RuntimeError):
    """A node program raised an exception that cannot be sent to the driver; its text and traceback are kept."""


class ProgramStopped(StradsError, RuntimeError):
    """A node program was stopped because another node has failed."""
