"""`strads info`: the information needed in a bug report."""

import os

from strads.bodies.code_cache import code_folder
from strads.cli.cluster_options import Where, count_of, describe
from strads.cli.environment import backends, machine, versions
from strads.cli.terminal import print_summary, standard_output
from strads.cli.train_options import DebugOption
from strads.cluster import NodeInfo
from strads.models.kernels.matrix_factorization import predict_pairs


def info(
    debug: DebugOption = False,
    *,
    where: Where,
) -> None:
    """Show versions, cores, nodes with their threads, and where compiled code is cached."""
    about = machine()
    rows = [*versions().items(), *backends().items()]
    rows += [
        ("platform", str(about["platform"])),
        ("processor", str(about["cpu"])),
        ("cores", f"{about['cores']} in the machine, {about['cores_available']} for this process"),
        ("Numba's cache", _cache(predict_pairs.stats.cache_path)),
        ("compiled bodies", str(code_folder() or "not kept: no folder that only you can write")),
    ]
    with where.start() as runtime:
        by_default = "" if where.threads else " by default (--threads chooses)"
        rows.append(("runs on", f"{describe(runtime)}{by_default}, backend {runtime.cluster.backend}"))
        rows += [(f"node {node.rank}", _place(node)) for node in runtime.cluster.describe()]
    print_summary(standard_output(), rows)


def _place(node: NodeInfo) -> str:
    return f"{node.host}, process {node.pid}, {count_of(node.cores, 'core')}, {count_of(node.threads, 'thread')}"


def _cache(kernels: str | None) -> str:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    note = "NUMBA_CACHE_DIR" if chosen else "beside the source files; NUMBA_CACHE_DIR moves it"
    return f"{chosen or kernels} ({note})"
