"""Snapshots: which files hold the state after an operator. The newest one that is whole counts."""

import contextlib
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from strads.checkpoints.journal import Entry, Journal, Segment, entry_of
from strads.checkpoints.storage import DamagedFileError, Folder
from strads.checkpoints.trees import Tree
from strads.errors import CheckpointError

FORMAT = 4

_NUMBERED = r"\d{10,}-[0-9a-f]{8}"
_OWN_NAMES = {  # of files that strads writes, by subfolder; the folder may hold others
    "snapshots": rf"{_NUMBERED}\.json",
    "journal": rf"{_NUMBERED}\.json",
    "arrays": rf"{_NUMBERED}(-\d+-\d+)?\.npy",
    "parts": rf"{_NUMBERED}-\d+-\d+\.json",
    "unfinished": r"[0-9a-f]{16}\.json",
}


class OtherFormatError(CheckpointError):
    """A snapshot of another version of strads."""


@dataclass(frozen=True)
class Manifest:
    """What the file of a snapshot says of it.

    Attributes
    ----------
    position
        Number of operators that had finished.
    states
        Tree of each thing that was alive, by its number in the order in which operators first used them.
    checksums
        Checksum of each array file that the trees name.
    journal
        Journal files with the operators up to here, except the latest.
    tail
        The latest operators, which no journal file has yet.
    observed
        Positions of snapshots that stay because the program has read tables there.
    name
        Its file.
    format
        Version of the format.
    """

    position: int
    states: dict[int, Tree]
    checksums: dict[str, str]
    journal: list[Segment] = field(default_factory=list)
    tail: list[Entry] = field(default_factory=list)
    observed: list[int] = field(default_factory=list)
    name: str = ""
    format: int = FORMAT

    def write(self, folder: Folder) -> None:
        """Write the snapshot; all its files must be there."""
        content = vars(self) | {
            "states": {str(number): tree for number, tree in self.states.items()},
            "journal": [vars(segment) for segment in self.journal],
            "tail": [vars(entry) for entry in self.tail],
        }
        del content["name"]
        folder.write_json(self.name, content)

    @classmethod
    def read(cls, folder: Folder, name: str) -> "Manifest":
        """Read a snapshot.

        Raises
        ------
        DamagedFileError
            If it is damaged, or is that of another position.
        OtherFormatError
            If another version of strads wrote it.
        """
        content = folder.read_json(name)
        if "format" not in content:
            raise DamagedFileError(f"{name}: it is no snapshot")
        if content["format"] != FORMAT:
            raise OtherFormatError(
                f"{folder.url}/{name} has format {content['format']}, but this version of strads reads {FORMAT}: "
                "use the version that wrote it, or another checkpoint_dir"
            )
        try:
            if content["position"] != position_of(name):
                raise DamagedFileError(f"{name}: it is the snapshot after {content['position']} operators")
            return cls(
                content["position"],
                {int(number): tree for number, tree in content["states"].items()},
                dict(content["checksums"]),
                [Segment(**segment) for segment in content["journal"]],
                [entry_of(fields) for fields in content["tail"]],
                [int(position) for position in content["observed"]],
                name,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFileError(f"{name}: {error}") from error

    def array_files(self) -> set[str]:
        """Return the names of the files with the arrays of the snapshot."""
        return {file_of(name) for tree in self.states.values() for name in arrays_in(tree)}

    def files(self) -> set[str]:
        """Return the names of all files that the snapshot needs."""
        return self.array_files() | {segment.name for segment in self.journal}


def file_of(array: str) -> str:
    """Return the file that has an array of this name."""
    return array.partition("@")[0]


def name_of(position: int, token: str) -> str:
    """Return the name of a snapshot's file."""
    return f"snapshots/{position:010d}-{token}.json"


def position_of(name: str) -> int:
    """Return the position of a snapshot from the name of its file."""
    return int(name.rpartition("/")[2].partition("-")[0])


def _own(folder: Folder, subfolder: str) -> list[str]:
    """Return the files of a subfolder that strads has written, by their names."""
    name_of_file = re.compile(f"{subfolder}/{_OWN_NAMES[subfolder]}")
    return [name for name in folder.names(subfolder) if name_of_file.fullmatch(name)]


@dataclass
class Found:
    """The snapshots of a folder that a restarted program may use.

    Attributes
    ----------
    names
        Files of snapshots, by position; those found to be damaged are missing. There may be two of a position if one is
        damaged.
    newest
        The newest one, or None.
    journal
        Its operators.
    damaged
        Files of arrays found to be damaged or missing: nothing that is written may rely on them.
    dropped
        Positions of snapshots that turned out to be unusable.
    """

    folder: Folder
    names: dict[int, list[str]] = field(default_factory=dict)
    newest: Manifest | None = None
    journal: Journal = field(default_factory=Journal)
    damaged: set[str] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)

    @classmethod
    def search(cls, folder: Folder) -> "Found":
        """Find the newest snapshot of which manifest, journal and all arrays are there.

        Raises
        ------
        OtherFormatError
            If another version of strads wrote it.
        """
        found = cls(folder)
        for name in _own(folder, "snapshots"):
            found.names.setdefault(position_of(name), []).append(name)
        present = set(folder.names("arrays"))
        for name in sorted((name for names in found.names.values() for name in names), reverse=True):
            try:
                manifest = Manifest.read(folder, name)
                missing = manifest.array_files() - present
                if missing:
                    found.damaged |= missing
                    raise DamagedFileError(f"{min(missing)} is missing")
                found.journal = Journal.read(folder, manifest.journal, manifest.tail)
            except DamagedFileError as error:
                found.drop(name, error)
                continue
            found.newest = manifest
            break
        return found

    def at(self, position: int) -> Manifest | None:
        """Return the snapshot at a position; None if there is none, or it cannot be read."""
        while position in self.names:
            name = self.names[position][-1]
            try:
                return Manifest.read(self.folder, name)
            except (DamagedFileError, OtherFormatError, PermissionError) as error:
                self.drop(name, error)
        return None

    def drop(self, name: str, reason: Exception) -> None:
        """Forget a snapshot that cannot be used, with a warning."""
        names = self.names.get(position_of(name), [])
        if name in names:
            names.remove(name)
        if not names:
            self.names.pop(position_of(name), None)
        self.dropped.add(position_of(name))
        what = "is damaged" if isinstance(reason, DamagedFileError) else "cannot be read"
        warnings.warn(f"checkpoint {self.folder.url}/{name} {what} and is not used: {reason}", stacklevel=2)

    def whole(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        """Return the snapshots of which no file has been found to be damaged."""
        if not self.damaged:
            return list(manifests)
        return [each for each in manifests if self.damaged.isdisjoint(each.array_files())]


def remove_old(
    folder: Folder, kept: Collection[Manifest], *, unfinished: bool, check: Callable[[], None] = lambda: None
) -> None:
    """Remove every older snapshot except the given ones, and the files that none needs; no file of anyone else.

    Parameters
    ----------
    kept
        The newest one is among them.
    unfinished
        Whether to remove also what programs that were killed have left.
    check
        Raises an error if the folder is no longer this program's. Called when all names are known, so that nothing that
        another program writes is removed.
    """
    left = [name for each in ("unfinished", "parts") if unfinished for name in _own(folder, each)]
    others = set(_own(folder, "snapshots")) - {manifest.name for manifest in kept}
    newest = max(manifest.position for manifest in kept)
    old = {name for name in others if position_of(name) <= newest}
    needed = {name for manifest in kept for name in manifest.files()}
    for name in others - old:  # of another program, or given up as damaged
        with contextlib.suppress(DamagedFileError, OtherFormatError):
            needed |= Manifest.read(folder, name).files()
    files = [name for each in ("journal", "arrays") for name in _own(folder, each) if name not in needed]
    check()
    folder.remove(left)
    folder.remove(old)  # before their files, without which they would look damaged
    folder.remove(files)


def renamed(tree: Tree, name_of: Callable[[str], str]) -> Tree:
    """Return a tree with other names of its arrays."""
    if isinstance(tree, list):
        return [renamed(item, name_of) for item in tree]
    if isinstance(tree, dict):
        if isinstance(tree.get("array"), str):
            return {"array": name_of(tree["array"])}
        return {key: renamed(item, name_of) for key, item in tree.items()}
    return tree


def arrays_in(tree: Tree) -> Iterator[str]:
    """Return the names of all arrays of a tree."""
    if isinstance(tree, list):
        for item in tree:
            yield from arrays_in(item)
    elif isinstance(tree, dict):
        if isinstance(tree.get("array"), str):
            yield tree["array"]
        else:
            for item in tree.values():
                yield from arrays_in(item)
