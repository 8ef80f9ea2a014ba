"""Large files that are written past the operating system's page cache.

A write into the page cache costs the processor a copy of every byte, and new pages for them, while the program wants to
compute. Direct writes leave both to the disk's controller: a tenth of the processor time.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096  # bytes; direct writes begin and end at multiples of it, in memory and in the file
_BUFFER = 1 << 20  # bytes
_AT_ONCE = 64  # blocks per system call; at most as many buffers are in use at a time


def aligned(count: int) -> NDArray[np.uint8]:
    """Return memory that begins at a block."""
    memory = np.empty(count + BLOCK, np.uint8)
    start = -_address(memory) % BLOCK
    return memory[start : start + count]


def write_direct(path: str, pieces: Iterable[Any]) -> bool:
    """Write a file from pieces of bytes, and wait until it is on disk.

    Pieces may have any length; those that begin at a block, in memory and in the file, are not copied. Returns False if
    the operating system or the file system has no direct writes: nothing was written then.

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
    length, waiting = 0, []
    for block, count in _blocks(pieces):
        length += count
        waiting.append(block)
        if len(waiting) == _AT_ONCE:
            _write_all(file, waiting)
    _write_all(file, waiting)
    if length % BLOCK:
        os.ftruncate(file, length)


def _blocks(pieces: Iterable[Any]) -> Iterator[tuple[memoryview, int]]:
    """Yield the content as whole blocks that begin at one in memory, with its bytes; the last block may have fewer."""
    buffer, used = memoryview(b""), 0
    for piece in pieces:
        rest = memoryview(piece).cast("B")
        while rest:
            whole = len(rest) // BLOCK * BLOCK
            if not used and whole and _address(np.frombuffer(rest, np.uint8)) % BLOCK == 0:
                yield rest[:whole], whole
                rest = rest[whole:]
                continue
            if not used:  # a new one: that before waits to be written
                buffer = memoryview(aligned(min(_BUFFER, len(rest) + -len(rest) % BLOCK)).data)
            count = min(len(rest), len(buffer) - used)
            buffer[used : used + count] = rest[:count]
            used, rest = used + count, rest[count:]
            if used % BLOCK == 0:
                yield buffer[:used], used
                used = 0
    if used:
        yield buffer[: used + -used % BLOCK], used


def _write_all(file: int, blocks: list[memoryview]) -> None:
    """Write blocks and empty the list; by few calls, because each of them stops a processor for a moment."""
    while blocks:
        count = os.writev(file, blocks)
        while blocks and count >= len(blocks[0]):
            count -= len(blocks.pop(0))
        if count:
            blocks[0] = blocks[0][count:]


def _address(array: NDArray[np.uint8]) -> int:
    return int(array.__array_interface__["data"][0])
