"""Reading bags of words in the format of the UCI repository: `docword.NAME.txt` and `vocab.NAME.txt`.

Source: Newman, "Bag of Words", UCI Machine Learning Repository, 2008.
"""

from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from strads.dds.csv_dialect import WHITESPACE, Dialect, is_number
from strads.dds.csv_parse import RecordFormat, line_of_record, parse_block
from strads.dds.files import FilePath, check_announced, check_file, line_blocks, numbered_blocks
from strads.errors import InputError
from strads.models.corpora.counts import LARGEST, Counts, counts_of_entries
from strads.models.corpora.documents import read_vocabulary

_BLOCK_BYTES = 4 << 20  # read at a time
_PEEKED_LINES = 50  # read to recognize the format
_ENTRY = np.dtype([("document", "i4"), ("word", "i4"), ("count", "i4")])
_HEADER = ("documents", "words", "entries")
_DIALECT = Dialect(WHITESPACE)


def read_uci(docword: FilePath, vocab: FilePath | None = None) -> tuple[Counts, list[str] | None]:
    """Read counts, and the vocabulary if there is one; see `Corpus.from_uci`."""
    vocabulary = None if vocab is None else read_vocabulary(vocab)
    return _read_docword(check_file(docword), vocabulary, vocab), vocabulary


def looks_like_uci(path: FilePath) -> bool:
    """Whether the first lines are a bag of words: one number on most of the first three, then mostly three on each.

    A few may be malformed: such a file is not a text, and `read_uci` says what is wrong with it.
    """
    block = next(line_blocks(check_file(path), _BLOCK_BYTES), b"")
    lines = block.decode("utf-8", "replace").split("\n")[:_PEEKED_LINES]
    counts = [_numbers_on(line) for line in lines if line.strip()]
    head, entries = counts[: len(_HEADER)], counts[len(_HEADER) :]
    triples = entries.count(3) / max(len(entries), 1)
    if head.count(1) >= 2:
        return triples >= 0.5 or not entries
    return len(entries) >= 3 and triples >= 0.8


def _numbers_on(line: str) -> int | None:
    """How many numbers a line has; None if it has anything else."""
    fields = line.split()
    return len(fields) if all(map(is_number, fields)) else None


class _Header(NamedTuple):
    documents: int
    words: int
    entries: int


def _read_docword(name: str, vocabulary: list[str] | None, vocab: FilePath | None) -> Counts:
    blocks = numbered_blocks(name, _BLOCK_BYTES)
    header, rest = _cut_header(name, next(blocks, (1, b""))[1])
    if vocabulary is not None and len(vocabulary) != header.words:
        raise InputError(f"{name}:2: there are {header.words} words, but {len(vocabulary)} in {vocab}")
    form = RecordFormat(name, _DIALECT, _ENTRY, (0, 1, 2), 3, len(_HEADER) + 1, is_declared=False)
    columns = {field: np.empty(0, np.int32) for field in _ENTRY.names or ()}
    entries = 0
    for line, block in chain([(1 + len(_HEADER), rest)], blocks):
        records = parse_block(block, line, form)
        _check_entries(records, header, entries, _Place(name, block, line))
        entries += len(records)
        for field, column in columns.items():
            if entries > len(column):  # grows with what is there, whatever the header announces
                column.resize(min(header.entries, max(entries, 2 * len(column))), refcheck=False)
            column[entries - len(records) : entries] = records[field]
    if entries < header.entries:
        raise InputError(
            f"{name}:3: {header.entries} entries are announced, but {entries} follow; is the file complete?"
        )
    check_announced(f"{name}:1", {"documents": header.documents}, entries)
    check_announced(f"{name}:2", {"words": header.words}, entries)
    documents, words, counts = columns.values()
    documents -= 1
    words -= 1
    return counts_of_entries(documents, words, counts, (header.documents, header.words))


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


class _Place(NamedTuple):
    name: str
    block: bytes
    first_line: int

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise an error that names the line of a record."""
        raise InputError(f"{self.name}:{line_of_record(self.block, self.first_line, row, _DIALECT)}: {problem}")


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
