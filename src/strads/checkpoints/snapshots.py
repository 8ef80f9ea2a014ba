"""Takes snapshots: they are staged between operators, and written in the background by one thread."""

import secrets
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from strads.checkpoints.manifests import Found, Manifest, arrays_in, name_of, remove_old, renamed
from strads.checkpoints.on_nodes import SaveTicket, collect
from strads.checkpoints.ownership import OtherProgramError, Ownership
from strads.checkpoints.staging import Buffers, Previous, Stage
from strads.checkpoints.trees import Save, Tree

_LATE = 600.0  # seconds after which a node's part is given up
_WARN_EVERY = 60.0  # seconds between two warnings


class SnapshotSave(Save):
    """Turns the state of a program to trees, of which the arrays are staged here or on nodes."""

    def __init__(self, stage: Stage, ticket: Callable[[int], SaveTicket]):
        super().__init__(stage.keep)
        self.ticket = ticket  # returns what a node program needs to write the data on so many nodes


@dataclass
class _Job:
    position: int
    stage: Stage
    states: dict[int, Tree]
    tickets: list[tuple[SaveTicket, int]]
    is_wanted: bool = True
    begin: float = field(default_factory=time.monotonic)
    waited: float = 0.0  # seconds


@dataclass
class Counters:
    """What became of the snapshots.

    Attributes
    ----------
    written
        Snapshots that are complete.
    delayed
        Snapshots left out because the one before was still being written.
    failed
        Snapshots that could not be written.
    bytes
        Bytes of arrays written, on all nodes.
    last_error
        The latest error, or None.
    """

    written: int = 0
    delayed: int = 0
    failed: int = 0
    bytes: int = 0
    last_error: str | None = None


