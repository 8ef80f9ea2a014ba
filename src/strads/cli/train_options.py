"""Options common to the commands of `strads train`, and checks of their values."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from strads.cli.cluster_options import Where
from strads.cluster import Runtime
from strads.errors import ArgumentError

# Options, by the panel of the help that shows them.
data_option = partial(typer.Option, rich_help_panel="Data")
model_option = partial(typer.Option, rich_help_panel="Model")
run_option = partial(typer.Option, rich_help_panel="Run")

DebugOption = Annotated[bool, run_option("--debug", help="Show tracebacks.")]


@dataclass(frozen=True, kw_only=True)
class Common(Where):
    """Options of all commands of `strads train`."""

    out: Annotated[Path, run_option(help="Directory for the model and the metrics.")]
    seed: Annotated[int, run_option(min=0, help="Same seed, same model.")] = 0
    overwrite: Annotated[bool, run_option("--overwrite", help="Replace an earlier run in the directory.")] = False
    checkpoint: Annotated[
        str | None,
        run_option(
            metavar="DIRECTORY",
            help="Save the state of training there, also s3://… and other URLs, to continue after a crash.",
            show_default=False,
        ),
    ] = None
    checkpoint_every: Annotated[int, run_option(min=1, help="Iterations between two saved states.")] = 1
    resume: Annotated[bool, run_option("--resume", help="Continue from the checkpoint; replaces the run's files.")] = (
        False
    )
    quiet: Annotated[bool, run_option("--quiet", "-q", help="Print nothing but errors.")] = False
    debug: DebugOption = False

    def start(self) -> Runtime:
        """Choose where loops run, as `Where.start` does, and continue from the checkpoint."""
        if self.resume and self.checkpoint is None:
            raise ArgumentError("--resume needs the directory of the run to continue: give --checkpoint")
        runtime = super().start()
        if self.checkpoint is not None:
            session = runtime.save_to(self.checkpoint, every=self.checkpoint_every)
            if session.target and not self.resume:
                raise ArgumentError(
                    f"--checkpoint {self.checkpoint} holds the state of an earlier run: add --resume to continue it, "
                    "or choose another directory"
                )
        return runtime


def _accepting(is_valid: Callable[[float], bool], problem: str) -> Callable[[float | None], float | None]:
    """Return the callback that checks the value of an option; None, an option that is not given, is valid."""

    def check(value: float | None) -> float | None:
        if value is not None and not is_valid(value):
            raise typer.BadParameter(f"{value} {problem}")
        return value

    return check


positive = _accepting(lambda value: 0 < value < math.inf, "is not a positive number")
not_negative = _accepting(lambda value: 0 <= value < math.inf, "is negative or not finite: give 0 or more")
mixing = _accepting(
    lambda value: 0 < value <= 1, "is not a valid share of the ℓ1 norm: give a number above 0, at most 1"
)
share = _accepting(lambda value: 0 <= value < 1, "is not a share of the data: give 0 or more, below 1")
