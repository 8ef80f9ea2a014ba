"""Opening files: whether they can be read, how they are compressed, and their lines."""

import os
from collections.abc import Iterator

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
_LONGEST_LINE = 64 << 20


class MissingFileError(InputError, FileNotFoundError):
    """A file to be read that does not exist."""


def check_file(path: FilePath) -> str:
    """`path` as text, if it is a file that is there and not empty.

    Raises
    ------
    ArgumentError
        If it is not a path.
    InputError
        If there is no such file (this error is a FileNotFoundError too), or if it is a folder, or empty.
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
    if size == 0 and os.path.isfile(name):
        raise InputError(f"{name}: the file is empty")
    return name


def line_blocks(name: str, size: int) -> Iterator[bytes]:
    """The (decompressed) content of a file in blocks of about `size` bytes, cut after line ends.

    Compression (gzip, bz2, zstd, lz4) is recognised by content. A byte order mark is left out.

    Raises
    ------
    InputError
        If the file cannot be read or decompressed, or is not text.
    """
    try:
        yield from _cut_at_lines(name, size)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: cannot be read: {error}; is the file complete?") from error


def _cut_at_lines(name: str, size: int) -> Iterator[bytes]:
    with pa.input_stream(name, compression=_compression(name)) as stream:
        chunk = stream.read(size)
        _check_text(name, chunk)
        chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
        tail = b""
        while chunk:
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield tail + chunk[:cut]
                tail = chunk[cut:]
            else:
                tail += chunk
            if len(tail) > max(size, _LONGEST_LINE):
                raise InputError(f"{name}: no line end within {len(tail) >> 20} MiB: is this a text file?")
            chunk = stream.read(size)
        if tail:
            yield tail


def _compression(name: str) -> str | None:
    with open(name, "rb") as file:
        start = file.read(4)
    return next((kind for magic, kind in _COMPRESSIONS.items() if start.startswith(magic)), None)


def _check_text(name: str, start: bytes) -> None:
    for magic, problem in _NOT_TEXT.items():
        if start.startswith(magic):
            raise InputError(f"{name}: {problem}")
