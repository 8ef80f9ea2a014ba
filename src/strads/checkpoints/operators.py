"""An operator: a step of a program that a restarted program need not repeat."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from strads.checkpoints.digests import digest
from strads.checkpoints.trees import Load, Save, Tree


class Root(Protocol):
    """Something whose state operators change: a table, an engine, a training run.

    It may have more:

    - `version`, which increases with each change; without, every operator that names a root changes it;
    - `is_closed`, whether nothing can use it any more;
    - `is_on_nodes`, whether a lost node has taken it along; so it is assumed without;
    - `loads_on_nodes`, whether nodes read its arrays from a snapshot, and not the driver;
    - `is_result`, whether operators make it, but do not read it;
    - `fixed_content()`, a checksum or None, by which a changed input is noticed;
    - `is_shared()`, whether other code may see its memory.
    """

    def checkpoint_state(self, save: Save) -> Tree:
        """Return the state."""

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore the state."""


def is_result(root: Any) -> bool:
    """Whether operators make a root, but do not read it; what they have made is looked at right after them."""
    return bool(getattr(root, "is_result", False))


def loads_on_nodes(root: Any) -> bool:
    """Whether nodes read the arrays of a root from a snapshot, and not the driver."""
    return bool(getattr(root, "loads_on_nodes", False))


def is_closed(root: Any) -> bool:
    """Whether nothing can use a root any more."""
    return bool(getattr(root, "is_closed", False))


def is_memory_shared(root: Any) -> bool:
    """Whether other code may see the memory of a root."""
    return root is not None and hasattr(root, "is_shared") and bool(root.is_shared())


class Value(Protocol):
    """Something small that an operator changes, such as an accumulator; its state is kept for each operator."""

    def small_state(self) -> Any:
        """Return the state: a number or text."""

    def restore_small_state(self, state: Any) -> None:
        """Restore it."""


class Data:
    """Data that operators learn from, and its digest.

    Attributes
    ----------
    digest
        Of the data as it was when this object was made, and of what training starts from.
    """

    def __init__(self, parts: tuple[Any, ...], start: Any = None):
        self._parts, self._own = parts, digest(*parts)
        self.digest = digest(self._own, start)

    def is_unchanged(self) -> bool:
        """Whether the data is still what it was."""
        return digest(*self._parts) == self._own


@dataclass
class Operator:
    """A step of a program.

    Attributes
    ----------
    name
        For messages, such as "async_for sgd".
    run
        Does it. May be called later, and more than once after the state was restored.
    signature
        Returns everything else that determines what it does: arguments and code, for `digest`.
    roots
        What it may change or read.
    values
        Small things that it may change.
    data : Data, optional
        What it learns from, apart from roots; its digest is part of the signature.
    changes_arguments
        Whether it may write to arguments that are not roots. If it has, its result cannot be restored.
    pack, unpack
        Turn what `run` returns to a tree for JSON, and back; by default it may hold what `Save` can represent.
    """

    name: str
    run: Callable[[], Any]
    signature: Callable[[], Any]
    roots: Sequence[Any] = ()
    values: Sequence[Any] = ()
    data: Data | None = None
    changes_arguments: bool = False
    pack: Callable[[Any], Tree] = field(default=lambda result: Save()(result))
    unpack: Callable[[Tree], Any] = field(default=lambda tree: Load()(tree))
