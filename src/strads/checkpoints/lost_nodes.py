"""Replacing lost nodes: the state of the program is restored from the latest snapshot."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from strads.checkpoints.manifests import Manifest
from strads.checkpoints.operators import is_result
from strads.checkpoints.re_execution import LateOperator, ReExecution, Step, that_count, write_of
from strads.checkpoints.roots import Roots
from strads.errors import NodeFailure


class Nodes(Protocol):
    """The nodes of a cluster that can be replaced."""

    def check_nodes(self) -> None:
        """Raise a NodeFailure if a node is lost."""

    def replace_nodes(self) -> None:
        """Replace all nodes after one was lost; raise a NodeFailure if that is impossible."""


class NodeRecovery:
    """The operators run since the latest snapshot, which are repeated on other nodes; `inside`: as in `ReExecution`."""

    def __init__(
        self, nodes: Nodes, roots: Roots, past: ReExecution, inside: Callable[[], AbstractContextManager[None]]
    ):
        self.nodes = nodes
        self._roots, self._past, self._inside = roots, past, inside
        self._recent: list[Step] = []
        self._gap = -1  # position of the latest write that is neither kept nor in a snapshot

    def ran(self, operator: LateOperator) -> None:
        """Keep an operator that has finished."""
        self._recent.append(operator.step())

    def keep_writes(self, position: int, numbers: list[int], *, is_saved: bool) -> None:
        """Keep what the program's own code has written to roots before the operator at a position.

        `is_saved`: whether the latest snapshot has what it wrote to the nodes.
        """
        with self._inside():
            for number in numbers:
                root = self._roots.get(number)
                if root is not None and not is_on_nodes(root):
                    self._recent.append(write_of(self._roots, number, position))
                elif root is not None and not is_saved:
                    self._gap = position

    def forget_before(self, position: int) -> None:
        """Forget what the snapshot at a position has."""
        self._recent = [step for step in self._recent if step.position >= position]

    def replace(self, error: NodeFailure, latest: Manifest | None, roots: list[tuple[int, Any]], running: int) -> None:
        """Replace the nodes, and bring the roots in use to the present state; the caller repeats `running` operators.

        `error`, what has happened, is raised if they cannot be replaced, or if something that they had is lost.
        """
        used = [(number, root) for number, root in roots if not is_result(root)]
        if latest is None or latest.position <= self._gap or any(number not in latest.states for number, _ in used):
            raise error
        recent = [step for step in self._recent if step.position >= latest.position]
        again = that_count(recent, self._roots, stale=frozenset())
        count = sum(not step.is_write for step in again) + running
        warnings.warn(
            f"{error}. The nodes are replaced; {count} operators since the latest snapshot run again",
            RuntimeWarning,
            stacklevel=6,
        )
        self.nodes.replace_nodes()
        with self._inside():  # results are here, as the program's own code has left them
            results = [write_of(self._roots, number, latest.position) for number, root in roots if is_result(root)]
        if not self._past.restore(latest, used):
            raise error
        with self._inside():
            for step in again + results:
                step.run()


def is_on_nodes(root: Any) -> bool:
    """Whether a lost node has taken a root's state along."""
    return root is not None and bool(getattr(root, "is_on_nodes", True))
