"""The actor class: all that Ray needs to know of a node.

Ray sends this class by value, because a fresh worker may not be able to import strads before it has been told where
the driver found it (a checkout on PYTHONPATH). So strads is imported inside the methods only.
"""

import socket
import sys
from typing import Any

import ray


class NodeActor:
    """A node. Programs, messages and control calls each have their own thread, so none waits for another."""

    def __init__(self, path: list[str]):
        """Add the driver's module search path; directories that do not exist here are harmless."""
        sys.path.extend(entry for entry in path if entry not in sys.path)
        from strads.cluster.ray.node import RayNode

        self._node = RayNode()

    @ray.method(concurrency_group="control")
    def host(self) -> str:
        """Return the host's name."""
        return socket.gethostname()

    @ray.method(concurrency_group="control")
    def connect(self, rank: int, hosts: list[str], peers: list[Any], threads: int, timeout: float) -> None:
        """Introduce the other nodes to this one."""
        self._node.connect(rank, hosts, peers, threads, timeout)

    @ray.method(concurrency_group="control")
    def stop(self, run: int, reason: str) -> None:
        """End a program."""
        self._node.stop(run, reason)

    @ray.method(concurrency_group="programs")
    def execute(self, run: int, path: list[str], common: list[Any], own: list[Any]) -> list[Any]:
        """Run a program; return its encoded outcome."""
        sys.path.extend(entry for entry in path if entry not in sys.path)
        return self._node.execute(run, common, own)

    @ray.method(concurrency_group="messages")
    def deliver(self, label: tuple[int, int, list[Any]], *parts: list[Any]) -> None:
        """Receive messages of another node."""
        source, number, labels = label
        self._node.comm.deliver(source, number, (labels, list(parts)))
