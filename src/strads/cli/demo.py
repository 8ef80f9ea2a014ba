"""`strads demo`: what strads does, seen in a quarter of a minute on generated ratings."""

from typing import Annotated

import typer
from rich.console import Console

from strads import cluster
from strads.cli.train import DebugOption, ThreadsOption


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Of the generated ratings and of the model.")] = 0,
    threads: ThreadsOption = None,
    debug: DebugOption = False,
) -> None:
    """Factorize generated ratings on all cores, and check the result against a single thread's."""
    from strads.cli.demo_run import Demo
    from strads.cli.planted_ratings import PlantedRatings

    Demo(Console(highlight=False), PlantedRatings(), seed, threads or cluster.current().threads).show()
