"""Large files that are written past the operating system's page cache.

A write into the page cache costs the processor a copy of every byte, and new pages for them, while the program wants to
compute. Direct writes leave both to the disk's controller: a tenth of the processor time.
"""

import errno
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096  # bytes; direct writes begin and end at multiples of it, in memory and in the file
_BUFFER = 1 << 20  # bytes


def aligned(count: int) -> NDArray[np.uint8]:
    """Return memory that begins at a block."""
    memory = np.empty(count + BLOCK, np.uint8)
    start = -_address(memory) % BLOCK
    return memory[start : start + count]


def write_direct(path: str, pieces: Iterable[Any]) -> bool:
    """Write a file from pieces of bytes, and wait until it is on disk.

    Parameters
    ----------
    path
        Overwritten.
    pieces
        Buffers of any lengths. Those that begin at a block, in memory and in the file, are not copied.

    Returns
    -------
    bool
        False if the operating system or the file system has no direct writes: nothing was written then.

    Raises
    ------
    OSError
        If the disk is full, or fails.
    """
    if not hasattr(os, "O_DIRECT"):
        return False
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o666)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    try:
        _write(file, pieces)
        os.fsync(file)
    except OSError as error:
        if error.errno == errno.EINVAL:  # blocks of another size
            return False
        raise
    finally:
        os.close(file)
    return True


def _write(file: int, pieces: Iterable[Any]) -> None:
    buffer = memoryview(aligned(_BUFFER).data)
    used = length = 0  # bytes in the buffer, and of the file
    for piece in pieces:
        rest = memoryview(piece).cast("B")
        length += len(rest)
        while rest:
            whole = len(rest) // BLOCK * BLOCK
            if not used and whole and _address(np.frombuffer(rest, np.uint8)) % BLOCK == 0:
                _write_all(file, rest[:whole])
                rest = rest[whole:]
                continue
            count = min(len(rest), _BUFFER - used)
            buffer[used : used + count] = rest[:count]
            used, rest = used + count, rest[count:]
            if used % BLOCK == 0:
                _write_all(file, buffer[:used])
                used = 0
    if used:
        end = used + -used % BLOCK
        _write_all(file, buffer[:end])
        os.ftruncate(file, length)


def _write_all(file: int, content: memoryview) -> None:
    while content:
        content = content[os.write(file, content) :]


def _address(array: NDArray[np.uint8]) -> int:
    return int(array.__array_interface__["data"][0])
