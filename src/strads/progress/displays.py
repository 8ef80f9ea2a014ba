"""Displays of a training: plain lines, and bars that are redrawn in place."""

import io
import math
import time
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from strads.progress.figures import format_duration, format_rate
from strads.progress.state import State

_REFRESHES_PER_SECOND = 8
_NOTEBOOK_COLUMNS = 100  # characters of a line
_GAP = "   "  # between figures


class Display:
    """Shows a `State`. A method does nothing unless a subclass shows something at that moment."""

    def start(self) -> None:
        """Training begins."""

    def beginning(self) -> None:
        """What is done before the first epoch has changed; may be called by any thread."""

    def epoch(self) -> None:
        """An epoch is done."""

    def stop(self) -> None:
        """Training has ended."""


class Lines(Display):
    """One line per epoch, for files and pipes."""

    def __init__(self, state: State, console: Console) -> None:
        self._state = state
        self._console = console

    def start(self) -> None:
        """Show what is done before the first epoch."""
        self.beginning()

    def beginning(self) -> None:
        """Show what is done now."""
        self._print(self._state.beginning)

    def epoch(self) -> None:
        """Show the latest epoch."""
        state = self._state
        figures = [f"{label} {value}" for label, value in state.figures]
        # The first epoch's rate would include compilation.
        rate = [format_rate(state.rate, state.shown.unit)] if math.isfinite(state.rate) else []
        self._print("  ".join([state.epoch, *figures, *rate, f"{state.elapsed:.1f} s"]))

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)
        self._console.file.flush()


class Bar(Display):
    """A bar with the latest figures below it, redrawn in place."""

    def __init__(self, state: State, console: Console) -> None:
        self._state = state
        self._live = Live(self, console=console, refresh_per_second=_REFRESHES_PER_SECOND)

    def start(self) -> None:
        """Show the bar."""
        self._live.start(refresh=True)

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._live.stop()

    def __rich__(self) -> Group:
        """The current display, requested repeatedly by the live display."""
        return bar_of(self._state)


class NotebookBar(Display):
    """The same bar in the output of a notebook's cell."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._cell: Any = None
        self._drawn = 0.0

    def start(self) -> None:
        """Show the bar."""
        from IPython.display import display  # only a notebook needs it, and has it

        self._cell = display(self._content(), raw=True, display_id=True)

    def beginning(self) -> None:
        """Show what is done now."""
        self._redraw()

    def epoch(self) -> None:
        """Show the latest epoch, a few times per second."""
        if time.monotonic() - self._drawn >= 1.0 / _REFRESHES_PER_SECOND:
            self._redraw()

    def stop(self) -> None:
        """Show the last epoch."""
        self._redraw()

    def _redraw(self) -> None:
        self._drawn = time.monotonic()
        self._cell.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        drawn = Console(file=io.StringIO(), width=_NOTEBOOK_COLUMNS, force_jupyter=False, record=True)
        drawn.print(bar_of(self._state))
        html = drawn.export_html(inline_styles=True, code_format="<pre>{code}</pre>", clear=False)
        return {"text/plain": drawn.export_text().rstrip("\n"), "text/html": html}


def bar_of(state: State) -> Group:
    """Return the bar, and the latest figures below it."""
    return Group(_bar(state), _Figures(state))


def _bar(state: State) -> Table:
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


class _Figures:
    """The latest figures, on as many lines as the width needs: none is cut."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        state = self._state
        if state.done == 0:
            yield Text(state.beginning, style="dim")
            return
        figures = [Text.assemble((f"{label} ", "dim"), (value, "bold")) for label, value in state.figures]
        if math.isfinite(state.rate):
            figures.append(Text(format_rate(state.rate, state.shown.unit), style="green"))
        line = Text()
        for figure in figures:
            if line and len(line) + len(_GAP) + len(figure) > options.max_width:
                yield line
                line = Text()
            line = Text.assemble(line, _GAP, figure) if line else figure
        yield line
