"""Splitting the lines of a delimited text file into fields, and detecting the delimiter."""

import csv
import re
from dataclasses import dataclass

from strads.errors import InputError

WHITESPACE = " "
_CANDIDATES = (",", "\t", ";", "::", "|", WHITESPACE)
_UNIT_SEPARATOR = "\x1f"  # stands in for delimiters of several bytes, which pyarrow cannot parse
_QUOTED = re.compile(r'"([^"]|"")*"')


@dataclass(frozen=True)
class Dialect:
    """Delimiter and comment mark of a file.

    A delimiter of one space stands for any run of spaces and tabs. Fields may be quoted, except where the delimiter
    is a tab, whitespace or several characters: there quotes are ordinary characters.
    """

    delimiter: str
    comment: str | None = None

    @property
    def quoted(self) -> bool:
        """Whether a quoted field may contain the delimiter."""
        return len(self.delimiter.encode()) == 1 and not self.delimiter.isspace()

    @property
    def arrow_delimiter(self) -> str:
        """The single character that separates fields after `for_arrow`."""
        return self.delimiter if len(self.delimiter.encode()) == 1 else _UNIT_SEPARATOR

    def split(self, line: str) -> list[str]:
        """Return the fields of a line, without quotes and surrounding blanks.

        Raises
        ------
        InputError
            If a quote is not closed on the line, or stands after a blank.
        """
        if self.delimiter == WHITESPACE:
            return [_strip(field) for field in line.split()]
        if not self.quoted or '"' not in line:
            return [_strip(field) for field in line.split(self.delimiter)]
        try:
            fields = next(csv.reader([line], delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            raise InputError(f"a quote is not closed on the line, or does not enclose a field ({error})") from error
        if any(field[:1].isspace() and field.lstrip().startswith('"') for field in fields):
            raise InputError("a quote after a blank does not enclose a field: remove the blank")
        return [field.strip() for field in fields]

    def is_skipped(self, line: str) -> bool:
        """Whether a line is blank or a comment."""
        return not line.strip() or (self.comment is not None and line.startswith(self.comment))

    def for_arrow(self, block: bytes) -> bytes:
        """Return the lines of a block with one character between fields, and comments blanked."""
        if self.comment is not None and self.comment.encode() in block:
            mark = self.comment.encode()
            block = b"\n".join(b"" if line.startswith(mark) else line for line in block.split(b"\n"))
        if self.delimiter == WHITESPACE:
            return _single_spaces(block)
        if self.arrow_delimiter != self.delimiter:
            return block.replace(self.delimiter.encode(), _UNIT_SEPARATOR.encode())
        return block


def sniff_delimiter(lines: list[str], columns: int) -> str:
    """Return the delimiter that splits most lines into at least `columns` numbers, and as many fields as the first.

    Parameters
    ----------
    lines : list of str
        First lines of a file, without blank ones and comments; one of them may be a header.
    columns : int
        Number of numeric columns to read.
    """

    def score(delimiter: str) -> tuple[int, int]:
        fields = [try_split(Dialect(delimiter), line) for line in lines]
        alike = [line for line in fields if len(line) == len(fields[0])]
        numeric = sum(sum(map(is_number, line)) >= columns for line in alike)
        return numeric, sum(len(line) >= max(columns, 2) for line in alike)

    return max(_CANDIDATES, key=score)


def is_number(text: str) -> bool:
    """Whether a field can be parsed as a number, including infinity and NaN."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def try_split(dialect: Dialect, line: str) -> list[str]:
    """Return the fields of a line; none if a quote is open."""
    try:
        return dialect.split(line)
    except InputError:
        return []


def _strip(field: str) -> str:
    field = field.strip()
    return field[1:-1].replace('""', '"').strip() if _QUOTED.fullmatch(field) else field


def _single_spaces(block: bytes) -> bytes:
    block = block.replace(b"\t", b" ").replace(b"\r\n", b"\n")
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
