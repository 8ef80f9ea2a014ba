"""What a display shows: the epochs done, the time used and left, the figures of the latest record."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strads.progress.figures import format_figure, samples_per_second

PREPARING = "preparing"
COMPILING = "compiling: this takes some seconds, the first time"


@dataclass(frozen=True)
class Shown:
    """What a display shows of an estimator's records.

    Attributes
    ----------
    measures : dict of str → str
        Keys of a record → labels shown to the user, for instance `{"rmse": "RMSE"}`.
    unit : str
        Unit of `samples` in the records.
    period : str
        What the estimator calls a pass over the data.
    beginning : str
        Text until the first epoch is done, while nothing is being compiled.
    has_plan : bool
        Whether most trainings need all of their epochs, so that the number left is worth showing.
    """

    measures: Mapping[str, str] = field(default_factory=dict)
    unit: str = "samples"
    period: str = "epoch"
    beginning: str = PREPARING
    has_plan: bool = True


class State:
    """How far a training has come.

    Attributes
    ----------
    epochs : int or None
        Largest number of epochs; None if unknown.
    shown : Shown
        What is shown of the records.
    """

    def __init__(self, epochs: int | None, shown: Shown) -> None:
        self.epochs = epochs
        self.shown = shown
        self.beginning = shown.beginning  # shown until the first epoch is done
        self.done = 0  # number of the latest epoch
        self.rate = math.nan  # samples per second between the latest two records
        self._record: Mapping[str, Any] | None = None
        self._began = self._first = self._latest = time.monotonic()
        self._ended: float | None = None

    def begin(self) -> None:
        """Record that training begins now."""
        self._began = self._first = self._latest = time.monotonic()

    def compiles(self) -> None:
        """Record that something is being compiled."""
        self.beginning = COMPILING

    def end(self) -> None:
        """Record that training has ended."""
        self._ended = time.monotonic()

    def add(self, record: Mapping[str, Any]) -> None:
        """Record that an epoch is done."""
        self._latest = time.monotonic()
        if self._record is None:
            self._first = self._latest
        else:
            self.rate = samples_per_second((self._record, record))
        self._record = record
        self.done = int(record["iteration"])

    @property
    def epoch(self) -> str:
        """Such as "epoch  3/20"."""
        if self.epochs is None:
            return f"{self.shown.period} {self.done}"
        return f"{self.shown.period} {self.done:{len(str(self.epochs))}}/{self.epochs}"

    @property
    def is_over(self) -> bool:
        """Whether training has ended."""
        return self._ended is not None

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return (time.monotonic() if self._ended is None else self._ended) - self._began

    @property
    def left(self) -> float | None:
        """Expected seconds to the end; None before two epochs are done, since the first one compiles."""
        if self.epochs is None or self.done < 2 or self._ended is not None:
            return None
        per_epoch = (self._latest - self._first) / (self.done - 1)
        return per_epoch * (self.epochs - self.done) - (time.monotonic() - self._latest)

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Labels and values of the measures that the latest record has."""
        record = self._record or {}
        return [(label, format_figure(record[key])) for key, label in self.shown.measures.items() if key in record]
