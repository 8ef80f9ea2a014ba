"""The connection to a Ray cluster, and the CPUs reserved for nodes there."""

import logging
import os
import signal
import socket
import threading
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from strads.cluster.cores import available_cores
from strads.errors import ArgumentError, NodeFailure

_ANSWER = 10.0  # seconds within which a cluster accepts a connection
_PATIENCE = 30.0  # seconds to wait for CPUs that are in use


def connect(address: str | None, nodes: int | None, threads: int | None) -> bool:
    """Connect to a cluster, or start one on this machine; return whether the connection is new.

    Raises
    ------
    ArgumentError
        If there is no cluster at the address.
    NodeFailure
        If none can be started on this machine.
    """
    if ray.is_initialized():
        present = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", present):
            raise ArgumentError(
                f"address={address!r}: this process is connected to {present}; ray.shutdown() ends that"
            )
        return False
    target = address or os.environ.get("RAY_ADDRESS") or "local"
    if target.startswith("ray://"):
        raise ArgumentError(f"address={target!r}: nodes need a direct connection; run on a machine of the cluster")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise Ray prints a notice about usage statistics
    own: dict[str, Any] = {}
    if target == "local":
        own = {"num_cpus": max(available_cores(), (nodes or 1) * (threads or 1)), "include_dashboard": False}
    try:
        _probe(target)
        before = signal.getsignal(signal.SIGTERM)
        ray.init(target, log_to_driver=False, logging_level=logging.ERROR, **own)
        if before is not signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray has installed its own
    except Exception as error:  # Ray raises this class itself when it takes too long to start
        if target == "local":
            raise NodeFailure(f"Ray did not start on this machine: {error}") from error
        raise ArgumentError(f"address={target!r}: no Ray cluster can be reached there: {error}") from error
    return True


def _probe(address: str) -> None:
    """Raise OSError immediately if nothing listens at the address: Ray itself retries for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()


def reserve(nodes: int | None, threads: int | None, timeout: float) -> tuple[PlacementGroup, int]:
    """Reserve CPUs for the nodes, on as many distinct machines as possible.

    Returns
    -------
    A placement group with one bundle per node, and the number of threads per node.

    Raises
    ------
    ArgumentError
        If the cluster does not have enough CPUs, or they are in use.
    """
    machines = _cpus_of_machines(ray.nodes())
    if not machines:
        raise ArgumentError("no machine of the Ray cluster has CPUs: add some first")
    count = len(machines) if nodes is None else nodes
    if threads is None:
        sharing = -(-count // len(machines))  # nodes on the same machine
        threads = max(1, min(machines) // sharing)
    if sum(cpus // threads for cpus in machines) < count:
        raise ArgumentError(_shortage(count, threads, machines))
    group = placement_group([{"CPU": threads}] * count, strategy="SPREAD")
    if not group.wait(min(timeout, _PATIENCE)):
        remove_placement_group(group)
        raise ArgumentError(_shortage(count, threads, machines))
    return group, threads


def _cpus_of_machines(nodes: list[dict[str, Any]]) -> list[int]:
    """Return the CPUs of each machine that has any: the head of a cluster often offers none."""
    found = [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]
    return [cpus for cpus in found if cpus > 0]


def _shortage(nodes: int, threads: int, machines: list[int]) -> str:
    free = ray.available_resources().get("CPU", 0)
    sizes = ", ".join(map(str, machines))
    return (
        f"nodes={nodes}, threads={threads} needs {nodes * threads} CPUs, the {threads} of a node on one machine; "
        f"the Ray cluster has {len(machines)} machines with {sizes} CPUs, {free:g} of these free. Ask for fewer "
        "nodes or threads, or add machines first"
    )
