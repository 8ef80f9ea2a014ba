"""Ending a run cleanly on Ctrl-C and on SIGTERM."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from strads import cluster

EXIT_CODE = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Within this context SIGINT and SIGTERM raise KeyboardInterrupt, and are remembered.

    To be entered when it has been chosen where programs run: backends have handlers of their own.

    Attributes
    ----------
    received : str or None
        Name of the signal that came.
    on_first : function
        Called with that name at once, whatever is interrupted.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self.on_first: Callable[[str], object] = lambda signal: None
        self._shielded = self._deferred = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        catch = cluster.current().cluster.catch
        self._before = {number: catch(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come: compiled code may have swallowed the first one."""
        if self.received is not None:
            raise KeyboardInterrupt

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Remember signals without raising, while what was learnt is written to disk."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Leave it to `check` to raise for the first signal, when the model is whole; a later signal raises."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first, self.received = self.received is None, signal.Signals(number).name
        if first:
            self.on_first(self.received)
        if not self._shielded and not (first and self._deferred):
            raise KeyboardInterrupt
