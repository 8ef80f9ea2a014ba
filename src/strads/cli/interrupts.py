"""Ending a run cleanly on Ctrl-C, on SIGTERM, when the terminal is closed, and when nobody reads the output."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Self

from strads import cluster
from strads.signals_while_compiling import is_sent_again

_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class Interrupts:
    """Within this context SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt and are recorded.

    Enter it after choosing where programs run: backends install their own handlers.

    Attributes
    ----------
    received : str or None
        Name of the signal received.
    on_first : function
        Called immediately with that name, whatever is interrupted.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self.on_first: Callable[[str], object] = lambda signal: None
        self._shielded = self._deferred = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        catch = cluster.current().cluster.catch
        wanted = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]  # nohup ignores SIGHUP
        self._before = {number: catch(number, self._handle) for number in wanted}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal was received: compiled code may have swallowed the first one."""
        if self.received is not None:
            raise KeyboardInterrupt

    def shielded(self) -> AbstractContextManager[None]:
        """Record signals without raising, while results are written to disk."""
        return self._with("_shielded")

    def deferred(self) -> AbstractContextManager[None]:
        """Let `check` raise for the first signal, when the model is consistent; a later signal raises immediately."""
        return self._with("_deferred")

    @contextmanager
    def _with(self, flag: str) -> Iterator[None]:
        setattr(self, flag, True)
        try:
            yield
        finally:
            setattr(self, flag, False)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first, self.received = self.received is None, signal.Signals(number).name
        if first:
            self.on_first(self.received)
        if not self._shielded and not (first and self._deferred) and not is_sent_again(number):
            raise KeyboardInterrupt
