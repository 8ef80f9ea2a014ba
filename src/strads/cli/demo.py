"""`strads demo`: what strads does, seen in a quarter of a minute on generated ratings."""

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
from strads.cli.train import DebugOption


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Of the generated ratings and of the model.")] = 0,
    backend: BackendOption = None,
    nodes: NodesOption = None,
    threads: ThreadsOption = None,
    address: AddressOption = None,
    timeout: TimeoutOption = TIMEOUT,
    debug: DebugOption = False,
) -> None:
    """Factorize generated ratings on all cores and nodes, and check the result against a single thread's."""
    from strads.cli.demo_run import Demo
    from strads.cli.planted_ratings import PlantedRatings

    with start(backend, nodes, threads, address, timeout) as runtime:
        Demo(standard_output(), PlantedRatings(), seed, runtime).show()
