"""Fast re-execution: operators are skipped, and their effects fetched from snapshots when the program looks at them.

Between two snapshots the state in memory may be older than the program believes. What was skipped since is kept, so
that it can be run after all: with the arguments that it had, on roots as they were then.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints.checksums import checksum_of
from strads.checkpoints.digests import digest
from strads.checkpoints.journal import Entry
from strads.checkpoints.manifests import Found, Manifest, arrays_in, file_of, renamed
from strads.checkpoints.on_nodes import LoadTicket
from strads.checkpoints.operators import Operator, is_closed, is_result, loads_on_nodes
from strads.checkpoints.roots import Roots
from strads.checkpoints.storage import DamagedFileError, Folder
from strads.checkpoints.trees import Load, Save, Tree
from strads.errors import CheckpointError

_MANY_REPEATED = 3  # operators; repeating fewer is not worth a warning
_SMALL = 1 << 16  # bytes of an argument that is copied with each operator


class SessionLoad(Load):
    """Restores state from a snapshot, here or on nodes.

    Parameters
    ----------
    arrays
        Those that have been read, by name; others are read when they are needed. Each is given away once.
    """

    def __init__(self, folder: Folder, checksums: dict[str, str], arrays: dict[str, NDArray[Any]]):
        super().__init__(self._fetch)
        self._folder, self._checksums, self._arrays = folder, checksums, arrays

    def _fetch(self, name: str, target: NDArray[Any] | None) -> NDArray[Any]:
        found = self._arrays.pop(name, None)
        return self._folder.read_array(name, self._checksums[name], target) if found is None else found

    def ticket(self, tree: Tree) -> LoadTicket:
        """Return what a node needs to restore a tree."""
        return LoadTicket(self._folder.url, {name: self._checksums[name] for name in arrays_in(tree)})


@dataclass(frozen=True)
class Step:
    """Something to be done again: a skipped operator, or a write of the driver's own code."""

    position: int  # number of operators before it
    run: Callable[[], None]
    roots: frozenset[int] = frozenset()  # numbers of those that it uses
    is_write: bool = False  # which is needed even if a later snapshot is used


