"""The progress of a training, epoch by epoch."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from rich.console import Console

from strads.errors import ArgumentError
from strads.progress.compilation import Compilation
from strads.progress.displays import Bar, Display, Lines, NotebookBar
from strads.progress.state import Shown, State


class EpochProgress:
    """Shows the epochs of a training; its `update` is the `on_iteration` of an estimator.

    Until the first epoch is done it says when something is being compiled.

    Parameters
    ----------
    epochs : int or None
        Largest number of epochs; None if unknown.
    shown : Shown
        What to show of the records.
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
    >>> with EpochProgress(3, Shown({"rmse": "RMSE"}, unit="ratings")) as progress:  # doctest: +ELLIPSIS
    ...     _ = MatrixFactorization(4, max_iter=3).fit(ratings, on_iteration=progress.update)
    preparing...
    epoch 1/3  RMSE ...
    epoch 2/3  RMSE ...
    epoch 3/3  RMSE ...
    """

    def __init__(self, epochs: int | None, shown: Shown, *, console: Console | None = None) -> None:
        if epochs is not None and epochs < 1:
            raise ArgumentError(f"epochs={epochs!r}: give a whole number, 1 or more")
        self._console = console if console is not None else Console(highlight=False)
        self._state = State(epochs, shown)
        self._display = _display(self._state, self._console)
        self._compilation = Compilation(self._compiles)

    def _compiles(self) -> None:
        self._state.compiles()
        self._display.beginning()

    def update(self, record: Mapping[str, Any]) -> None:
        """Show the record of an epoch: `iteration`, `seconds`, `samples`, and the measures."""
        if record["iteration"] >= 1:
            self._compilation.close()
            self._state.add(record)
            self._display.epoch()

    def __enter__(self) -> Self:
        self._state.begin()
        self._display.start()
        self._compilation.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._compilation.close()
        self._state.end()
        self._display.stop()


def _display(state: State, console: Console) -> Display:
    if console.is_jupyter:
        return NotebookBar(state)
    fancy = console.is_terminal and not console.is_dumb_terminal
    return Bar(state, console) if fancy else Lines(state, console)


@contextmanager
def showing(
    shown: Shown, epochs: int | None, on_iteration: Callable[[dict[str, Any]], object] | None
) -> Iterator[Callable[[dict[str, Any]], object]]:
    """Context of a training that is shown on standard output; returns its `on_iteration`, which calls another one."""
    with EpochProgress(epochs if shown.has_plan else None, shown) as progress:

        def show(record: dict[str, Any]) -> object:
            progress.update(record)
            return None if on_iteration is None else on_iteration(record)

        yield show
