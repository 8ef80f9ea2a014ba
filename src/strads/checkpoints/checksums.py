"""Checksums of arrays: XXH3 with 128 bits, piece by piece, so that threads can share an array."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

PIECE = 4 << 20  # bytes of content that are hashed by themselves
_IN_CACHE = 1 << 20  # bytes; fewer fit into smaller caches, but threads wait for the interpreter more often


def checksum_of(array: NDArray[Any]) -> str:
    """Return a checksum of dtype, shape and content of a C-contiguous array."""
    return checksum_of_pieces(array, (xxhash.xxh3_128_digest(piece) for piece in pieces_of(array)))


def checksum_of_pieces(array: NDArray[Any], hashes: Iterable[bytes]) -> str:
    """Return the checksum of an array with these hashes of its pieces: the hash of its header and of them."""
    return xxhash.xxh3_128_hexdigest(header_of(array) + b"".join(hashes))


def pieces_of(array: NDArray[Any]) -> Iterator[memoryview]:
    """Yield the content of a C-contiguous array, `PIECE` bytes at a time; nothing is copied."""
    content = bytes_of(array)
    return (content[start : start + PIECE] for start in range(0, len(content), PIECE))


def copy_and_hash(target: NDArray[np.uint8], source: NDArray[np.uint8] | None) -> bytes:
    """Copy a piece, unless it is there already; returns its hash, computed while it is in the cache."""
    found = xxhash.xxh3_128()
    for start in range(0, len(target), _IN_CACHE):
        part = target[start : start + _IN_CACHE]
        if source is not None:
            np.copyto(part, source[start : start + _IN_CACHE])
        found.update(part.data)
    return found.digest()


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a C-contiguous array, without copying them."""
    return memoryview(array.reshape(-1).view(np.uint8).data) if array.nbytes else memoryview(b"")


def header_of(array: NDArray[Any]) -> bytes:
    """Return the header of an array in NumPy's file format, which names its dtype and shape."""
    buffer = BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_2_0(buffer, described)
    return buffer.getvalue()
