"""Reading text files line by line through a user's parser."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from strads.dds._results import Collector, Columns, Shape, Source
from strads.dds.files import Part, part_blocks
from strads.errors import InputError

_BLOCK_BYTES = 1 << 20  # read at a time

Parser = Callable[[str], Any]
First = tuple[Shape, int, str]
"""The shape required of all results, and the line and file that determined it."""


class PartReader(ABC):
    """Reads one part of a file."""

    part: Any  # has a name
    newlines = 0  # line ends in the part, up to where it was read
    first: First | None = None  # that of the first result; None if there is none yet, or results cannot differ

    @abstractmethod
    def read(self, first_line: int, first: First | None) -> tuple[Any, First | None]:
        """Read the lines of the part.

        Parameters
        ----------
        first_line
            Number of the first line in the file, from 1.
        first
            The shape required of results, if an earlier part has determined it.

        Returns
        -------
        The results, and the shape required of the following parts.
        """


class TextPart(PartReader):
    """A parser's results for the lines of one part of a file."""

    def __init__(self, part: Part, parser: Parser):
        self.part = part
        self._parser = parser

    def read(self, first_line: int, first: First | None) -> tuple[Columns | None, First | None]:
        """Parse all lines."""
        name = self.part.name
        collector = Collector(
            Source(
                "the parser",
                lambda line: f"{name}:{line}",
                lambda line: f"line {line}",
                "correct the line, or let the parser return None to skip it",
            ),
            None if first is None else (first[0], self._place(first)),
        )
        self.newlines, self.first = 0, None
        try:
            for number, line in self._lines(first_line):
                result = self._parse(line, number)
                if result is not None:
                    collector.add(result, number)
                    if self.first is None and collector.first is not None:
                        self.first = collector.first[0], number, name
        except InputError:
            collector.columns()  # numbers are checked in batches: an earlier line may be wrong, too
            raise
        return collector.columns(), first or self.first

    def _place(self, first: First) -> str:
        _, line, file = first
        return f"line {line}" if file == self.part.name else f"line {line} of {file}"

    def _parse(self, line: str, number: int) -> Any:
        try:
            return self._parser(line)
        except Exception as error:
            raise InputError(
                f"{self.part.name}:{number}: the parser failed with {type(error).__name__}: {error}, on {line!r:.60}; "
                "correct the line, or let the parser return None to skip it"
            ) from error

    def _lines(self, first_line: int) -> Iterator[tuple[int, str]]:
        number = first_line - 1
        for _, block in part_blocks(self.part, _BLOCK_BYTES):
            self.newlines += block.count(b"\n")
            for raw in block.removesuffix(b"\n").split(b"\n"):
                number += 1
                try:
                    yield number, raw.removesuffix(b"\r").decode("utf-8")
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{self.part.name}:{number}: byte {error.start + 1} of the line is not UTF-8 "
                        f"({raw[error.start]:#04x}): convert the file, for instance with iconv"
                    ) from error
