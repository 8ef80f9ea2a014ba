"""The driver's own process as the only node: node programs run on the calling thread."""

from collections.abc import Callable, Sequence
from typing import Any

from strads.cluster.threads import ThreadsCluster


class Here(ThreadsCluster):
    """A single-node cluster that holds no lock while a program runs: programs may start others, on any thread."""

    def __init__(self, threads: int):
        super().__init__(1, threads)

    def run(
        self, program: Callable[..., Any], *arguments: Any, each: Sequence[tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Run a node program immediately; its exceptions propagate unchanged."""
        return [program(self.node(0), *arguments, *(() if each is None else each[0]))]

    def discard(self, name: str) -> None:
        """Drop a stored object immediately."""
        self.node(0).store.pop(name, None)
