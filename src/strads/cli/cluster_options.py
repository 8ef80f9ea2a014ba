"""Options for where a command runs, and their description."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Literal

import typer

import strads
from strads.cluster import Runtime
from strads.cluster.cluster import DEFAULT_TIMEOUT

_option = partial(typer.Option, rich_help_panel="Where it runs")


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where a command runs: `backend`, `nodes`, `threads`, `address` and `timeout` in seconds, as in `strads.init`."""

    backend: Annotated[
        Literal["threads", "mpi", "ray"] | None,
        _option(
            help="This process, the processes of mpiexec, or actors of a Ray cluster; by default mpi under mpiexec, "
            "else threads."
        ),
    ] = None
    nodes: Annotated[
        int | None,
        _option(
            min=1,
            help="Nodes: actors, by default one on each machine of Ray; with threads, logical nodes of this process.",
        ),
    ] = None
    threads: Annotated[int | None, _option(min=1, help="Threads of each node; by default its share of the cores.")] = (
        None
    )
    address: Annotated[
        str | None, _option(help="The Ray cluster; by default that of RAY_ADDRESS, or a new one on this machine.")
    ] = None
    timeout: Annotated[float, _option(help="Seconds that a node waits for another before it counts as lost.")] = (
        DEFAULT_TIMEOUT
    )

    def start(self) -> Runtime:
        """Choose where loops run.

        Raises
        ------
        ArgumentError
            For incompatible options, or options that the machine or its software cannot satisfy.
        """
        return strads.init(
            self.backend, nodes=self.nodes, threads=self.threads, address=self.address, timeout=self.timeout
        )


def record(runtime: Runtime) -> dict[str, Any]:
    """Where a run takes place, for its records."""
    cluster = runtime.cluster
    return {
        "backend": cluster.backend,
        "nodes": [asdict(node) for node in cluster.describe()],
        "hosts": sorted(set(cluster.hosts)),
    }


def describe(runtime: Runtime) -> str:
    """Such as "2 threads", or "3 nodes of 2 threads each"."""
    threads = count_of(runtime.threads, "thread")
    return threads if runtime.is_local else f"{count_of(runtime.cluster.size, 'node')} of {threads} each"


def count_of(count: int, noun: str) -> str:
    """Such as "1 thread", "2 threads"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
