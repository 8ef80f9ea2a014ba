"""Checkpoints of data on the nodes of a cluster: every node writes and reads its own part."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from strads.checkpoints.staging import Buffers, Previous, Stage
from strads.checkpoints.storage import DamagedFileError, Folder
from strads.checkpoints.trees import Load, Save
from strads.errors import CheckpointError

_POLL = 0.02  # seconds
_BUFFERS = "buffers of checkpoints"  # in a node's store


@dataclass(frozen=True)
class SaveTicket:
    """Tells nodes where to write their parts of a snapshot."""

    url: str  # the folder
    prefix: str  # beginning of the names of the snapshot's files
    number: int  # of the ticket in this snapshot
    previous: Previous = field(default_factory=dict)

    def report(self, rank: int) -> str:
        """Return the name of the file in which a node reports what it has written."""
        return f"parts/{self.prefix.rpartition('/')[2]}-{self.number}-{rank}.json"


@contextmanager
def saving(target: "Save | SaveTicket", rank: int, store: dict[str, Any]) -> Iterator[Save]:
    """Context in which a node makes the tree of its part; the files are written in the background afterwards.

    `target`: the driver's own `Save` if it is the only node, else a ticket. `store`: that of the node, in which memory
    for copies stays until the node ends.
    """
    if isinstance(target, Save):
        yield target
        return
    stage = Stage(target.prefix, store.setdefault(_BUFFERS, Buffers()), f"-{target.number}-{rank}")
    yield Save(stage.keep)
    stage.copy()
    threading.Thread(target=_write, args=(target, rank, stage), name="strads-checkpoint", daemon=True).start()


def _write(ticket: SaveTicket, rank: int, stage: Stage) -> None:
    try:
        folder = Folder(ticket.url)
        try:
            written = stage.write(folder, ticket.previous, lambda: True)
            report: dict[str, Any] = {"written": written, "bytes": stage.bytes}
        except Exception as error:
            report = {"error": f"node {rank}: {type(error).__name__}: {error}"}
        folder.write_json(ticket.report(rank), report)
    except Exception:
        pass  # the driver waits in vain, and says so
    finally:
        stage.release()


def collect(
    folder: Folder, ticket: SaveTicket, nodes: int, is_wanted: Callable[[], bool], seconds: float
) -> tuple[dict[str, tuple[str, str]], int]:
    """Wait for the reports of all nodes; returns the file and checksum of each array, and the bytes written.

    Raises
    ------
    CheckpointError
        If a node could not write, or does not report in time.
    """
    written: dict[str, tuple[str, str]] = {}
    count = 0
    limit = time.monotonic() + seconds
    for rank in range(nodes):
        name = ticket.report(rank)
        while True:
            try:
                report = folder.read_json(name)
                break
            except DamagedFileError as error:
                if not is_wanted() or time.monotonic() > limit:
                    raise CheckpointError(f"node {rank} has not written its part of the snapshot") from error
                time.sleep(_POLL)
        folder.remove([name])
        if "error" in report:
            raise CheckpointError(report["error"])
        written |= {name: (file, checksum) for name, (file, checksum) in report["written"].items()}
        count += report["bytes"]
    return written, count


@dataclass(frozen=True)
class LoadTicket:
    """Tells nodes where to read their parts of a snapshot."""

    url: str  # the folder
    checksums: dict[str, str]  # file name → checksum of its content


def loading(target: "Load | LoadTicket") -> Load:
    """Return the reader for a node: the driver's own if it is the only node."""
    if isinstance(target, Load):
        return target
    folder, checksums = Folder(target.url), target.checksums
    return Load(lambda name, into: folder.read_array(name, checksums[name], into))
