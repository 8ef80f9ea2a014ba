"""A run of a program with checkpoints: fast re-execution after a restart, then snapshots (thesis §7.2.3).

Operators are numbered in the order in which the program runs them. A restarted program skips those that the newest
snapshot covers: what they returned comes from the journal, and what they changed stays as it is until the snapshot is
reached, or until the program looks at it. In the latter case it is brought up to date first, from an earlier snapshot
or by running the skipped operators after all; so plain Python code never sees an old state.
"""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from strads.checkpoints.digests import digest
from strads.checkpoints.journal import Entry
from strads.checkpoints.manifests import Found, Manifest
from strads.checkpoints.operators import Operator
from strads.checkpoints.re_execution import LateOperator, ReExecution
from strads.checkpoints.roots import Roots, version_of
from strads.checkpoints.snapshots import Counters, SnapshotSave, SnapshotWriter
from strads.checkpoints.storage import Folder
from strads.checkpoints.trees import Tree
from strads.errors import ArgumentError, CheckpointError, NodeFailure

_MANY_REPEATED = 3  # operators; repeating fewer is not worth a warning


class Session:
    """The checkpoints of a program in one folder.

    Parameters
    ----------
    url
        The folder: a path, or any URL of fsspec. The newest snapshot there, if any, is continued.
    every
        A snapshot is taken after this many operators.
    keep
        How many of the latest snapshots stay.
    replace_nodes
        Replaces the nodes after one was lost; None if that is impossible.

    Attributes
    ----------
    position
        Number of operators that have finished or were skipped.
    target
        Number of operators that are skipped.
    thread
        The thread whose operators count: that of the program, which has made the session.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        every: int = 1,
        keep: int = 2,
        replace_nodes: Callable[[], None] | None = None,
    ):
        for name, value in (("checkpoint_every", every), ("checkpoint_keep", keep)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ArgumentError(f"{name}={value!r}: give a whole number, 1 or more")
        self.folder = Folder(url)
        self._every = int(every)
        self._found = Found.search(self.folder)
        newest = self._found.newest
        self.position = 0
        self.target = 0 if newest is None else newest.position
        kept = [
            manifest for position in sorted(self._found.names) if (manifest := self._found.at(position)) is not None
        ]
        self._journal = self._found.journal
        self._writer = SnapshotWriter(self.folder, self._journal, int(keep), kept)
        self._roots = Roots()
        self._past = ReExecution(self._found, self._roots, self.inside)
        self._replace_nodes = replace_nodes
        self._recent: list[LateOperator] = []  # operators since the latest snapshot, if nodes can be replaced
        self._changed_at: dict[int, int] = {}  # position from which on a root's latest state is part of snapshots
        self._changed_by_operators: set[int] = set()
        self._inside = False
        self.thread = threading.get_ident()
        self._snapshot_at = self.target
        self._is_broken = False
        self.wants_to_end = False
        self.closed = False

    @property
    def counters(self) -> Counters:
        """What became of the snapshots."""
        return self._writer.counters

    @property
    def is_skipping(self) -> bool:
        """Whether the program is being executed again and has not reached the newest snapshot yet."""
        return self.position < self.target

    @property
    def is_inside(self) -> bool:
        """Whether an operator is running."""
        return self._inside

    def next_name(self) -> str | None:
        """Return the name of the operator that ran next in the earlier run; None if that is unknown."""
        return self._journal.entries[self.position].name if self.is_skipping else None

    # -- operators -----------------------------------------------------------------------------------------

    def perform(self, operator: Operator) -> Any:
        """Run an operator, or skip it if it has been run."""
        fresh = [root for root in operator.roots if self._roots.find(root) is None and hasattr(root, "fixed_content")]
        numbers = [self._roots.number_of(root) for root in operator.roots]
        contents = {self._roots.number_of(root): root.fixed_content() for root in fresh}
        signature = digest(operator.name, numbers, operator.signature())
        if self.is_skipping:
            return self._repeat(operator, signature, contents)
        for root, number in zip(operator.roots, numbers, strict=True):
            if number in self._past.lost:
                self._past.observe(root, number, self.position, writes=True)
        if self._is_broken:
            with self.inside():
                return operator.run()
        return self._run(operator, signature, contents)

    def _run(self, operator: Operator, signature: str, contents: dict[int, str | None]) -> Any:
        touched = self._note_changes()
        begin = self._journal_length()
        if self._replace_nodes is not None:
            self._save_new(operator)
        late = LateOperator.of(self.position, operator)
        try:
            with self.inside():
                try:
                    result = operator.run()
                except NodeFailure as error:
                    result = self._run_again(late, error)
        except Exception:
            # A program may go on after an error. Executed again, it must meet the same error.
            self._append(
                begin, Entry(operator.name, signature, None, [], self._changed_by(operator), touched, contents)
            )
            raise
        except BaseException:
            self._is_broken = True  # interrupted in the middle: what it has changed is no state to continue from
            raise
        packed = _packed(operator, result)
        values = [value.small_state() for value in operator.values]
        self._append(
            begin, Entry(operator.name, signature, packed, values, self._changed_by(operator), touched, contents)
        )
        if self._replace_nodes is not None:
            self._recent.append(late)
        self._after()
        return result

    # -- lost nodes ----------------------------------------------------------------------------------------

    def _save_new(self, operator: Operator) -> None:
        """Make sure that a snapshot has everything that an operator uses, so that it survives the nodes."""
        fresh = {self._roots.number_of(root) for root in operator.roots} - self._changed_at.keys()
        if fresh:
            self._changed_at.update(dict.fromkeys(fresh, self.position))
            self._writer.wait()
            self._snapshot(partial=frozenset(fresh))
            self._writer.wait()

    def _run_again(self, late: "LateOperator", error: NodeFailure) -> Any:
        """Run an operator again that has lost a node: with other nodes, on state from the latest snapshot."""
        if self._replace_nodes is None:
            raise error
        self._writer.cancel()
        latest = self._writer.latest
        roots = [(number, root) for number, root in self._roots.alive() if number in self._changed_at]
        if latest is None or any(number not in latest.states and not _is_closed(root) for number, root in roots):
            raise error
        again = [each for each in self._recent if each.position >= latest.position]
        if any(entry.touched for entry in self._journal.entries[latest.position + 1 :]):
            raise error  # what the driver wrote in between is lost
        warnings.warn(
            f"{error}. The nodes are replaced; {len(again) + 1} operators since the latest snapshot run again",
            RuntimeWarning,
            stacklevel=5,
        )
        self._replace_nodes()
        late.reset()
        self._past.restore(latest, [(number, root) for number, root in roots if not _is_closed(root)])
        for each in again:
            each.run()
        return late.operator.run()

    def _journal_length(self) -> int:
        if len(self._journal) != self.position:
            raise CheckpointError("an operator was started while another one was running")
        return self.position

    def _append(self, begin: int, entry: Entry) -> None:
        self._journal.entries.append(entry)
        self.position = begin + 1
        self._changed_by_operators.update(entry.changed)
        self._changed_at.update(dict.fromkeys(entry.changed, self.position))

    def _changed_by(self, operator: Operator) -> list[int]:
        changed = set(self._note_changes())
        changed.update(self._roots.number_of(root) for root in operator.roots if version_of(root) is None)
        return sorted(changed)

    def _note_changes(self) -> list[int]:
        """Return the numbers of roots that have changed since the previous call."""
        changed = self._roots.changes()
        self._changed_at.update(dict.fromkeys(changed, self.position + 1))
        return changed

    def _repeat(self, operator: Operator, signature: str, contents: dict[int, str | None]) -> Any:
        entry = self._journal.entries[self.position]
        self._check(operator, signature, contents, entry)
        if entry.result is None:
            self._past.catch_up(self.position)
            try:
                with self.inside():
                    return operator.run()
            finally:
                self._step_on(entry)
                self._past.ran(self.position)
                self._arrive()
        self._past.skip(self.position, operator, entry)
        self._step_on(entry)
        if any(_is_shared(self._roots.get(number)) for number in entry.changed):
            self._past.catch_up(self.position)
        self._arrive()
        return operator.unpack(entry.result["result"])

    def _step_on(self, entry: Entry) -> None:
        self.position += 1
        self._changed_by_operators.update(entry.changed)
        self._changed_at.update(dict.fromkeys(entry.changed, self.position))

    def _check(self, operator: Operator, signature: str, contents: dict[int, str | None], entry: Entry) -> None:
        same = all(
            content is None or entry.contents.get(number) in (None, content) for number, content in contents.items()
        )
        if entry.name == operator.name and entry.signature == signature and same:
            return
        if entry.name != operator.name:
            what = f"there it was {entry.name!r}"
        elif entry.signature != signature:
            what = "its arguments, its code or the version of Python differ"
        else:
            what = "the content of a table differs"
        raise CheckpointError(
            f"operator {self.position} of this program, {operator.name!r}, is not the one of the run that wrote the "
            f"checkpoint in {self.folder.url}: {what}. Run the same program with the same input, or choose another "
            "checkpoint_dir to start from the beginning"
        )

    def _arrive(self) -> None:
        """Restore the newest snapshot once all of its operators are skipped."""
        if not self.is_skipping:
            self._past.catch_up(self.position)
            self._after()

    def forget(self, root: Any) -> None:
        """Declare that nothing will read a root any more, also when the program is executed again."""
        number = self._roots.find(root)
        if number is not None and not self._inside:
            self._changed_at.pop(number, None)

    def observe(self, root: Any, *, writes: bool = False) -> None:
        """Declare that the program is about to read a root's state outside of operators, or to write it."""
        if self._inside or self.closed:
            return
        number = self._roots.find(root)
        if number is None:
            return
        if self.is_skipping or number in self._past.lost:
            self._past.observe(root, number, self.position, writes=writes)
        elif number in self._changed_by_operators:
            self._writer.observed.add(self.position)

    # -- snapshots -----------------------------------------------------------------------------------------

    def _after(self) -> None:
        """Take a snapshot if one is due; end the program if it was asked to."""
        if self.wants_to_end:
            self.finish()
            raise SystemExit(143)
        if self.position - self._snapshot_at >= self._every and not self._is_broken:
            if self._writer.is_busy:
                self._writer.counters.delayed += 1
            else:
                self._snapshot()

    def _snapshot(self, partial: frozenset[int] = frozenset(), *, is_last: bool = False) -> None:
        """Take a snapshot; of the roots in `partial` even if they have not changed.

        The last one may be taken long after the last operator, when the program has dropped what it looked at in
        between: what the latest snapshot has of that, it keeps.
        """
        self._note_changes()
        self._snapshot_at = self.position
        self._recent = [
            each
            for each in self._recent
            if self._writer.latest is None or each.position >= self._writer.latest.position
        ]

        def states(save: SnapshotSave, latest: Manifest | None) -> dict[int, Tree]:
            unchanged = {}
            if latest is not None:
                kept = latest.states.keys() & self._changed_at.keys() - partial
                unchanged = {n: latest.states[n] for n in sorted(kept) if self._changed_at[n] <= latest.position}
            found = dict(unchanged) if is_last else {}
            for number, root in self._roots.alive():
                if number in self._changed_at and not _is_closed(root):
                    found[number] = unchanged[number] if number in unchanged else save.apart(root)
            return found

        try:
            with self.inside():
                self._writer.submit(self.position, states)
        except NodeFailure as error:
            if self._replace_nodes is None:
                raise
            self._writer.fail(str(error))  # the next operator meets it again, and replaces the node
        except CheckpointError as error:
            if not self.counters.written and not self.counters.failed:
                raise  # at the first snapshot, before much can be lost
            self._writer.fail(str(error))

    def suspend(self) -> None:
        """Write the current state, and nothing that follows: an interrupted program is continued from here."""
        if not self._is_broken:
            self.finish()
            self._is_broken = True

    def finish(self, seconds: float | None = None) -> bool:
        """Write a last snapshot of the current state, unless there is one; returns whether it is complete."""
        self._writer.wait(seconds)
        written = self.counters.written
        if self.position > self._snapshot_at and self._is_whole():
            self._snapshot(is_last=True)
            self._writer.wait(seconds)
            return self.counters.written > written
        return not self._writer.is_busy

    def _is_whole(self) -> bool:
        """Whether a snapshot of this moment would have everything that changed since the latest one."""
        if self.is_skipping or self._inside or self._is_broken:
            return False
        latest = self._writer.latest
        changed = {number for number, place in self._changed_at.items() if latest is None or place > latest.position}
        return changed <= {number for number, root in self._roots.alive() if not _is_closed(root)}

    def close(self, seconds: float | None = 60.0) -> None:
        """Write a last snapshot and end; a storage that does not answer for `seconds` is given up."""
        if not self.closed:
            begin = time.monotonic()
            self.finish(seconds)
            self.closed = True
            rest = None if seconds is None else max(0.0, seconds - (time.monotonic() - begin))
            self._writer.close(rest)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Context in which operators are parts of another one, and do not count."""
        was_inside, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = was_inside


def _is_closed(root: Any) -> bool:
    return bool(getattr(root, "is_closed", False))


def _is_shared(root: Any) -> bool:
    return root is not None and hasattr(root, "is_shared") and bool(root.is_shared())


def _packed(operator: Operator, result: Any) -> dict[str, Any] | None:
    """Return the tree of an operator's result; None if it cannot be restored."""
    try:
        return {"result": operator.pack(result)}
    except CheckpointError:
        return None
