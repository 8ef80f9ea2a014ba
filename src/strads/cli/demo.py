"""`strads demo`: a 15-second demonstration on data that need not be downloaded."""

from typing import Annotated, Literal

import typer

from strads.cli.cluster_options import Where
from strads.cli.demo_run import RatingsDemo
from strads.cli.lda_demo import LdaDemo
from strads.cli.terminal import standard_output
from strads.cli.train_options import DebugOption


def demo(
    model: Annotated[
        Literal["mf", "lda"],
        typer.Argument(help="Factors of generated ratings, or topics of Python's documentation."),
    ] = "mf",
    seed: Annotated[int, typer.Option(min=0, help="Of the model, and of the generated ratings.")] = 0,
    debug: DebugOption = False,
    *,
    where: Where,
) -> None:
    """Train a model on all cores and nodes, and check the result against that of other threads.

    [bold]strads demo[/bold] factorizes generated ratings; [bold]strads demo lda[/bold] finds the topics of the
    documentation that every Python installation has.
    """
    with where.start() as runtime:
        (LdaDemo if model == "lda" else RatingsDemo)(standard_output(), seed, runtime).show()
