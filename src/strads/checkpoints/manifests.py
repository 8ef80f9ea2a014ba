"""Snapshots: which files hold the state after an operator. The newest one that is whole counts."""

import re
import warnings
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field

from strads.checkpoints.journal import Journal, Segment
from strads.checkpoints.storage import DamagedFileError, Folder
from strads.checkpoints.tree_arrays import arrays_in
from strads.checkpoints.trees import Tree
from strads.errors import CheckpointError

FORMAT = 1

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
    """A snapshot.

    Attributes
    ----------
    position
        Number of operators that had finished.
    states
        Tree of each thing that was alive, by its number in the order in which operators first used them.
    checksums
        Checksum of each array file that the trees name.
    journal
        Files with the operators up to here.
    observed
        Positions of snapshots that stay because the program has read tables there.
    format
        Version of the format.
    """

    position: int
    states: dict[int, Tree]
    checksums: dict[str, str]
    journal: list[Segment] = field(default_factory=list)
    observed: list[int] = field(default_factory=list)
    format: int = FORMAT

    def write(self, folder: Folder, token: str) -> None:
        """Write the snapshot; all its files must be there."""
        content = asdict(self) | {"states": {str(number): tree for number, tree in self.states.items()}}
        folder.write_json(_name(self.position, token), content)

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
        if content.get("format") != FORMAT:
            raise OtherFormatError(
                f"{folder.url}/{name} has format {content.get('format')}, but this version of strads reads {FORMAT}: "
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
                [int(position) for position in content["observed"]],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFileError(f"{name}: {error}") from error

    def files(self) -> set[str]:
        """Return the names of all files that the snapshot needs."""
        arrays = {name.partition("@")[0] for tree in self.states.values() for name in arrays_in(tree)}
        return arrays | {segment.name for segment in self.journal}


def _name(position: int, token: str) -> str:
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
        File of each snapshot, by position; those found to be damaged are missing.
    newest
        The newest one, or None.
    journal
        Its operators.
    """

    folder: Folder
    names: dict[int, str]
    newest: Manifest | None = None
    journal: Journal = field(default_factory=Journal)

    @classmethod
    def search(cls, folder: Folder) -> "Found":
        """Find the newest snapshot of which manifest, journal and all arrays are there.

        Raises
        ------
        OtherFormatError
            If another version of strads wrote it.
        """
        found = cls(folder, {position_of(name): name for name in _own(folder, "snapshots")})
        present = set(folder.names("arrays"))
        for position in sorted(found.names, reverse=True):
            try:
                manifest = Manifest.read(folder, found.names[position])
            except DamagedFileError as error:
                found.drop(position, error)
                continue
            missing = sorted(name for name in manifest.files() - present if name.startswith("arrays/"))
            if missing:
                found.drop(position, f"{missing[0]} is missing")
                continue
            try:
                found.journal = Journal.read(folder, manifest.journal)
            except DamagedFileError as error:
                found.drop(position, error)
                continue
            found.newest = manifest
            break
        return found

    def at(self, position: int) -> Manifest | None:
        """Return the snapshot at a position; None if there is none, or it cannot be read."""
        if position not in self.names:
            return None
        try:
            return Manifest.read(self.folder, self.names[position])
        except (DamagedFileError, OtherFormatError) as error:
            self.drop(position, error)
            return None

    def drop(self, position: int, reason: object) -> None:
        """Forget a snapshot that cannot be used, with a warning."""
        name = self.names.pop(position)
        what = "cannot be read" if isinstance(reason, OtherFormatError) else "is damaged"
        warnings.warn(f"checkpoint {self.folder.url}/{name} {what} and is not used: {reason}", stacklevel=2)

    def before(self, begin: int, end: int) -> Iterator[int]:
        """Return the positions of snapshots after `begin`, up to `end`; the newest first."""
        return (position for position in sorted(self.names, reverse=True) if begin < position <= end)


def remove_old(folder: Folder, kept: Collection[Manifest], *, unfinished: bool) -> None:
    """Remove every snapshot except the given ones, and the files that none of them needs; no file of anyone else.

    With `unfinished`, also what programs that were killed have left.
    """
    if unfinished:
        folder.remove(name for each in ("unfinished", "parts") for name in _own(folder, each))
    positions = {manifest.position for manifest in kept}
    newest = max(positions)
    needed = {name for manifest in kept for name in manifest.files()}
    # The manifests first: a snapshot without its files would look damaged.
    manifests = _own(folder, "snapshots")
    folder.remove(name for name in manifests if position_of(name) not in positions and position_of(name) < newest)
    folder.remove(name for each in ("journal", "arrays") for name in _own(folder, each) if name not in needed)
