"""Options common to the commands of `strads train`, and checks of their values."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from strads.cli.cluster_options import Where

# Options, by the panel of the help that shows them.
data_option = partial(typer.Option, rich_help_panel="Data")
model_option = partial(typer.Option, rich_help_panel="Model")
run_option = partial(typer.Option, rich_help_panel="Run")

OutOption = Annotated[Path, run_option(help="Directory for the model and the metrics.")]
SeedOption = Annotated[int, run_option(min=0, help="Same seed, same model.")]
OverwriteOption = Annotated[bool, run_option("--overwrite", help="Replace an earlier run in the directory.")]
DebugOption = Annotated[bool, run_option("--debug", help="Show tracebacks.")]


@dataclass(frozen=True, kw_only=True)
class Common(Where):
    """Options of all commands of `strads train`."""

    out: OutOption
    seed: SeedOption = 0
    overwrite: OverwriteOption = False
    debug: DebugOption = False


def positive(value: float | None) -> float | None:
    """Reject a value of an option that is not a positive finite number."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value} is not a positive number")
    return value


def not_negative(value: float) -> float:
    """Reject a value of an option that is negative or not finite."""
    if not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"{value} is negative or not finite: give 0 or more")
    return value


def mixing(value: float) -> float:
    """Reject a value of an option that is not a valid share of the ℓ1 norm in a penalty."""
    if not 0 < value <= 1:
        raise typer.BadParameter(f"{value} is no share of the ℓ1 norm: give a number above 0, at most 1")
    return value


def share(value: float) -> float:
    """Reject a value of an option that is not a valid share of the data to hold out."""
    if not 0 <= value < 1:
        raise typer.BadParameter(f"{value} is not a share of the data: give 0 or more, below 1")
    return value
