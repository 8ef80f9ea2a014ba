"""A node: the object that a node program receives."""

import os
import socket
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from strads.cluster.comm import Comm
from strads.cluster.cores import available_cores
from strads.cluster.thread_team import ThreadTeam


@dataclass(frozen=True)
class NodeInfo:
    """Where a node runs, for messages and `strads info`."""

    rank: int  # number of the node, from 0
    host: str  # name of its host
    pid: int  # of the process that it is, or is part of
    cores: int  # that this process may use
    threads: int  # its compute threads


class Node:
    """One participant of a cluster. A *node program* is a function `program(node, *args)` run on every node.

    Attributes
    ----------
    rank, size
        Number of this node, from 0, and the number of nodes.
    threads
        Number of compute threads; `team` holds the threads themselves.
    comm
        Connection to the other nodes.
    store
        Objects that programs keep here for later ones, by name: mainly shards of tables.
    """

    def __init__(self, comm: Comm, threads: int):
        self.comm = comm
        self.rank = comm.rank
        self.size = comm.size
        self.threads = threads
        self.store: dict[str, Any] = {}
        self._team: ThreadTeam | None = None
        self._making = threading.Lock()  # several programs may run on the driver's own node

    @property
    def team(self) -> ThreadTeam:
        """The threads of this node; started on first use."""
        with self._making:
            if self._team is None:
                self._team = ThreadTeam(self.threads)
            return self._team

    def info(self) -> NodeInfo:
        """Where this node runs."""
        return NodeInfo(self.rank, socket.gethostname(), os.getpid(), available_cores(), self.threads)

    def close(self) -> None:
        """Drop all stored objects and end the threads."""
        self.store.clear()
        if self._team is not None:
            self._team.close()
            self._team = None

    def __repr__(self) -> str:
        return f"<node {self.rank} of {self.size}, {self.threads} threads, {len(self.store)} stored objects>"


@dataclass(frozen=True)
class ProgramCall:
    """One run of a node program, as the driver sends it to a node."""

    run: int  # number of the run
    program: Callable[..., Any]
    arguments: tuple[Any, ...]  # those common to all nodes, then this node's own
    discarded: Sequence[str] = ()  # names of stored objects to drop


@dataclass(frozen=True)
class Outcome:
    """How a node program ended on one node."""

    rank: int  # of the node
    value: Any = None  # what the program returned
    error: BaseException | None = None  # the exception that it raised instead
    trace: str = ""  # the exception's traceback as text


def execute_call(node: Node, call: ProgramCall) -> Outcome:
    """Run a node program on this node; an exception becomes part of the outcome."""
    node.comm._inbox.start(call.run)
    for name in call.discarded:
        node.store.pop(name, None)
    try:
        value = call.program(node, *call.arguments)
    except BaseException as error:
        return Outcome(node.rank, error=error, trace=traceback.format_exc())
    return Outcome(node.rank, value)
