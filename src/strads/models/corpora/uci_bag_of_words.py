"""Reading bags of words in the format of the UCI repository: `docword.NAME.txt` and `vocab.NAME.txt`.

Source: Newman, "Bag of Words", UCI Machine Learning Repository, 2008.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from strads.dds.csv_dialect import WHITESPACE, Dialect
from strads.dds.csv_parse import RecordFormat, parse_block
from strads.dds.files import FilePath, check_file, line_blocks
from strads.errors import InputError
from strads.models.corpora.counts import LARGEST, Counts, counts_of_entries
from strads.models.corpora.documents import read_vocabulary

_BLOCK_BYTES = 4 << 20
_ENTRY = np.dtype([("document", "i4"), ("word", "i4"), ("count", "i4")])
_HEADER = ("documents", "words", "entries")
_DIALECT = Dialect(WHITESPACE)


class UciBagOfWords(NamedTuple):
    """The contents of the two files, in the order of the parameters of `Corpus`."""

    offsets: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    n_words: int
    vocabulary: list[str] | None


def read_uci(docword: FilePath, vocab: FilePath | None = None) -> UciBagOfWords:
    """Read counts, and the vocabulary if there is one; see `Corpus.from_uci`."""
    vocabulary = None if vocab is None else read_vocabulary(vocab)
    counts = _read_docword(check_file(docword), vocabulary, vocab)
    return UciBagOfWords(*counts, vocabulary)


def looks_like_uci(path: FilePath) -> bool:
    """Whether a file starts with three lines of one integer each, followed by one of three."""
    block = next(line_blocks(check_file(path), _BLOCK_BYTES), b"")
    lines = [line.split() for line in block.split(b"\n", 4)[:4]]
    return list(map(len, lines)) == [1, 1, 1, 3] and all(field.isdigit() for line in lines for field in line)


class _Header(NamedTuple):
    documents: int
    words: int
    entries: int


def _read_docword(name: str, vocabulary: list[str] | None, vocab: FilePath | None) -> Counts:
    blocks = _numbered_blocks(name)
    header, rest = _cut_header(name, next(blocks, (1, b""))[1])
    if vocabulary is not None and len(vocabulary) != header.words:
        raise InputError(f"{name}:2: there are {header.words} words, but {len(vocabulary)} in {vocab}")
    columns = _allocate(name, header)
    entries = 0
    for line, block in chain([(1 + len(_HEADER), rest)], blocks):
        records = _parse(block, line, name)
        _check_entries(records, header, entries, _Place(name, block, line))
        for field, column in columns.items():
            column[entries : entries + len(records)] = records[field]
        entries += len(records)
    if entries < header.entries:
        raise InputError(
            f"{name}:3: {header.entries} entries are announced, but {entries} follow; is the file complete?"
        )
    documents, words, counts = columns.values()
    documents -= 1
    words -= 1
    return counts_of_entries(documents, words, counts, (header.documents, header.words))


def _allocate(name: str, header: _Header) -> dict[str, NDArray[np.int32]]:
    try:
        return {field: np.empty(header.entries, np.int32) for field in _ENTRY.names or ()}
    except (MemoryError, ValueError) as error:
        raise InputError(f"{name}:3: {header.entries} entries are announced: too many for the memory here") from error


def _numbered_blocks(name: str) -> Iterator[tuple[int, bytes]]:
    line = 1
    for block in line_blocks(name, _BLOCK_BYTES):
        yield line, block
        line += block.count(b"\n")


def _cut_header(name: str, block: bytes) -> tuple[_Header, bytes]:
    """Split a block into the first three lines and the rest."""
    lines = block.split(b"\n", len(_HEADER))
    numbers = []
    for number, what in enumerate(_HEADER):
        text = lines[number].strip() if number < len(lines) else b""
        if not text.isdigit() or (int(text) > LARGEST and what != "entries"):
            limit = "" if what == "entries" else f", at most {LARGEST}"
            raise InputError(
                f"{name}:{number + 1}: expected the number of {what}{limit}, found "
                f"{text.decode('utf-8', 'replace')!r:.60}; the first three lines are the numbers of documents, "
                "words and entries"
            )
        numbers.append(int(text))
    return _Header(*numbers), lines[len(_HEADER)] if len(lines) > len(_HEADER) else b""


def _parse(block: bytes, line: int, name: str) -> NDArray[Any]:
    if not block.strip():
        return np.empty(0, _ENTRY)
    try:
        return parse_block(block, line, RecordFormat(name, _DIALECT, _ENTRY, (0, 1, 2), 3, len(_HEADER) + 1))
    except InputError as error:
        # NumPy's advice there is for columns whose type can be chosen.
        message, advised, _ = str(error).rpartition("; ")
        raise InputError(f"{message}; correct the line" if advised else str(error)) from error


class _Place(NamedTuple):
    name: str
    block: bytes
    first_line: int

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise an error that names the line of a record; blank lines are not records."""
        lines = self.block.decode("utf-8", "replace").split("\n")
        filled = [number for number, text in enumerate(lines) if not _DIALECT.is_skipped(text)]
        raise InputError(f"{self.name}:{self.first_line + filled[row]}: {problem}")


def _check_entries(records: NDArray[Any], header: _Header, before: int, place: _Place) -> None:
    for field, limit, line in (("document", header.documents, 1), ("word", header.words, 2), ("count", LARGEST, None)):
        values = records[field]
        wrong = (values < 1) | (values > limit)
        if wrong.any():
            row = int(np.argmax(wrong))
            bound = "" if line is None else f" as line {line} says"
            place.refuse(row, f"{field} {values[row]} is outside 1 … {limit}{bound}")
    if before + len(records) > header.entries:
        place.refuse(header.entries - before, f"there are more entries than the {header.entries} that line 3 announces")
