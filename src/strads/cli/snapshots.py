"""Saving a model now and then while it is trained."""

import time
from pathlib import Path
from typing import Protocol

_SHARE = 0.02  # of the time goes into snapshots
_FIRST = 2.0  # seconds of training before the first one


class Savable(Protocol):
    """A model that can be saved."""

    n_iter_: int

    def save(self, path: Path) -> None:
        """Write the model to a file."""
        ...


class Snapshots:
    """Keeps a model file that is not much older than the model, at a small share of the time.

    What is lost with a node, or with a process that has no time to save, is then only what was learnt since.

    Parameters
    ----------
    model : Savable
        What is trained; between two epochs, `take_if_due` may save it.
    path : Path
        The model file.

    Attributes
    ----------
    epoch : int or None
        The epoch that the file has the model of.
    """

    def __init__(self, model: Savable, path: Path) -> None:
        self.epoch: int | None = None
        self._model = model
        self._path = path
        self._due = time.monotonic() + _FIRST

    def take_if_due(self) -> None:
        """Save the model if that was not done for long enough."""
        if time.monotonic() >= self._due:
            self.take(self._model.n_iter_)

    def take(self, epoch: int) -> None:
        """Save the model, which is that of the given epoch."""
        start = time.monotonic()
        self._model.save(self._path)
        self.epoch = epoch
        end = time.monotonic()
        self._due = end + max(_FIRST, (end - start) / _SHARE)
