"""`strads info`: what a report of a problem needs."""

import os

from rich.console import Console

from strads import cluster
from strads.cli.environment import machine, versions
from strads.cli.summary import print_summary


def info() -> None:
    """Show versions, cores, threads, and where compiled code is cached."""
    from strads.models.kernels.matrix_factorization import predict_pairs

    about = machine()
    rows = [(name, version) for name, version in versions().items()]
    rows += [
        ("platform", str(about["platform"])),
        ("processor", str(about["cpu"])),
        ("cores", f"{about['cores']} in the machine, {about['cores_available']} for this process"),
        ("threads", f"{cluster.current().threads} by default (--threads chooses)"),
        ("Numba's cache", _cache(predict_pairs.stats.cache_path)),
    ]
    print_summary(Console(highlight=False), rows)


def _cache(kernels: str | None) -> str:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    note = "NUMBA_CACHE_DIR" if chosen else "beside the source files; NUMBA_CACHE_DIR moves it"
    return f"{chosen or kernels} ({note})"
