"""Progress display of a training: a bar on a terminal, one plain line per epoch elsewhere."""

import math
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from strads.errors import ArgumentError

COMPILING = "compiling the loop: the first epoch takes some seconds longer"
_REFRESHES_PER_SECOND = 8


class EpochProgress:
    """Shows the epochs of a training; its `update` is the `on_iteration` of an estimator.

    Parameters
    ----------
    epochs : int or None
        Largest number of epochs; None if unknown.
    measures : dict of str → str
        What to show of a record: its key and the label for people, for instance `{"rmse": "RMSE"}`.
    unit : str, default "samples"
        Unit of `samples` in the records.
    period : str, default "epoch"
        What the estimator calls a pass over the data.
    beginning : str, optional
        Text shown until the first epoch is done; by default that the loop is being compiled.
    console : rich.console.Console, optional
        Console to write to; standard output by default.

    Raises
    ------
    ArgumentError
        If there are no epochs to show.

    Examples
    --------
    >>> import scipy.sparse
    >>> from strads.models import MatrixFactorization
    >>> ratings = scipy.sparse.random_array((20, 30), density=0.5, random_state=0)
    >>> with EpochProgress(3, {"rmse": "RMSE"}, unit="ratings") as progress:  # doctest: +ELLIPSIS
    ...     _ = MatrixFactorization(4, max_iter=3).fit(ratings, on_iteration=progress.update)
    compiling the loop...
    epoch 1/3  RMSE ...
    epoch 2/3  RMSE ...
    epoch 3/3  RMSE ...
    """

    def __init__(
        self,
        epochs: int | None,
        measures: Mapping[str, str],
        *,
        unit: str = "samples",
        period: str = "epoch",
        beginning: str = COMPILING,
        console: Console | None = None,
    ) -> None:
        if epochs is not None and epochs < 1:
            raise ArgumentError(f"epochs={epochs!r}: give a whole number, 1 or more")
        self._console = console if console is not None else Console(highlight=False)
        self._state = _State(epochs, dict(measures), unit, period, beginning)
        fancy = self._console.is_terminal and not self._console.is_dumb_terminal
        self._display: _Display = _Bar(self._state, self._console) if fancy else _Lines(self._state, self._console)

    def update(self, record: Mapping[str, Any]) -> None:
        """Show the record of an epoch: `iteration`, `seconds`, `samples`, and the measures."""
        if record["iteration"] >= 1:
            self._state.add(record)
            self._display.epoch()

    def __enter__(self) -> Self:
        self._state.begin()
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.end()
        self._display.stop()


def samples_per_second(history: Sequence[Mapping[str, Any]]) -> float:
    """Throughput over the epochs after the first, which includes compilation; NaN for an empty history.

    Parameters
    ----------
    history : sequence of dict
        One record per epoch with `seconds` and `samples`, both counted from the start. For a single epoch the
        rate includes compilation.
    """
    if not history:
        return math.nan
    last = history[-1]
    start = history[0] if len(history) > 1 else {"samples": 0, "seconds": 0.0}
    seconds = last["seconds"] - start["seconds"]
    return (last["samples"] - start["samples"]) / seconds if seconds > 0 else math.nan


def format_rate(rate: float, unit: str) -> str:
    """A throughput for people, such as "52.1 M ratings/s"; an unknown one is a dash."""
    if not math.isfinite(rate):
        return f"– {unit}/s"
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= size:
            value = rate / size
            return f"{value:.{1 if value < 100 else 0}f}{letter} {unit}/s"
    return f"{rate:.0f} {unit}/s"


def format_figure(value: float) -> str:
    """A measure for people, such as "0.9042", "1,203" or "3.2e-07"."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"


def format_duration(seconds: float) -> str:
    """A time for people: "0:07", "12:30", "3:05:00"."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class _State:
    """State of the training so far."""

    def __init__(self, epochs: int | None, measures: dict[str, str], unit: str, period: str, beginning: str) -> None:
        self.epochs = epochs
        self.beginning = beginning
        self.unit = unit
        self.done = 0
        self.rate = math.nan
        self._measures = measures
        self._period = period
        self._record: Mapping[str, Any] | None = None
        self._began = self._first = self._latest = time.monotonic()
        self._ended: float | None = None

    def begin(self) -> None:
        self._began = self._first = self._latest = time.monotonic()

    def end(self) -> None:
        self._ended = time.monotonic()

    def add(self, record: Mapping[str, Any]) -> None:
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
            return f"{self._period} {self.done}"
        return f"{self._period} {self.done:{len(str(self.epochs))}}/{self.epochs}"

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
        return [(label, format_figure(record[key])) for key, label in self._measures.items() if key in record]


class _Display(Protocol):
    def start(self) -> None: ...

    def epoch(self) -> None: ...

    def stop(self) -> None: ...


class _Lines:
    """One line per epoch, for files and pipes."""

    def __init__(self, state: _State, console: Console) -> None:
        self._state = state
        self._console = console

    def start(self) -> None:
        self._print(self._state.beginning)

    def epoch(self) -> None:
        state = self._state
        figures = [f"{label} {value}" for label, value in state.figures]
        # The first epoch's rate would include compilation.
        rate = [format_rate(state.rate, state.unit)] if math.isfinite(state.rate) else []
        self._print("  ".join([state.epoch, *figures, *rate, f"{state.elapsed:.1f} s"]))

    def stop(self) -> None: ...

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)
        self._console.file.flush()


class _Bar:
    """A bar with the latest figures below it, redrawn in place."""

    def __init__(self, state: _State, console: Console) -> None:
        self._state = state
        self._live = Live(self, console=console, refresh_per_second=_REFRESHES_PER_SECOND)

    def start(self) -> None:
        self._live.start(refresh=True)

    def epoch(self) -> None: ...

    def stop(self) -> None:
        self._live.stop()

    def __rich__(self) -> Group:
        """The current display, requested repeatedly by the live display."""
        return Group(self._bar(), self._figures())

    def _bar(self) -> Table:
        state = self._state
        left = state.left
        clock = format_duration(state.elapsed)
        if left is not None:
            clock = f"{clock}, {format_duration(left)} left"
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(no_wrap=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True, justify="right")
        is_vague = state.done == 0 or (state.epochs is None and not state.is_over)
        bar = ProgressBar(total=state.epochs or state.done, completed=state.done, pulse=is_vague)
        line.add_row(Text(state.epoch), bar, Text(clock, style="cyan"))
        return line

    def _figures(self) -> Text:
        state = self._state
        if state.done == 0:
            return Text(state.beginning, style="dim")
        text = Text(overflow="ellipsis", no_wrap=True)
        for label, value in state.figures:
            text.append(f"{label} ", style="dim").append(value, style="bold").append("   ")
        if math.isfinite(state.rate):
            text.append(format_rate(state.rate, state.unit), style="green")
        return text
