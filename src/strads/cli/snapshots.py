"""Periodic saving of a model during training."""

import time
from pathlib import Path
from typing import Any

import numpy as np

_SHARE = 0.02  # fraction of the time spent on snapshots
_FIRST = 2.0  # seconds of training before the first one


class Snapshots:
    """Keeps a recent model file, at a small fraction of the training time.

    If a node is lost, or a process has no time to save, only the progress since then is lost.

    Parameters
    ----------
    model : estimator
        The one being trained, which has `n_iter_` and `save`; `take_if_due` may save it between two epochs.
    path : Path
        The model file.

    Attributes
    ----------
    epoch : int or None
        The epoch of the saved model.
    """

    def __init__(self, model: Any, path: Path) -> None:
        self.epoch: int | None = None
        self._model = model
        self._path = path
        self._due = time.monotonic() + _FIRST

    def take_if_due(self) -> None:
        """Save the model if the last snapshot is old enough; if the disk is full, the earlier one stays."""
        if time.monotonic() < self._due:
            return
        start = time.monotonic()
        try:
            self.take(int(np.max(self._model.n_iter_)))
        except OSError:
            self._wait_from(start)

    def take(self, epoch: int) -> None:
        """Save the model of the given epoch."""
        start = time.monotonic()
        self._model.save(self._path)
        self.epoch = epoch
        self._wait_from(start)

    def _wait_from(self, start: float) -> None:
        """Let training go on for much longer than since `start`."""
        end = time.monotonic()
        self._due = end + max(_FIRST, (end - start) / _SHARE)