class SnapshotWriter:
    """Writes the snapshots of a run, of which the `keep` latest stay, unless another program writes to the folder."""

    def __init__(self, found: Found, owner: Ownership, keep: int):
        self.counters = Counters()
        self.observed: set[int] = set()  # positions whose snapshots stay because the program has read tables there
        self.is_stopped = False  # whether the folder is another program's now
        self._owner = owner
        self._found, self._folder, self._journal, self._keep = found, found.folder, found.journal, keep
        self._kept = [each for position in sorted(found.names) if (each := found.at(position)) is not None]
        self.observed.update(self._kept[-1].observed if self._kept else ())
        self._has_cleaned = False
        self._buffers = Buffers()
        self._is_closed = False
        self._changed = threading.Condition()
        self._job: _Job | None = None
        self._thread: threading.Thread | None = None
        self._warned = -_WARN_EVERY

    @property
    def latest(self) -> Manifest | None:
        """The latest complete snapshot of which nothing is known to be damaged."""
        whole = self._found.whole(self._kept)
        return whole[-1] if whole else None

    @property
    def is_busy(self) -> bool:
        """Whether a snapshot is being written."""
        with self._changed:
            return self._job is not None

    def submit(self, position: int, states: Callable[[SnapshotSave, Manifest | None], dict[int, Tree]]) -> None:
        """Stage a snapshot after `position` operators, and let it be written. The writer must not be busy.

        `states` returns the tree of each thing; called once, with what turns state to trees, and the latest snapshot.
        """
        prefix = f"arrays/{position:010d}-{secrets.token_hex(4)}"
        stage = Stage(prefix, self._buffers)
        latest = self.latest
        previous = self._previous()
        tickets: list[tuple[SaveTicket, int]] = []

        def ticket(nodes: int) -> SaveTicket:
            made = SaveTicket(self._folder.url, prefix, len(tickets), previous)
            tickets.append((made, nodes))
            return made

        job = _Job(position, stage, states(SnapshotSave(stage, ticket), latest), tickets)
        stage.copy()
        with self._changed:
            self._job = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="strads-checkpoint", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def delay(self) -> None:
        """Count a snapshot skipped because the previous one is still being written; warn if that takes minutes."""
        self.counters.delayed += 1
        with self._changed:
            seconds = 0.0 if self._job is None else time.monotonic() - self._job.begin
        if seconds >= _WARN_EVERY:
            self._warn(f"a snapshot has been in progress for {seconds:.0f} s (writing to {self._folder.url})")

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is being written; returns whether that is so.

        All calls together wait for the same snapshot for `seconds`.
        """
        with self._changed:
            job, begin = self._job, time.monotonic()
            if job is None:
                return True
            try:
                return self._changed.wait_for(lambda: self._job is None, max(0.0, seconds - job.waited))
            finally:
                job.waited += time.monotonic() - begin

    def cancel(self, seconds: float) -> bool:
        """Give up the snapshot that is being written, and wait until it is; returns whether it is."""
        with self._changed:
            if self._job is not None:
                self._job.is_wanted, self._job.waited = False, 0.0
        return self.wait(seconds)

    def close(self, seconds: float) -> None:
        """Wait for the snapshot that is being written; after `seconds` it is given up."""
        is_done = self.wait(seconds)
        with self._changed:
            if self._job is not None:
                self._job.is_wanted = False
            self._is_closed = True
            self._changed.notify_all()
        if is_done and self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._job is not None or self._is_closed)
                job = self._job
            if job is None:
                return
            try:
                self._write(job)
            except OtherProgramError:
                self._stop()
            except BaseException as error:
                self.fail(f"{type(error).__name__}: {error}")
            finally:
                job.stage.release()
                with self._changed:
                    self._job = None
                    self._changed.notify_all()

    def _previous(self) -> Previous:
        return {} if self.latest is None else {checksum: name for name, checksum in self.latest.checksums.items()}

    def _write(self, job: _Job) -> None:
        self._owner.check()
        latest = self.latest
        files = job.stage.write(self._folder, self._previous(), lambda: job.is_wanted)
        self.counters.bytes += job.stage.bytes
        for ticket, nodes in job.tickets:
            of_nodes, count = collect(self._folder, ticket, nodes, lambda: job.is_wanted, _LATE)
            files |= of_nodes
            self.counters.bytes += count
        if not job.is_wanted:
            raise TimeoutError("it was given up before it was complete")
        old = {} if latest is None else latest.checksums
        states = {
            number: renamed(tree, lambda name: files[name][0] if name in files else name)
            for number, tree in job.states.items()
        }
        checksums = {name: old[name] for tree in states.values() for name in arrays_in(tree) if name in old}
        checksums |= dict(files.values())
        token = secrets.token_hex(4)
        segments, tail = self._journal.write(self._folder, job.position, token)
        observed = sorted(position for position in self.observed.copy() if position < job.position)
        name = name_of(job.position, token)
        manifest = Manifest(job.position, states, checksums, segments, tail, observed, name)
        self._owner.check()
        manifest.write(self._folder)
        self.counters.written += 1
        self._retain(manifest)

    def _retain(self, manifest: Manifest) -> None:
        """Remove snapshots that are no longer needed."""
        earlier = [each for each in self._kept if each.position < manifest.position]
        everything = [*self._found.whole(earlier), manifest]
        recent = {each.position for each in everything[-self._keep :]}
        self._kept = [each for each in everything if each.position in recent | self.observed]
        if not self._has_cleaned or len(self._kept) <= len(earlier):
            remove_old(self._folder, self._kept, unfinished=not self._has_cleaned, check=self._owner.check)
            self._has_cleaned = True

    def _stop(self) -> None:
        """Leave the folder to the other program."""
        self.is_stopped = True
        self.counters.failed += 1
        self.counters.last_error = "another program writes to the folder"
        warnings.warn(
            f"another program has begun to write its checkpoints to {self._folder.url}: this one continues, but is NOT "
            "SAVED any more. End one of them, and give each program its own folder",
            RuntimeWarning,
            stacklevel=2,
        )

    def fail(self, reason: str) -> None:
        """Count a snapshot that could not be made, and warn from time to time."""
        self.counters.failed += 1
        self.counters.last_error = reason
        self._warn(f"a snapshot could not be written to {self._folder.url} ({reason})")

    def _warn(self, what: str) -> None:
        now = time.monotonic()
        if now - self._warned >= _WARN_EVERY:
            self._warned = now
            count = self.counters
            warnings.warn(
                f"{what}; the program continues without it ({count.failed + count.delayed} missed so far)",
                RuntimeWarning,
                stacklevel=3,
            )
