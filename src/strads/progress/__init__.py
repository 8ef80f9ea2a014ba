"""Progress of a training: a bar on a terminal and in a notebook, one plain line per epoch elsewhere."""

from strads.progress.epochs import EpochProgress, showing
from strads.progress.figures import format_duration, format_figure, format_rate, samples_per_second
from strads.progress.state import COMPILING, PREPARING, Shown

__all__ = [
    "COMPILING",
    "PREPARING",
    "EpochProgress",
    "Shown",
    "format_duration",
    "format_figure",
    "format_rate",
    "samples_per_second",
    "showing",
]