class ReExecution:
    """The state of a program between skipped operators.

    `inside` returns a context in which accesses are not those of the program's own code.
    """

    def __init__(self, found: Found, roots: Roots, inside: Callable[[], AbstractContextManager[None]]):
        self._found, self._roots, self._inside = found, roots, inside
        self._base = 0  # position of the state in memory
        self._steps: list[Step] = []  # from there on
        self._stale: set[int] = set()  # roots whose state is older than the program believes
        self.lost: set[int] = set()  # roots whose state no snapshot has
        self._failure: str | None = None  # why the state cannot be brought up to date
        self._restored: set[int] = set()  # roots that the latest snapshot had
        self._written: dict[int, int] = {}  # root → position of the latest write of the program's own code

    def skip(self, late: "LateOperator", entry: Entry) -> None:
        """Skip an operator."""
        operator = late.operator
        self._steps.append(late.step())
        for value, state in zip(operator.values, entry.values, strict=True):
            value.restore_small_state(state)
        self._stale.update(entry.changed)

    def observe(self, root: Any, number: int, position: int, *, writes: bool) -> None:
        """Prepare an access of the program's own code to a root, at a position.

        Raises
        ------
        CheckpointError
            If no snapshot has the root.
        """
        if number in self.lost:
            raise CheckpointError("the checkpoint lacks something that the program looks at: it has changed")
        if number in self._stale and not (is_result(root) and self._restore_early(root, number, position)):
            self.catch_up(position)
        if writes and self._steps:
            self._keep(number, position)

    def catch_up(self, position: int) -> None:
        """Bring all state to a position, from a snapshot and by running what was skipped after it.

        Raises
        ------
        CheckpointError
            If something that the skipped operators depend on has changed; and always after that.
        """
        if self._failure is not None:
            raise CheckpointError(self._failure)
        self._restored = set()
        with self._inside():
            for number, since in self._written.items():
                if self._roots.get(number) is not None:  # as its own code left it; if stale, operators changed it since
                    self._steps.append(write_of(self._roots, number, since))
        self._written = {}
        self._base = self._restore_newest(position)
        steps = [step for step in self._steps if step.position >= self._base or self._is_needed(step)]
        steps = sorted(that_count(steps, self._roots, self._stale), key=lambda step: (step.position, not step.is_write))
        self._steps = []
        try:
            self._run_again(steps, position)
        except CheckpointError as error:
            self._failure = str(error)
            raise
        self.lost |= self._stale - self._restored - {number for step in steps for number in step.roots}
        self._base = position
        self._stale.clear()
        self._roots.changes()

    def _restore_newest(self, end: int) -> int:
        """Restore the newest snapshot up to a position that has what is needed; returns the position of the state."""
        for position in sorted((p for p in self._found.names if self._base < p <= end), reverse=True):
            while (manifest := self._found.at(position)) is not None:
                wanted = self._wanted(manifest, end)
                if wanted is None:
                    break
                if self.restore(manifest, wanted):
                    return position
        return self._base

    def _run_again(self, steps: list[Step], position: int) -> None:
        count = sum(not step.is_write for step in steps)
        if count >= _MANY_REPEATED:
            reason = (
                "the snapshots of that position are damaged"
                if any(self._base < place <= position for place in self._found.dropped)
                else "the program reads tables there and no snapshot of it was kept; strads.record remembers "
                "values that are computed from tables"
            )
            warnings.warn(
                f"{count} operators before operator {position} run again, because {reason}",
                RuntimeWarning,
                stacklevel=5,
            )
        current = {number for step in steps for number in step.roots} - self._stale
        with self._inside():
            # A result that is up to date already may have been changed since by the program's own code.
            results = [number for number in sorted(current) if is_result(self._roots.get(number))]
            finished = [write_of(self._roots, number, position) for number in results]
            for step in (steps if count else []) + finished:
                step.run()

    def _wanted(self, manifest: Manifest, position: int) -> list[tuple[int, Any]] | None:
        """Return the roots that a snapshot must bring up to date; None if it cannot.

        A result that a later operator makes is left alone: fit has set what the operator does not. One that the
        program's own code had changed before the snapshot was taken would be changed twice.
        """
        wanted = []
        for number, root in self._roots.alive():
            if number not in self._stale or is_closed(root):
                continue
            if is_result(root):
                if any(number in entry.made for entry in self._found.journal.entries[manifest.position : position]):
                    continue
                if not self._is_as_made(manifest, number):
                    return None
            wanted.append((number, root))
        return wanted

    def _is_as_made(self, manifest: Manifest, number: int) -> bool:
        """Whether a snapshot has a result as the latest operator before it had made it."""
        if number not in manifest.states:
            return False
        before = reversed(self._found.journal.entries[: manifest.position])
        made = next((entry.made[number] for entry in before if number in entry.made), None)
        return made == digest(_content(manifest, number))

    def _is_needed(self, step: Step) -> bool:
        """Whether a step before the snapshot that was restored is needed: a write of what the snapshot lacks."""
        return step.is_write and not step.roots & self._restored

    def ran(self, position: int) -> None:
        """Declare that an operator has been run after `catch_up`, and that this is the position now."""
        self._base = position
        self._roots.changes()

    def restore(self, manifest: Manifest, roots: list[tuple[int, Any]]) -> bool:
        """Restore roots from a snapshot; returns whether it was undamaged, otherwise nothing has changed."""
        wanted = [(number, root) for number, root in roots if number in manifest.states]
        arrays: dict[str, NDArray[Any]] = {}  # all of them, before anything changes
        folder, checksums = self._found.folder, manifest.checksums
        for number, root in wanted:
            for name in sorted(set(arrays_in(manifest.states[number])) - arrays.keys()):
                try:
                    if loads_on_nodes(root):  # which read it once more
                        folder.check_array(name, checksums[name])
                    else:
                        arrays[name] = folder.read_array(name, checksums[name])
                except DamagedFileError as error:
                    self._found.damaged.add(file_of(name))
                    self._found.drop(manifest.name, error)
                    return False
        with self._inside():
            for number, root in wanted:
                SessionLoad(folder, checksums, arrays)(manifest.states[number], root)
        self._restored = {number for number, _ in wanted}
        return True

    def _restore_early(self, root: Any, number: int, position: int) -> bool:
        """Restore a result from the newest snapshot, if nothing has changed it until then."""
        newest = self._found.newest
        if newest is None or number in self._found.journal.changes(position, newest.position):
            return False
        if not self._is_as_made(newest, number):
            return False
        if not self.restore(newest, [(number, root)]):
            return False
        self._stale.discard(number)
        self._roots.changes()
        self._steps = that_count(self._steps, self._roots, self._stale)
        return True

    def _keep(self, number: int, position: int) -> None:
        """Keep what skipped operators have read, before the program's own code writes it."""
        since = self._written.get(number, 0)
        if any(number in step.roots and step.position >= since and not step.is_write for step in self._steps):
            with self._inside():
                self._steps.append(write_of(self._roots, number, since))
        self._written[number] = position


