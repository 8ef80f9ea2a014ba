"""Feeds two replicas, one of which is killed at random moments, and compares them batch by batch."""

import multiprocessing
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from replicas.replica import live

_PATIENCE = 300  # seconds until a replica that says nothing has hung
_EARLY, _MOMENT = 0.15, 0.02  # share of the kills within the first second of a replica; seconds until the others
_SETTINGS = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]  # nodes and threads

_processes = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else None
)
if hasattr(_processes, "set_forkserver_preload"):
    _processes.set_forkserver_preload(["strads.models", "replicas.replica"])


@contextmanager
def _replica(*arguments: Any) -> Iterator[tuple[Any, Connection]]:
    ours, theirs = _processes.Pipe(duplex=False)
    process = _processes.Process(target=live, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def _reports(connection: Connection, until: float | None = None) -> Iterator[tuple[int, str]]:
    """Yield what a replica reports, until the end of its log, or a moment."""
    while until is None or time.monotonic() < until:
        left = _PATIENCE if until is None else until - time.monotonic()
        if not connection.poll(max(left, 0.0)):
            assert until is not None, f"a replica has reported nothing for {_PATIENCE} s"
        elif (report := connection.recv()) is None:
            return
        else:
            yield report


def run_through(name: str, seed: int, batches: int, folder: Path) -> list[str]:
    """Return the digests of a replica that runs through on one thread, and never saves."""
    with _replica(name, seed, batches, str(folder), 0, 1, 1) as (_, connection):
        digests = dict(_reports(connection))
    assert list(digests) == list(range(batches))
    return [digests[number] for number in range(batches)]


def compare(name: str, seed: int, batches: int, kills: int, folder: Path, every: int = 3) -> dict[str, int]:
    """Compare both replicas; returns how many digests were compared, and how often the one was killed.

    One that has finished before it was killed often enough begins the log once more.

    Raises
    ------
    AssertionError
        At the first batch after which they differ.
    """
    (folder / "whole").mkdir()
    expected = run_through(name, seed, batches, folder / "whole")
    rng = random.Random(seed)
    killed = compared = begun = 0
    reached = batches
    while reached < batches or killed < kills or not begun:
        if reached == batches:
            begun, reached = begun + 1, 0
            (folder / f"killed {begun}").mkdir()
        nodes, threads = rng.choice(_SETTINGS)
        arguments = name, seed, batches, str(folder / f"killed {begun}"), every, nodes, threads
        step = 2 * (batches - reached) // (kills - killed + 1)
        goal = reached + rng.randint(0, step) if killed < kills else batches + 1
        until = time.monotonic() + rng.random() if rng.random() < _EARLY and killed < kills else None
        with _replica(*arguments) as (process, connection):
            found = list(_reports(connection, until)) if until else list(_up_to(goal, _reports(connection)))
            if killed < kills:
                time.sleep(rng.random() * _MOMENT)  # anywhere: within a batch, a file, a renaming
                killed += process.is_alive()
                process.kill()
                process.join()
                found += _rest(connection)
        for number, digest in found:
            assert digest == expected[number], f"{name}, seed {seed}: batch {number}, {nodes} nodes × {threads}"
            compared, reached = compared + 1, max(reached, number + 1)
    return {"compared": compared, "kills": killed}


def _up_to(goal: int, reports: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for report in reports:
        yield report
        if report[0] + 1 >= goal:
            return


def _rest(connection: Connection) -> list[tuple[int, str]]:
    """What a replica had reported before it was killed."""
    found = []
    with suppress(EOFError, OSError):
        while connection.poll(0) and (report := connection.recv()) is not None:
            found.append(report)
    return found
