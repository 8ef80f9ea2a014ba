"""Where programs run: nodes, their threads, and the messages between them."""

from strads.cluster.cluster import Cluster
from strads.cluster.comm import Comm, Traffic
from strads.cluster.cores import available_cores, check_threads
from strads.cluster.inbox import Arrival
from strads.cluster.node import Node, NodeInfo
from strads.cluster.runtime import Runtime, current, init, shutdown
from strads.cluster.thread_team import ThreadTeam

__all__ = [
    "Arrival",
    "Cluster",
    "Comm",
    "Node",
    "NodeInfo",
    "Runtime",
    "ThreadTeam",
    "Traffic",
    "available_cores",
    "check_threads",
    "current",
    "init",
    "shutdown",
]
