"""The checkpoints in force: those of `strads.init(checkpoint_dir=…)`, or of a `with strads.checkpoint(…)`."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from strads.checkpoints.digests import InCode
from strads.checkpoints.operators import Data, Operator
from strads.checkpoints.preemption import snapshot_at_sigterm
from strads.checkpoints.session import Session
from strads.checkpoints.trees import Load, Save
from strads.errors import ArgumentError, CheckpointError

_session: Session | None = None


def _leave() -> None:
    global _session
    _session = None


if hasattr(os, "register_at_fork"):  # a child is another program
    os.register_at_fork(after_in_child=_leave)


def current_session() -> Session | None:
    """Return the session that operators belong to now.

    None if there is none, if an operator is running, or in another thread than the session's.
    """
    session = _session
    if session is None or session.is_inside or session.closed or not session.is_of_this_thread:
        return None
    return session


def has_session() -> bool:
    """Whether the program has checkpoints, also while an operator runs."""
    session = _session
    return session is not None and not session.closed


def perform(operator: Operator) -> Any:
    """Run an operator, as a step of the session in force; those that other operators or threads start do not count."""
    session = current_session()
    return operator.run() if session is None else session.perform(operator)


@contextmanager
def preparing() -> Iterator[None]:
    """Context of preparations: what would be operators runs again when the program is executed again."""
    session = current_session()
    with nullcontext() if session is None else session.inside():
        yield


def learned_data(*data: Any, start: Any = None) -> Data | None:
    """Return the data that an operator learns from, with its digest, or None without checkpoints.

    `start` is what training starts from and may change.
    """
    return None if current_session() is None else Data(data, start)


def observe(root: Any, *, writes: bool = False) -> None:
    """Declare that the program is about to read a root's state outside of operators, or to write it."""
    if (session := _session) is not None:
        session.observe(root, writes=writes)


def forget(root: Any) -> None:
    """Declare that nothing will read a root any more, also when the program is executed again."""
    if (session := _session) is not None:
        session.forget(root)


def record(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return `function(*arguments)`; a restarted program gets the same value without calling it.

    For values that plain Python code computes from tables, such as an error that is printed in each epoch: a restarted
    program would need the tables of that moment to compute it again.

    Parameters
    ----------
    function
        Called unless a checkpoint has its value. It must not change anything. Its code, and the numbers, texts, arrays
        and containers that it refers to, must be the same in a restarted program.
    *arguments
        Passed to it; as those of all operators, the same in a restarted program.

    Returns
    -------
    What it returned: numbers, texts, arrays of up to 1 MiB, and containers of these.

    Raises
    ------
    CheckpointError
        If a checkpoint cannot hold the value.

    Examples
    --------
    >>> import strads
    >>> w = strads.dvector.zeros(3)
    >>> strads.record(lambda: float(w.to_numpy().sum()))
    0.0
    """
    name = f"record {getattr(function, '__name__', type(function).__name__)}"

    def call() -> Any:
        value = function(*arguments)
        if not has_session():
            return value
        try:
            return Load()(pack(value))  # what a restarted program will get
        except CheckpointError as error:
            raise CheckpointError(
                f"strads.{name}: a checkpoint cannot hold what it returns: {error}. Return numbers, texts, arrays of "
                "up to 1 MiB, or containers of these"
            ) from error

    def pack(value: Any) -> Any:
        return Save(inline=1 << 20)(value)

    return perform(Operator(name, call, lambda: InCode((function, arguments)), pack=pack))


@contextmanager
def running_session(session: Session) -> Iterator[Session]:
    """Context in which operators belong to a session; SIGTERM writes a last snapshot. Closes it at the end."""
    global _session
    if _session is not None and not _session.closed:
        raise ArgumentError(f"this program is already saved to {_session.folder.url}: checkpoints cannot be nested")
    _session = session
    try:
        with snapshot_at_sigterm(session):
            yield session
    finally:
        session.close()
        if _session is session:  # not in the child of a fork
            _leave()


@contextmanager
def checkpoint(url: str | os.PathLike[str], *, every: int = 1, keep: int = 2) -> Iterator[Session]:
    """Context in which the program is saved to a folder; started again after a crash, it continues from there.

    Loops, engines, runs of the parameter server and epochs of estimators are *operators*. After each of them what it
    has changed is written in the background. When the same program runs again with the same folder, it is executed
    from the beginning, but operators that had finished are skipped, so that it arrives where it was in a moment, with
    all its variables. See the guide "Checkpoints".

    Parameters
    ----------
    url : path, or URL of fsspec
        The folder; made if it does not exist. Nodes on other machines must be able to reach it too.
    every : int
        Number of operators between snapshots. One that would begin before the one before is written is left out.
    keep : int
        How many snapshots stay, besides those of moments when the program has read tables itself.

    Raises
    ------
    CheckpointError
        By the first operator that is not the one of the run that wrote the folder: the program, its arguments or its
        input have changed.
    """
    with running_session(Session(url, every=every, keep=keep)) as session:
        yield session
