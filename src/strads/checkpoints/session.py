"""A run of a program with checkpoints: fast re-execution after a restart, then snapshots (thesis §7.2.3).

Operators are numbered in the order in which the program runs them. A restarted program skips those that the newest
snapshot covers: what they returned comes from the journal, and what they changed stays as it is until the snapshot is
reached, or until the program looks at it. In the latter case it is brought up to date first, from an earlier snapshot
or by running the skipped operators after all; so plain Python code never sees an old state.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from strads.checkpoints.journal import Entry
from strads.checkpoints.lost_nodes import NodeRecovery, Nodes, is_on_nodes
from strads.checkpoints.manifests import Found, Manifest
from strads.checkpoints.operators import Operator, is_closed, is_memory_shared, is_result
from strads.checkpoints.ownership import Ownership
from strads.checkpoints.re_execution import LateOperator, ReExecution, digest_of
from strads.checkpoints.roots import Roots, version_of
from strads.checkpoints.same_program import check_operator, is_of_program, name_of, run_once_more
from strads.checkpoints.snapshots import SnapshotSave, SnapshotWriter
from strads.checkpoints.storage import Folder
from strads.checkpoints.trees import Tree
from strads.errors import ArgumentError, CheckpointError, NodeFailure

EXIT_STATUS = 143  # as shells report a program that SIGTERM has ended: 128 + 15
PATIENCE = 60.0  # seconds after which a storage that does not answer is given up


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
    nodes : Nodes, optional
        Replaced after one was lost; None if that is impossible.

    Attributes
    ----------
    position
        Number of operators that have finished or were skipped.
    target
        Number of operators that are skipped.
    wants_to_end
        Whether the program is to end with a last snapshot after the current operator, as SIGTERM asks for.
    closed
        Whether the session has ended, so that nothing is saved any more.
    counters : Counters
        What became of the snapshots.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        every: int = 1,
        keep: int = 2,
        nodes: Nodes | None = None,
    ):
        for name, value in (("checkpoint_every", every), ("checkpoint_keep", keep)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ArgumentError(f"{name}={value!r}: give a whole number, 1 or more")
        self.folder = Folder(url)
        self._every = int(every)
        owner = Ownership(self.folder)
        try:
            self._found = Found.search(self.folder)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint_dir={self.folder.url!r} cannot be read: {error}. Give access to it, or choose another one"
            ) from error
        newest = self._found.newest
        self.position = 0
        self.target = 0 if newest is None else newest.position
        self._journal = self._found.journal
        self._writer = SnapshotWriter(self._found, owner, int(keep))
        self.counters = self._writer.counters
        self._roots = Roots()
        self._past = ReExecution(self._found, self._roots, self.inside)
        self._recovery = None if nodes is None else NodeRecovery(nodes, self._roots, self._past, self.inside)
        self._touched: set[int] = set()  # roots that the program's own code has changed since the last operator
        self._written: set[int] = set()  # those that it has written since the last operator that uses them
        self._changed_at: dict[int, int] = {}  # position from which on a root's latest state is part of snapshots
        self._changed_by_operators: set[int] = set()
        self._inside = False
        self._thread = os.getpid(), threading.get_ident()
        self._snapshot_at = self.target
        self._is_broken = False
        self.wants_to_end = False
        self.closed = False

    @property
    def is_of_this_thread(self) -> bool:
        """Whether the calling thread is that of the program, which has made the session; only its operators count."""
        return self._thread == (os.getpid(), threading.get_ident())

    @property
    def is_of_this_process(self) -> bool:
        """Whether the calling process has made the session, and is not a child that was forked later."""
        return self._thread[0] == os.getpid()

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

    def perform(self, operator: Operator) -> Any:
        """Run an operator, or skip it if it has been run."""
        fresh = [root for root in operator.roots if self._roots.find(root) is None]
        numbers = [self._roots.number_of(root) for root in operator.roots]
        self._written.update(self._roots.number_of(root) for root in fresh)
        with self.inside():
            contents = {
                number: _content_of(root)
                for root, number in zip(operator.roots, numbers, strict=True)
                if number in self._written and hasattr(root, "fixed_content")
            }
        self._written.difference_update(numbers)
        late = LateOperator(self.position, operator, numbers)
        if self.is_skipping:
            return self._repeat(late, contents)
        for root, number in zip(operator.roots, numbers, strict=True):
            if number in self._past.lost:
                self._past.observe(root, number, self.position, writes=True)
        if self._is_broken:
            with self.inside():
                return operator.run()
        return self._run(late, contents)

    def _run(self, late: LateOperator, contents: dict[int, str | None]) -> Any:
        operator = late.operator
        touched = sorted(self._touched.union(self._note_changes()))
        self._touched.clear()
        self._check_order()
        if self._recovery is not None:
            is_saved = self._save_new(operator, touched)
            self._recovery.keep_writes(self.position, touched, is_saved=is_saved)
        entry = Entry(operator.name, late.signature, None, touched=touched, contents=contents)
        with self.inside():  # until it is in the journal, so that no signal comes in between
            try:
                result = self._run_on_nodes(late)
            except BaseException as error:
                if is_of_program(error):  # which may go on after it; executed again, it must meet the same error
                    self._append(replace(entry, changed=self._changed_by(operator), error=name_of(error)))
                else:
                    self._is_broken = True  # in the middle: what it has changed is no state to continue from
                raise
            can_be_restored = not operator.changes_arguments or late.is_unchanged()
            made = {self._roots.number_of(root): digest_of(root) for root in operator.roots if is_result(root)}
            entry = replace(
                entry,
                result=_packed(operator, result) if can_be_restored else None,
                values=[value.small_state() for value in operator.values],
                changed=self._changed_by(operator),
                made={number: found for number, found in made.items() if found is not None},
            )
            self._append(entry)
        if self._recovery is not None:
            self._recovery.ran(late)
        self._after()
        return result

    def _run_on_nodes(self, late: LateOperator) -> Any:
        """Run an operator; once more if a node is lost that can be replaced."""
        try:
            return late.operator.run()
        except NodeFailure as error:
            self._replace_nodes(error, running=1)
            late.reset()
            return late.operator.run()

    def _save_new(self, operator: Operator, touched: list[int]) -> bool:
        """Ensure that a snapshot has all that an operator uses, in case nodes are lost; returns whether it has."""
        fresh = {self._roots.number_of(root) for root in operator.roots} - self._changed_at.keys()
        fresh.update(number for number in touched if is_on_nodes(self._roots.get(number)))
        if fresh:
            self._changed_at.update(dict.fromkeys(fresh, self.position))
            if self._writer.wait(PATIENCE):
                self._snapshot(partial=frozenset(fresh))
                self._writer.wait(PATIENCE)
            else:
                self._writer.delay()
        latest = self._writer.latest
        return not fresh or (latest is not None and latest.position == self.position)

    def _replace_nodes(self, error: NodeFailure, *, running: int = 0) -> None:
        """Replace lost nodes, if that is possible; `running` operators are repeated by the caller."""
        if self._recovery is None or self.is_skipping:
            raise error
        if not self._writer.cancel(PATIENCE):
            raise error
        used = [
            (number, root) for number, root in self._roots.alive() if number in self._changed_at and not is_closed(root)
        ]
        self._recovery.replace(error, self._writer.latest, used, running)

    def _check_nodes(self) -> None:
        """Replace the nodes if one was lost since the last operator."""
        if self._recovery is None or self.is_skipping:
            return
        try:
            with self.inside():
                self._recovery.nodes.check_nodes()
        except NodeFailure as error:
            touched = self._note_changes()
            self._touched.update(touched)
            self._recovery.keep_writes(self.position, touched, is_saved=False)
            self._replace_nodes(error)
            self._roots.changes()

    def _check_order(self) -> None:
        if len(self._journal) != self.position:
            raise CheckpointError("an operator was started while another one was running")

    def _append(self, entry: Entry) -> None:
        self._journal.entries.append(entry)
        self._step_on(entry)

    def _changed_by(self, operator: Operator) -> list[int]:
        changed = set(self._note_changes())
        changed.update(self._roots.number_of(root) for root in operator.roots if version_of(root) is None)
        return sorted(changed)

    def _note_changes(self) -> list[int]:
        """Return the numbers of roots that have changed since the previous call."""
        changed = self._roots.changes()
        self._changed_at.update(dict.fromkeys(changed, self.position + 1))
        return changed

    def _repeat(self, late: LateOperator, contents: dict[int, str | None]) -> Any:
        entry, url = self._journal.entries[self.position], self.folder.url
        check_operator(late, contents, entry, url)
        if entry.result is None:
            self._past.catch_up(self.position)
            try:
                with self.inside():
                    return run_once_more(late, entry, url)
            finally:
                self._step_on(entry)
                self._past.ran(self.position)
                self._arrive()
        self._past.skip(late, entry)
        self._step_on(entry)
        if any(is_memory_shared(self._roots.get(number)) for number in entry.changed):
            self._past.catch_up(self.position)
        self._arrive()
        return late.operator.unpack(entry.result["result"])

    def _step_on(self, entry: Entry) -> None:
        self.position += 1
        self._changed_by_operators.update(entry.changed)
        self._changed_at.update(dict.fromkeys(entry.changed, self.position))

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
        if self._inside or self.closed or not self.is_of_this_process:
            return
        number = self._roots.find(root)
        if number is None:
            return
        if writes:
            self._written.add(number)
        if is_on_nodes(root):
            self._check_nodes()
        if self.is_skipping or number in self._past.lost:
            self._past.observe(root, number, self.position, writes=writes)
        elif number in self._changed_by_operators:
            self._writer.observed.add(self.position)

    def _after(self) -> None:
        """Take a snapshot if one is due; end the program if it was asked to."""
        if self.wants_to_end:
            self.finish()
            raise SystemExit(EXIT_STATUS)
        if self.position - self._snapshot_at >= self._every and not self._is_broken:
            if self._writer.is_busy:
                self._writer.delay()
            else:
                self._snapshot()

    def _snapshot(self, partial: frozenset[int] = frozenset(), *, is_last: bool = False) -> None:
        """Take a snapshot; of the roots in `partial` even if they have not changed.

        The last one may be taken long after the last operator, when the program has dropped what it looked at in
        between: what the latest snapshot has of that, it keeps.
        """
        if self._writer.is_stopped:
            return
        self._note_changes()
        self._snapshot_at = self.position
        if self._recovery is not None and self._writer.latest is not None:
            self._recovery.forget_before(self._writer.latest.position)

        def states(save: SnapshotSave, latest: Manifest | None) -> dict[int, Tree]:
            unchanged = {}
            if latest is not None:
                kept = latest.states.keys() & self._changed_at.keys() - partial
                unchanged = {n: latest.states[n] for n in sorted(kept) if self._changed_at[n] <= latest.position}
            found = dict(unchanged) if is_last else {}
            for number, root in self._roots.alive():
                if number in self._changed_at and not is_closed(root):
                    found[number] = unchanged[number] if number in unchanged else save.apart(root)
            return found

        try:
            with self.inside():
                self._writer.submit(self.position, states)
        except NodeFailure as error:
            if self._recovery is None:
                raise
            self._writer.fail(str(error))  # the next operator meets it again, and replaces the node
        except CheckpointError as error:
            if not self.counters.written and not self.counters.failed:
                raise  # at the first snapshot, before much can be lost
            self._writer.fail(str(error))

    def suspend(self) -> None:
        """Write the current state, and nothing that follows: an interrupted program is continued from here.

        One that had not reached the newest snapshot yet is continued from that one.
        """
        if self.is_skipping:
            self._past.catch_up(self.position)
            self.target = self.position
        elif not self._is_broken:
            self.finish()
        self._is_broken = True

    def finish(self, seconds: float | None = None) -> bool:
        """Write a last snapshot of the current state, unless there is one; returns whether it is complete.

        Parameters
        ----------
        seconds
            After which it is given up if the storage does not answer; by default a minute.
        """
        end = time.monotonic() + (PATIENCE if seconds is None else seconds)
        is_done = self._writer.wait(end - time.monotonic())
        written = self.counters.written
        is_due = self.position > self._snapshot_at and is_done and self._is_whole()
        if is_due:
            self._snapshot(is_last=True)
            is_done = self._writer.wait(max(0.0, end - time.monotonic()))
        if not is_done:
            self._writer.delay()
        return is_done and (not is_due or self.counters.written > written)

    def _is_whole(self) -> bool:
        """Whether a snapshot of this moment would be the state after the last operator, and complete."""
        if self.is_skipping or self._inside or self._is_broken:
            return False
        self._touched.update(self._note_changes())
        latest = self._writer.latest
        changed = {number for number, place in self._changed_at.items() if latest is None or place > latest.position}
        alive = {number: root for number, root in self._roots.alive() if not is_closed(root)}
        return changed <= alive.keys() and not self._touched and not any(is_memory_shared(alive[n]) for n in changed)

    def close(self, seconds: float | None = None) -> None:
        """Write a last snapshot and end; a storage that does not answer for `seconds`, a minute, is given up."""
        if not self.is_of_this_process:
            self.closed = True
        if not self.closed:
            self.finish(seconds)
            self.closed = True
            self._writer.close(0.0)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Context in which operators are parts of another one, and do not count."""
        was_inside, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = was_inside


def _content_of(root: Any) -> str | None:
    """Return the checksum of a new root; None if a node was lost, which the operator will meet again."""
    try:
        found: str | None = root.fixed_content()
    except NodeFailure:
        return None
    return found


def _packed(operator: Operator, result: Any) -> dict[str, Any] | None:
    """Return the tree of an operator's result; None if it cannot be restored."""
    try:
        tree = operator.pack(result)
        operator.unpack(tree)
    except CheckpointError:
        return None
    return {"result": tree}
