"""Copies of arrays that are written in the background while the originals change."""

import functools
import itertools
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints.checksums import PIECE, checksum_of_pieces, copy_and_hash
from strads.checkpoints.direct_files import aligned
from strads.checkpoints.storage import Folder

Previous = dict[str, str]  # checksum of an array → its file in the latest snapshot


class Buffers:
    """Memory for copies, used again in every snapshot: fresh memory would cost a page fault every 4 KiB."""

    def __init__(self) -> None:
        self._snapshot = ""  # the latest
        self._free: dict[int, list[NDArray[np.uint8]]] = defaultdict(list)  # by size
        self._used: dict[int, list[NDArray[np.uint8]]] = defaultdict(list)  # by stages that have ended
        self._lock = threading.Lock()

    def begin(self, snapshot: str) -> None:
        """Begin a snapshot: its stages reuse the buffers of the previous one; the others are freed."""
        with self._lock:
            if snapshot != self._snapshot:
                self._snapshot, self._free, self._used = snapshot, self._used, defaultdict(list)

    def take(self, count: int) -> NDArray[np.uint8]:
        """Return a buffer of `count` bytes."""
        with self._lock:
            waiting = self._free[count]
            return waiting.pop() if waiting else aligned(count)

    def give_back(self, buffers: list[NDArray[np.uint8]]) -> None:
        """Keep buffers for the next snapshot."""
        with self._lock:
            for buffer in buffers:
                self._used[len(buffer)].append(buffer)


class Stage:
    """The arrays of a snapshot that one process writes to a file, whose name begins with the snapshot's; or a part."""

    def __init__(self, snapshot: str, buffers: Buffers, part: str = ""):
        buffers.begin(snapshot)
        self._prefix, self._buffers = snapshot + part, buffers
        self.bytes = 0  # of arrays that `write` has written
        self._waiting: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._arrays: list[tuple[str, NDArray[Any]]] = []
        self._hashes: list[list[bytes]] = []  # of the pieces of each array
        self._taken: list[NDArray[np.uint8]] = []

    def keep(self, array: NDArray[Any]) -> str:
        """Return a name for an array, which is copied by `copy`, until it is written."""
        name = f"{self._prefix}#{len(self._arrays)}"
        buffer = self._buffers.take(array.nbytes)
        copy = buffer.view(array.dtype).reshape(array.shape) if array.dtype.itemsize else array
        self._taken.append(buffer)
        self._arrays.append((name, copy))
        self._waiting.append((copy, array))
        return name

    def copy(self) -> None:
        """Copy the arrays and hash the copies, with several threads."""
        pieces: list[tuple[NDArray[np.uint8], NDArray[np.uint8] | None]] = []
        counts = []
        for target, source in self._waiting:
            if not target.nbytes:
                counts.append(0)
                continue
            to, of = target.reshape(-1).view(np.uint8), None
            if source.flags.c_contiguous:
                of = source.reshape(-1).view(np.uint8)
            else:
                np.copyto(target, source)
            starts = range(0, len(to), PIECE)
            pieces += [(to[at : at + PIECE], None if of is None else of[at : at + PIECE]) for at in starts]
            counts.append(len(starts))
        self._waiting = []
        run = map if len(pieces) < 2 else _threads(os.getpid()).map
        hashes = run(lambda piece: copy_and_hash(*piece), pieces)
        self._hashes += [list(itertools.islice(hashes, count)) for count in counts]

    def write(self, folder: Folder, previous: Previous, is_wanted: Callable[[], bool]) -> dict[str, tuple[str, str]]:
        """Write the arrays to one file, but for those that the latest snapshot's files hold.

        Returns the name of each array → the file that holds it, and its checksum.
        """
        written: dict[str, tuple[str, str]] = {}
        fresh: list[tuple[str, str, NDArray[Any]]] = []
        for (name, array), hashes in zip(self._arrays, self._hashes, strict=True):
            checksum = checksum_of_pieces(array, hashes)
            if checksum in previous:
                written[name] = previous[checksum], checksum
            else:
                fresh.append((name, checksum, array))
        if fresh and is_wanted():
            files = folder.write_arrays(f"{self._prefix}.npy", [array for *_, array in fresh])
            self.bytes = sum(array.nbytes for *_, array in fresh)
            written |= {name: (file, checksum) for (name, checksum, _), file in zip(fresh, files, strict=True)}
        return written

    def release(self) -> None:
        """Return the memory of the copies."""
        self._buffers.give_back(self._taken)
        self._arrays, self._hashes, self._taken = [], [], []


@functools.cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process: those that it had before a fork are gone in the child."""
    count = max(1, min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4))
    return ThreadPoolExecutor(count, "strads-checkpoint-copy")
