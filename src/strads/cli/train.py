"""`strads train`: one command a model, from a data file to a directory with the trained model."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from strads.cli.cluster_options import (
    TIMEOUT,
    AddressOption,
    BackendOption,
    NodesOption,
    ThreadsOption,
    TimeoutOption,
    start,
)
from strads.cli.terminal import standard_output
from strads.errors import ArgumentError

app = typer.Typer(help="Train a model from a data file.")


@app.callback(invoke_without_command=True)
def help_without_command(context: typer.Context) -> None:
    """Train a model from a data file."""
    if context.invoked_subcommand is None:
        print(context.get_help())


class Step(StrEnum):
    """How the size of a gradient step is chosen."""

    adagrad = "adagrad"
    constant = "constant"


class Schedule(StrEnum):
    """How steps change from epoch to epoch."""

    linear = "linear"
    constant = "constant"


def _positive(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value} is not a positive number")
    return value


def _not_negative(value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"{value} is negative or not finite: give 0 or more")
    return value


def _share(value: float) -> float:
    if not 0 <= value < 1:
        raise typer.BadParameter(f"{value} is not a share of the ratings: give 0 or more, below 1")
    return value


def _three_names(value: str | None) -> str | None:
    names = value.split(",") if value is not None else ["user", "item", "score"]
    if len(names) != 3 or len({name.strip() for name in names}) != 3 or not all(name.strip() for name in names):
        raise typer.BadParameter(f"{value!r}: give three different names, such as userId,movieId,rating")
    return value


def _delimiter(value: str | None) -> str | None:
    if value == "" or (value is not None and "\n" in value):
        raise typer.BadParameter("give the character between columns, such as ',' or '\\t'")
    return None if value is None else value.replace("\\t", "\t")


_DATA, _MODEL, _RUN = "Data", "Model", "Run"
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks.", rich_help_panel=_RUN)]


@app.command()
def mf(
    data: Annotated[
        Path,
        typer.Option(help="Ratings: CSV, TSV or other delimited text (gzip too), or Parquet.", rich_help_panel=_DATA),
    ],
    out: Annotated[Path, typer.Option(help="Directory for the model and the metrics.", rich_help_panel=_RUN)],
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="USER,ITEM,SCORE",
            callback=_three_names,
            help="Names of the three columns in the header; by default user,item,score or the first three.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(callback=_delimiter, help="Between columns; by default found out.", rich_help_panel=_DATA),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option(
            callback=_share,
            help="Share of the ratings, chosen at random, to measure on.",
            rich_help_panel=_DATA,
        ),
    ] = 0.1,
    rank: Annotated[int, typer.Option(min=1, help="Factors of each user and item.", rich_help_panel=_MODEL)] = 32,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the ratings.", rich_help_panel=_MODEL)] = 20,
    step: Annotated[
        Step, typer.Option(help="Steps that shrink by row, or stay.", rich_help_panel=_MODEL)
    ] = Step.adagrad,
    learning_rate: Annotated[
        float, typer.Option(callback=_positive, help="Step size; 0.01 for constant.", rich_help_panel=_MODEL)
    ] = 0.1,
    schedule: Annotated[
        Schedule, typer.Option(help="Steps fall towards 0 over the epochs, or stay.", rich_help_panel=_MODEL)
    ] = Schedule.linear,
    regularization: Annotated[
        float, typer.Option(callback=_not_negative, help="λ of the squared norms.", rich_help_panel=_MODEL)
    ] = 0.1,
    biases: Annotated[
        bool, typer.Option("--biases/--no-biases", help="Fit mean and biases.", rich_help_panel=_MODEL)
    ] = True,
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping/--no-early-stopping",
            help="Stop when the held-out RMSE gets no better, and keep the best epoch.",
            rich_help_panel=_MODEL,
        ),
    ] = False,
    backend: BackendOption = None,
    nodes: NodesOption = None,
    threads: ThreadsOption = None,
    address: AddressOption = None,
    timeout: TimeoutOption = TIMEOUT,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.", rich_help_panel=_RUN)] = 0,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace an earlier run in the directory.", rich_help_panel=_RUN),
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Matrix factorization of ratings by parallel stochastic gradient descent.

    The file's first three columns are user, item and score; ids are whole numbers from 0 or 1 up.

    MovieLens works as it is: [bold]strads train mf --data u.data.gz --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train mf …[/bold], with the same result.
    """
    from strads.cli.mf_run import MfRun

    if early_stopping and holdout == 0:
        raise ArgumentError("--early-stopping needs held-out ratings: give a --holdout above 0")
    run = MfRun(
        data=data,
        out=out,
        columns=tuple(name.strip() for name in columns.split(",")) if columns else None,
        delimiter=delimiter,
        holdout=holdout,
        overwrite=overwrite,
        where={"backend": backend, "nodes": nodes, "threads": threads, "address": address, "timeout": timeout},
        parameters={
            "n_components": rank,
            "max_iter": epochs,
            "step": step.value,
            "learning_rate": learning_rate,
            "schedule": schedule.value,
            "regularization": regularization,
            "biases": biases,
            "early_stopping": early_stopping,
            "random_state": seed,
        },
    )
    with start(backend, nodes, threads, address, timeout) as runtime:
        code = run.execute(standard_output(), runtime)
    raise typer.Exit(code)
