"""Opening files: checks, detection of compression, and splitting into lines."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from strads.errors import ArgumentError, InputError

FilePath = str | os.PathLike[str]

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_NOT_TEXT = {
    b"PK\x03\x04": "is a zip archive: unpack it first",
    b"PAR1": "is a Parquet file: read it with strads.read_parquet",
    b"\xff\xfe": "is UTF-16 text: convert it to UTF-8",
    b"\xfe\xff": "is UTF-16 text: convert it to UTF-8",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_LINE = 64 << 20  # bytes
_UNUSED_PER_ENTRY, _UNUSED_ALLOWED = 50, 10_000_000


class MissingFileError(InputError, FileNotFoundError):
    """A file to be read that does not exist."""


def check_file(path: FilePath) -> str:
    """Return `path` as a str if it is an existing, non-empty file.

    Raises
    ------
    ArgumentError
        If it is not a path.
    InputError
        If there is no such file (then also a FileNotFoundError), or it is a folder, pipe or device, or empty.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"a path is a str or an os.PathLike, not {type(path).__name__}")
    name = os.fspath(path)
    if os.path.isdir(name):
        raise InputError(f"{name}: is a folder: name a file in it")
    try:
        size = os.stat(name).st_size
    except FileNotFoundError as error:
        raise MissingFileError(f"{name}: no such file (looked in {os.getcwd()}): check the path") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be opened: {error.strerror}") from error
    if not os.path.isfile(name):
        raise InputError(f"{name}: is a pipe or device, and files are read more than once: write it to a file first")
    if size == 0:
        raise InputError(f"{name}: the file is empty")
    return name


@dataclass(frozen=True)
class Part:
    """The lines of a file that start at the bytes `start..stop - 1`; without `stop`, to the end of the file."""

    name: str  # path of the file
    start: int = 0
    stop: int | None = None


def line_blocks(name: str, size: int) -> Iterator[bytes]:
    """Yield the (decompressed) content of a file in blocks of about `size` bytes, cut at line ends."""
    for number, (_, block) in enumerate(part_blocks(Part(name), size)):
        if number == 0 and b"\n" not in block and b"\r" in block[:-1]:  # then this is the whole file
            raise InputError(f"{name}: the lines end in CR alone: convert the file, for instance with tr '\\r' '\\n'")
        yield block


def numbered_blocks(name: str, size: int) -> Iterator[tuple[int, bytes]]:
    """The same as `line_blocks`, each with the number of its first line, from 1."""
    line = 1
    for block in line_blocks(name, size):
        yield line, block
        line += block.count(b"\n")


def check_announced(where: str, sizes: Mapping[str, int], entries: int) -> None:
    """Reject sizes that a file announces or ids that it uses if they are far beyond what its entries can fill.

    Memory is needed for each row and column, so that otherwise a line of a small file takes all there is.

    Raises
    ------
    InputError
        For the first of the sizes; begins with `where`.
    """
    for what, size in sizes.items():
        if size > _UNUSED_PER_ENTRY * entries + _UNUSED_ALLOWED:
            raise InputError(
                f"{where}: {size:,} {what} are far beyond what {entries:,} entries can fill: number those that occur"
            )


def part_blocks(part: Part, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a part in blocks of about `size` (decompressed) bytes, with the position of each in the file.

    Compression (gzip, bz2, zstd, lz4) is detected from the content. A byte order mark is skipped.

    Raises
    ------
    InputError
        If the file cannot be read or decompressed, or is not text.
    """
    with _unreadable(part.name), pa.input_stream(part.name, compression=compression_of(part.name)) as stream:
        yield from _cut_at_lines(part.name, _chunks(stream, part, size), size)


def _chunks(stream: Any, part: Part, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the raw chunks of a part's lines with their positions."""
    position = max(part.start - 1, 0)  # the byte before tells whether a line starts here
    if position:
        stream.seek(position)
    at_line = part.start == 0
    while chunk := stream.read(size):
        if part.start == 0 and position == 0:
            _check_text(part.name, chunk)
        if not at_line:
            cut = chunk.find(b"\n") + 1
            position += cut or len(chunk)
            if not cut:
                continue
            chunk, at_line = chunk[cut:], True
            if part.stop is not None and position >= part.stop:
                return
        if part.stop is not None and position + len(chunk) >= part.stop:
            end = chunk.find(b"\n", max(part.stop - 1 - position, 0)) + 1
            if end:
                yield position, chunk[:end]
                return
        if chunk:
            yield position, chunk
        position += len(chunk)


@contextmanager
def _unreadable(name: str) -> Iterator[None]:
    """Convert errors of reading or decompressing to InputError that names the file."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: cannot be read: {error}; is the file complete?") from error


def _cut_at_lines(name: str, chunks: Iterable[tuple[int, bytes]], size: int) -> Iterator[tuple[int, bytes]]:
    """Regroup chunks into blocks that end at line ends, with their positions; skip a byte order mark."""
    start, tail = 0, b""
    for position, chunk in chunks:
        if position == 0 and chunk.startswith(_BYTE_ORDER_MARK):
            position, chunk = len(_BYTE_ORDER_MARK), chunk.removeprefix(_BYTE_ORDER_MARK)
        if not tail:
            start = position
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield start, tail + chunk[:cut]
            start, tail = position + cut, chunk[cut:]
        else:
            tail += chunk
        if len(tail) > max(size, _LONGEST_LINE):
            raise InputError(f"{name}: no line end within {len(tail) >> 20} MiB: is this a text file?")
    if tail:
        yield start, tail


def compression_of(name: str) -> str | None:
    """Return a file's compression, detected from its first bytes."""
    with open(name, "rb") as file:
        start = file.read(4)
    return next((kind for magic, kind in _COMPRESSIONS.items() if start.startswith(magic)), None)


def _check_text(name: str, start: bytes) -> None:
    """Raise InputError for a file whose first bytes are not text."""
    for magic, problem in _NOT_TEXT.items():
        if start.startswith(magic):
            raise InputError(f"{name}: {problem}")
