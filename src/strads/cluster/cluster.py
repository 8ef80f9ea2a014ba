"""A cluster: nodes on which the driver starts node programs."""

import itertools
import pickle
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from strads.cluster.driver import check_driver, running_on
from strads.cluster.messages import Message, decode, encode
from strads.cluster.node import Node, NodeInfo, Outcome, ProgramCall
from strads.cluster.thread_team import is_consequence
from strads.errors import ArgumentError, NodeError, NodeFailure, ProgramStopped

DEFAULT_TIMEOUT = 300.0  # seconds that a node waits for another


class Cluster(ABC):
    """Nodes, numbered from 0, and the driver that starts programs on them.

    Attributes
    ----------
    backend
        Its name in `strads.init`.
    size
        Number of nodes.
    threads
        Threads per node.
    timeout
        Seconds that a node waits for another before it raises NodeFailure.
    hosts
        Name of each node's host.
    runs
        Number of the latest program run; runs are counted from 1.
    closed
        Whether the nodes have been ended.
    before_close
        Called by `close`, while the nodes are still alive.
    """

    backend: str
    hosts: list[str]

    def __init__(self, size: int, threads: int, timeout: float):
        self.size = size
        self.threads = threads
        self.timeout = timeout
        self.runs = 0
        self._names = itertools.count(1)
        self._discarded: list[str] = []
        self._running = threading.RLock()
        self.closed = False
        self._failure: NodeFailure | None = None  # why the nodes can no longer be used, if something has happened
        self.before_close: list[Callable[[], None]] = []

    @property
    def is_local(self) -> bool:
        """Whether the driver's process is the only node."""
        return self.size == 1

    @abstractmethod
    def _start(self, calls: Sequence[ProgramCall]) -> list[Outcome]:
        """Run a call on each node and return the outcomes by rank; end all of them when one fails."""

    @abstractmethod
    def _close(self) -> None:
        """End the nodes."""

    def run(
        self, program: Callable[..., Any], *arguments: Any, each: Sequence[tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Run `program(node, *arguments, *each[node.rank])` on all nodes concurrently.

        Parameters
        ----------
        program
            A function; it is sent to the nodes with everything that it refers to.
        *arguments
            Arguments common to all nodes. Programs must not change them.
        each
            Additional arguments for each node, by rank.

        Returns
        -------
        What the program returned on each node, by rank.

        Raises
        ------
        NodeFailure
            When a node is lost or does not answer in time.
        ArgumentError
            When called from a node program.
        StradsError
            When called from a program of the parameter server.
        The first exception of the program, with rank, host and the original traceback as a note.
        """
        check_driver()
        if each is not None and len(each) != self.size:
            raise ArgumentError(f"arguments for {len(each)} nodes were given, but the cluster has {self.size}")
        if self._failure is not None:
            raise NodeFailure(str(self._failure), rank=self._failure.rank, host=self._failure.host)
        with running_on(self), self._running:
            if self.closed:
                raise NodeFailure("this cluster has been shut down: call strads.init again")
            self.runs += 1
            discarded, self._discarded = self._discarded, []
            own = [()] * self.size if each is None else each
            calls = [ProgramCall(self.runs, program, (*arguments, *more), discarded) for more in own]
            try:
                outcomes = self._start(calls)
            except BaseException:
                self._discarded += discarded  # perhaps no node has got them; to drop them twice does no harm
                raise
        raise_first(outcomes, self.hosts)
        return [outcome.value for outcome in outcomes]

    def describe(self) -> list[NodeInfo]:
        """Where each node runs."""
        return self.run(Node.info)

    def catch(self, number: int, handler: Callable[[int, FrameType | None], Any]) -> Any:
        """Install a signal handler in the driver, which may raise; returns what `signal.signal` would.

        Must be called by the main thread.
        """
        return signal.signal(number, handler)

    def new_name(self) -> str:
        """Return a name for `node.store` that is not in use."""
        return f"table {next(self._names)}"  # atomic: any thread may call this

    def discard(self, name: str) -> None:
        """Schedule a stored object to be dropped with the next program; may be called at any time, by any thread."""
        self._discarded.append(name)

    def close(self, failure: NodeFailure | None = None) -> None:
        """End the nodes, after calling `before_close`; programs started later raise `failure`, if given."""
        if not self.closed:
            self._failure = failure
            for hook in self.before_close:
                hook()
            self.closed = True
            self._close()


def raise_first(outcomes: Sequence[Outcome], hosts: Sequence[str]) -> None:
    """Raise the cause of a failed run: a program's own error before errors that it caused on other nodes."""
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if not failed:
        return
    first = min(failed, key=lambda outcome: (_is_consequence(outcome.error), outcome.rank))
    assert first.error is not None
    if first.trace:
        travelled = first.error.__traceback__ is None
        trace = f":\n{first.trace}" if travelled else ""  # otherwise the traceback is part of the exception
        first.error.add_note(f"raised on node {first.rank} ({hosts[first.rank]}){trace}")
    raise first.error


def _is_consequence(error: BaseException | None) -> int:
    if isinstance(error, ProgramStopped):
        return 2
    return 1 if isinstance(error, NodeFailure) or is_consequence(error) else 0


def encoded(outcome: Outcome) -> Message:
    """Encode an outcome for the driver; an error that cannot be sent is quoted, a value is named by its type."""
    try:
        pickle.loads(pickle.dumps(outcome.error))
    except Exception:
        outcome = replace(outcome, error=NodeError(f"{type(outcome.error).__name__}: {outcome.error}"))
    try:
        return encode(outcome, functions=True)
    except Exception as error:
        what = f"the result of node {outcome.rank}, a {type(outcome.value).__name__}, cannot be sent"
        return encode(Outcome(outcome.rank, error=NodeError(f"{what}: {error}"), trace=outcome.trace))


def decoded(rank: int, message: Message) -> Outcome:
    """Return the outcome that a node has sent."""
    try:
        outcome: Outcome = decode(message)
    except Exception as error:
        return Outcome(rank, error=NodeError(f"the result of node {rank} cannot be read: {error}"))
    return outcome