def write_of(roots: Roots, number: int, since: int) -> Step:
    """Return the step that gives a living root its present state, which operators from a position on have seen."""
    copy = _Copy(roots.get(number))
    return Step(since, lambda: copy.restore(roots.get(number)), frozenset([number]), is_write=True)


def that_count(steps: list[Step], roots: Roots, stale: Collection[int]) -> list[Step]:
    """Return the steps of which something can be seen.

    Nothing can be seen of a root that is closed, of a result that is up to date, nor of one that a later step makes.
    """
    latest = {number: step.position for step in steps for number in step.roots}

    def counts(step: Step, number: int) -> bool:
        root = roots.get(number)
        if is_result(root):
            return number in stale and latest[number] == step.position
        return not is_closed(root)

    return [step for step in steps if step.is_write or any(counts(step, number) for number in step.roots)]


class _Copy:
    """A copy of a root's state, in memory."""

    def __init__(self, root: Any):
        self._arrays: list[Any] = []
        self._tree = Save(self._keep).apart(root)

    def _keep(self, array: Any) -> str:
        self._arrays.append(array.copy())
        return str(len(self._arrays) - 1)

    def restore(self, root: Any) -> None:
        """Restore it, if the root is still alive."""
        if root is not None:
            Load(lambda name, target: self._arrays[int(name)].copy())(self._tree, root)


def digest_of(root: Any) -> str | None:
    """Return the digest of a root's state; None if it has something that a checkpoint cannot hold."""
    try:
        return digest(Save(lambda array: checksum_of(np.ascontiguousarray(array))).apart(root))
    except CheckpointError:
        return None


def _content(manifest: Manifest, number: int) -> Tree:
    """Return what `digest_of` is of, for a root that is restored from a snapshot."""
    return renamed(manifest.states[number], manifest.checksums.__getitem__)


class LateOperator:
    """An operator that may be run later, or once more, on what it was called with."""

    def __init__(self, position: int, operator: Operator, numbers: Sequence[int]):
        self.position, self.operator = position, operator  # position: the number of operators before it
        self._numbers = numbers  # of its roots
        described = operator.signature()
        self.signature = digest(operator.name, numbers, described)  # of everything that determines what it does
        self._before = [value.small_state() for value in operator.values]
        self._arrays = [(array, array.copy()) for array in _small_arrays(described)]

    def step(self) -> Step:
        """Return the step that runs it."""
        return Step(self.position, self.run, frozenset(self._numbers))

    def reset(self) -> None:
        """Give its small things the state before it."""
        for value, state in zip(self.operator.values, self._before, strict=True):
            value.restore_small_state(state)

    def run(self) -> None:
        """Run it; its small things, and arrays among its arguments, then have the state that they have now.

        Raises
        ------
        CheckpointError
            If something else that it depends on has changed since.
        """
        values = self.operator.values
        after = [value.small_state() for value in values]
        arrays = [(array, array.copy()) for array, _ in self._arrays]
        self.reset()
        _give_back(self._arrays)
        try:
            self._check()
            self.operator.run()
        finally:
            _give_back(arrays)
            for value, state in zip(values, after, strict=True):
                value.restore_small_state(state)

    def is_unchanged(self) -> bool:
        """Whether everything that determines what it does is as it was."""
        data, now = self.operator.data, digest(self.operator.name, self._numbers, self.operator.signature())
        return now == self.signature and (data is None or data.is_unchanged())

    def _check(self) -> None:
        if not self.is_unchanged():
            raise CheckpointError(
                f"operator {self.position}, {self.operator.name!r}, must run again, because the program reads results "
                "of which there is no snapshot, or a damaged one; but an argument, a global variable that it uses, or "
                "its data has changed since. Make new arrays instead of changing those that operators have used, take "
                "a snapshot after every operator, or read tables in strads.record"
            )


def _small_arrays(value: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays among arguments that can be changed, and are small enough to be copied each time."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable and value.nbytes <= _SMALL and not value.dtype.hasobject:
            yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _small_arrays(item)


def _give_back(arrays: list[tuple[NDArray[Any], NDArray[Any]]]) -> None:
    for array, content in arrays:
        if array.flags.writeable:
            np.copyto(array, content)
