"""Loops on the nodes of a cluster: the driver's side, and the node programs that it starts."""

from strads.loops.on_nodes.driver import run_on_nodes

__all__ = ["run_on_nodes"]
