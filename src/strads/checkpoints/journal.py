"""The history of a program: the operators that it has run, and what each of them returned and changed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from strads.checkpoints.storage import DamagedFileError, Folder

_TAIL = 8  # entries at most that only the snapshot has: a file of the journal costs as much as that of a snapshot


@dataclass(frozen=True)
class Entry:
    """One operator that has finished.

    Attributes
    ----------
    name
        What it is, such as "async_for sgd".
    signature
        Digest of everything that determines what it does.
    result
        Tree of what it returned, or None if that cannot be restored, or if it failed: then it must be run again.
    values
        Trees of small things that it changed, such as accumulators, in the order in which it has them.
    changed
        Numbers of the things whose state it changed.
    touched
        Numbers of those that the driver's own code had changed before it.
    contents
        Checksums of those that it was the first to use, as the program had made them, and of those that the program's
        own code had written since the operator that used them before; None where unknown.
    error
        Class of the exception that it raised, or None.
    made
        Digests of the results that it made.
    """

    name: str
    signature: str
    result: Any
    values: list[Any] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    touched: list[int] = field(default_factory=list)
    contents: dict[int, str | None] = field(default_factory=dict)
    error: str | None = None
    made: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Segment:
    """A file with consecutive entries of the journal."""

    name: str  # of the file, relative to the folder
    begin: int  # position of the first entry
    end: int  # position after the last one


class Journal:
    """The entries of a run, in files of growing length, so that each is written again only a few times.

    The latest ones, which have no file yet, are in the snapshot.

    Attributes
    ----------
    entries
        All of them, by position.
    """

    def __init__(self, entries: Iterable[Entry] = (), segments: Iterable[Segment] = ()):
        self.entries = list(entries)
        self._segments = list(segments)

    @classmethod
    def read(cls, folder: Folder, segments: Iterable[Segment], tail: Iterable[Entry] = ()) -> "Journal":
        """Read the entries of some files, which those of `tail` follow.

        Raises
        ------
        DamagedFileError
            If one is missing or damaged, or if they are not the entries from 0 on.
        """
        entries: list[Entry] = []
        kept = list(segments)
        for segment in kept:
            if segment.begin != len(entries):
                raise DamagedFileError(f"{segment.name}: does not follow the previous one")
            try:
                content = folder.read_json(segment.name)
                entries += [entry_of(fields) for fields in content["entries"]]
            except (TypeError, KeyError, ValueError, AttributeError) as error:
                raise DamagedFileError(f"{segment.name}: {error}") from error
            if content.get("begin", segment.begin) != segment.begin or len(entries) != segment.end:
                raise DamagedFileError(
                    f"{segment.name}: has other entries than operators {segment.begin} to {segment.end}"
                )
        return cls([*entries, *tail], kept)

    def __len__(self) -> int:
        return len(self.entries)

    def write(self, folder: Folder, end: int, token: str) -> tuple[list[Segment], list[Entry]]:
        """Write the entries before `end` to files if there are many that have none.

        A file is merged with the one before while it is not shorter: there are few, and each entry is written
        a number of times that grows with the logarithm of their number.

        Returns
        -------
        segments
            The files.
        tail
            The entries from the last file's to `end`, which the snapshot is to have.
        """
        segments = [segment for segment in self._segments if segment.end <= end]
        begin = segments[-1].end if segments else 0
        if end - begin > _TAIL:
            while segments and end - begin >= segments[-1].end - segments[-1].begin:
                begin = segments.pop().begin
            name = f"journal/{end:010d}-{token}.json"
            content = {"begin": begin, "entries": [vars(entry) for entry in self.entries[begin:end]]}
            folder.write_json(name, content)
            segments.append(Segment(name, begin, end))
            begin = end
        self._segments = segments
        return segments, self.entries[begin:end]

    def changes(self, begin: int, end: int) -> Iterator[int]:
        """Return the numbers of the things that operators or the driver changed from the end of `begin` on."""
        for entry in self.entries[begin:end]:
            yield from entry.touched
            yield from entry.changed


def entry_of(fields: dict[str, Any]) -> Entry:
    """Return an entry from its fields in a file."""
    numbered = {key: {int(number): text for number, text in fields[key].items()} for key in ("contents", "made")}
    return Entry(**(fields | numbered))
