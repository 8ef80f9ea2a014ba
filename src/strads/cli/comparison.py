"""Base of the demos, which train a model on all threads and nodes, then on other threads, and compare the results."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from strads.cli.cluster_options import describe
from strads.cluster import Runtime
from strads.progress import EpochProgress


@dataclass
class Demo(ABC):
    """A demonstration; `show` trains a model on `runtime`, and again on `other` threads of this process.

    It reports to `console`; `seed` is that of the model and of any data that are generated.
    """

    console: Console
    seed: int
    runtime: Runtime

    @abstractmethod
    def show(self) -> None:
        """Run the demo and report the results."""

    @property
    def place(self) -> str:
        """Where the model is trained."""
        return describe(self.runtime)

    @property
    def threads(self) -> int:
        """The threads of all nodes."""
        return self.runtime.threads * self.runtime.cluster.size

    @property
    def other(self) -> int:
        """How many threads train it again."""
        return 1 if self.threads > 1 else 2

    @contextmanager
    def training(self, model: Any, title: str, beginning: str | None) -> Iterator[EpochProgress]:
        """Context of a training, which is shown under a title."""
        self.say()
        self.console.print(Text(title, style="bold"))
        shown = model.shown if beginning is None else replace(model.shown, beginning=beginning)
        with EpochProgress(model.max_iter, shown, console=self.console) as progress:
            yield progress

    def say(self, text: str = "") -> None:
        """Print a text, whose lines the terminal wraps."""
        self.console.print(text, soft_wrap=True, markup=False)


def sameness(first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]], pair: str, what: str) -> str:
    """Say whether two trainings gave bitwise equal results; tables of different shapes differ everywhere."""
    count = sum(table.size for table in first)
    different = sum(_different(a, b) for a, b in zip(first, second, strict=True))
    if different == 0:
        return f"yes: {pair} give {count:,} {what} equal bit for bit"
    return f"NO: {different:,} of {count:,} {what} differ between {pair}; please report this"


def _different(first: NDArray[Any], second: NDArray[Any]) -> int:
    if first.shape != second.shape or first.dtype != second.dtype:
        return first.size
    a, b = (np.ascontiguousarray(table).view(f"u{table.itemsize}") for table in (first, second))
    return int(np.count_nonzero(a != b))
