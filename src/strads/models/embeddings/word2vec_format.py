"""The file format of word2vec.c: a line with the numbers of words and of dimensions, then each word and its vector."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strads.dds.files import FilePath, check_file, compression_of
from strads.errors import InputError
from strads.models.corpora.documents import read_lines
from strads.models.model_files import replacing

_BATCH = 4096  # words written at a time
_LONGEST_WORD = 10_000  # bytes


def write_vectors(
    path: str | os.PathLike[str], words: list[str], vectors: NDArray[np.float32], *, binary: bool
) -> None:
    """Write words and vectors of shape (words, d); see `WordVectors.save_word2vec_format`."""
    for word in words:
        if not word or any(character.isspace() for character in word):
            raise InputError(f"{word!r} has white space, or nothing: word2vec's format cannot hold it")
    with replacing(Path(path)) as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for start in range(0, len(words), _BATCH):
            rows = zip(words[start : start + _BATCH], vectors[start : start + _BATCH], strict=True)
            if binary:
                file.write(b"".join(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n" for word, row in rows))
            else:
                file.write("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows).encode())


def read_vectors(path: FilePath, *, binary: bool) -> tuple[list[str], NDArray[np.float32]]:
    """Return words and vectors, float32 of shape (words, d)."""
    name = check_file(path)
    return _read_binary(name) if binary else _read_text(name)


def _read_text(name: str) -> tuple[list[str], NDArray[np.float32]]:
    lines = read_lines(name)
    count, dimensions = _header(name, next(lines, ""))
    words: list[str] = []
    vectors = _allocate(name, count, dimensions)
    for number, line in enumerate(lines):
        if number >= count:
            if line.strip():
                raise InputError(f"{name}:{number + 2}: there are more lines than the {count:,} words of line 1")
            continue
        word, *fields = line.rstrip().split(" ")
        place = f"{name}:{number + 2}"
        if len(fields) != dimensions:
            raise InputError(f"{place}: {len(fields)} numbers after {word!r:.40}; line 1 announces {dimensions}")
        try:
            vectors[number] = fields
        except ValueError as error:
            raise InputError(f"{place}: the vector of {word!r:.40} is not of numbers: {error}") from error
        words.append(word)
    _check_count(name, len(words), count)
    return words, vectors


def _read_binary(name: str) -> tuple[list[str], NDArray[np.float32]]:
    words: list[str] = []
    try:
        with pa.input_stream(name, compression=compression_of(name)) as stream:
            file = _Bytes(stream)
            count, dimensions = _header(name, file.until(b"\n").decode("utf-8", "replace"))
            vectors = _allocate(name, count, dimensions)
            for number in range(count):
                word = file.until(b" ").lstrip(b"\n")
                row = file.take(4 * dimensions)
                if len(row) < 4 * dimensions:
                    break
                try:
                    words.append(word.decode())
                except UnicodeDecodeError as error:
                    raise InputError(f"{name}: word {number} is not UTF-8 ({word[:40]!r}): is it binary?") from error
                vectors[number] = np.frombuffer(row, "<f4")
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{name}: cannot be read: {error}; is the file complete?") from error
    _check_count(name, len(words), count)
    return words, vectors


class _Bytes:
    """A stream that is read up to a byte, or by numbers of bytes."""

    def __init__(self, stream: IO[bytes] | Any):
        self._chunks: Iterator[bytes] = iter(lambda: stream.read(1 << 20), b"")
        self._rest, self._at = b"", 0

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._rest, self._at = self._rest[self._at :] + chunk, 0
        return bool(chunk)

    def until(self, end: bytes) -> bytes:
        """The bytes up to the next `end`, which is skipped; at most a few thousand."""
        while (found := self._rest.find(end, self._at)) < 0 and len(self._rest) - self._at < _LONGEST_WORD:
            if not self._more():
                break
        stop = found if found >= 0 else len(self._rest)
        start, self._at = self._at, min(stop + 1, len(self._rest))
        return self._rest[start:stop]

    def take(self, count: int) -> bytes:
        """Return this many bytes, or fewer at the end of the stream."""
        while len(self._rest) - self._at < count and self._more():
            pass
        start, self._at = self._at, min(self._at + count, len(self._rest))
        return self._rest[start : self._at]


def _header(name: str, line: str) -> tuple[int, int]:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and int(field) > 0 for field in fields):
        raise InputError(
            f"{name}:1: expected the numbers of words and of dimensions, found {line!r:.60}: is this word2vec's format?"
        )
    return int(fields[0]), int(fields[1])


def _allocate(name: str, count: int, dimensions: int) -> NDArray[np.float32]:
    try:
        return np.zeros((count, dimensions), np.float32)
    except (MemoryError, ValueError) as error:
        raise InputError(f"{name}:1: {count} × {dimensions} numbers are too many for the memory here") from error


def _check_count(name: str, found: int, announced: int) -> None:
    if found < announced:
        raise InputError(f"{name}: {announced:,} words are announced, but {found:,} follow: is the file complete?")
