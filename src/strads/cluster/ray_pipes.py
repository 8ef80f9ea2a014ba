"""How a node's messages travel on Ray to a node of the same machine: through named pipes, one for each direction.

A call of an actor costs both sides milliseconds of processor time, whatever it carries; a write to a pipe costs
microseconds. Names last only until all pipes are open, so that nothing stays behind, whatever happens later.
"""

import fcntl
import os
import secrets
import selectors
import shutil
import stat
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from strads.cluster.inbox import Inbox
from strads.cluster.messages import Bytes, Message
from strads.cluster.ray_frames import Deliver, advance, decode_frames, encode_frame

_CAPACITY = 1 << 20  # bytes that a pipe shall hold: most blocks leave in one write
_VECTOR = 1024  # pieces of memory in one system call
_TURN = 64  # reads from one pipe before the others get their turn


class _Incoming:
    """The end of a pipe that this node reads."""

    def __init__(self, source: int, fd: int, deliver: Deliver):
        self.source = source
        self.fd = fd
        self._frames = decode_frames(deliver)
        self._wanted: deque[Bytes] = deque(next(self._frames))

    def read(self) -> None:
        """Take what is there."""
        with suppress(BlockingIOError):
            for _ in range(_TURN):
                count = os.readv(self.fd, _some(self._wanted))
                if count == 0:
                    raise EOFError("its end of a pipe is closed")
                advance(self._wanted, count)
                while not self._wanted:
                    self._wanted.extend(next(self._frames))


class _Outgoing:
    """The end of a pipe that this node writes; any thread may, and none waits."""

    def __init__(self, to: int, fd: int):
        self.to = to
        self.fd = fd
        self._queue: deque[Bytes] = deque()  # what the pipe had no room for
        self._writing = threading.Lock()

    def send(self, pieces: Iterable[Bytes], *, frozen: bool) -> bool:
        """Write what there is room for; return whether the rest waits, of which a copy is kept unless it is frozen."""
        with self._writing:
            if self._queue:
                self._queue.extend(pieces if frozen else (piece.copy() for piece in pieces))
            else:
                self._queue.extend(pieces)
                self._write()
                if not frozen:
                    self._queue = deque(piece.copy() for piece in self._queue)
            return bool(self._queue)

    def flush(self) -> bool:
        """Write on; return whether there is still a rest."""
        with self._writing:
            self._write()
            return bool(self._queue)

    def _write(self) -> None:
        try:
            while self._queue:
                advance(self._queue, os.writev(self.fd, _some(self._queue)))
        except BlockingIOError:
            pass
        except OSError:
            self._queue.clear()
            raise


class Pipes:
    """The pipes of one node, and the thread that reads them.

    Who shares a machine is found out by trying: a pipe can only be opened for writing where its reader's kernel and
    directory are. All nodes `offer`, then all `join`, then all `settle`; who could not join sends in another way.

    Parameters
    ----------
    rank
        Of this node.
    inbox
        Gets what arrives.
    lost
        Called with a rank and a reason when the process at the other end of a pipe is gone.
    """

    def __init__(self, rank: int, inbox: Inbox, lost: Callable[[int, str], None]):
        self._rank = rank
        self._inbox = inbox
        self._lost = lost
        self._directory: str | None = None
        self._incoming: dict[int, int] = {}  # what has been offered: rank → descriptor
        self._outgoing: dict[int, _Outgoing] = {}
        self._selector = selectors.DefaultSelector()
        self._bell, self._ringer = os.pipe()
        for fd in (self._bell, self._ringer):
            os.set_blocking(fd, False)

    def __contains__(self, to: int) -> bool:
        return to in self._outgoing

    # -- start and end -------------------------------------------------------------------------------------

    def offer(self, sources: Iterable[int]) -> str | None:
        """Make pipes for other nodes to write to; return their private directory, None if there can be none."""
        try:
            self._directory = tempfile.mkdtemp(prefix=f"strads-{secrets.token_hex(16)}-")  # only we may enter
            for source in sources:
                path = _path(self._directory, source, self._rank)
                os.mkfifo(path, 0o600)
                self._incoming[source] = _open_own(path, os.O_RDONLY)
        except OSError:
            self.settle([])
        return self._directory

    def join(self, offers: Mapping[int, str]) -> list[int]:
        """Open the pipes that others have made for this node; return the ranks where that was possible."""
        for to, directory in offers.items():
            with suppress(OSError):  # another machine or container, or no pipes there
                self._outgoing[to] = _Outgoing(to, _open_own(_path(directory, self._rank, to), os.O_WRONLY))
        return list(self._outgoing)

    def settle(self, sources: Sequence[int]) -> None:
        """Read from those who have joined; the names are no longer needed."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
        for source, fd in self._incoming.items():
            if source in sources:
                pipe = _Incoming(source, fd, self._delivering(source))
                self._selector.register(fd, selectors.EVENT_READ, pipe)
            else:
                os.close(fd)
        self._incoming.clear()
        if sources or self._outgoing:
            self._selector.register(self._bell, selectors.EVENT_READ)
            threading.Thread(target=self._serve, name="strads-pipes", daemon=True).start()

    # -- messages ------------------------------------------------------------------------------------------

    def send(self, to: int, run: int, tag: int, message: Message) -> None:
        """Send a message; its memory may change afterwards."""
        self._send(to, encode_frame(run, tag, message.header, message.buffers), frozen=False)

    def put(self, to: int, run: int, tag: int, data: Bytes) -> None:
        """Send memory that does not change until it has arrived."""
        self._send(to, encode_frame(run, tag, None, [data]), frozen=True)

    def _send(self, to: int, pieces: list[Bytes], *, frozen: bool) -> None:
        try:
            if self._outgoing[to].send(pieces, frozen=frozen):
                with suppress(BlockingIOError):  # it rings already
                    os.write(self._ringer, b"\0")
        except OSError as error:
            self._lost(to, str(error))

    def _delivering(self, source: int) -> Deliver:
        def deliver(run: int, tag: int, header: bytes | None, buffers: list[Bytes]) -> None:
            try:
                if header is None:
                    self._inbox.deliver_put(run, source, tag, buffers[0], owned=True)
                else:
                    self._inbox.deliver(run, source, tag, Message(header, tuple(buffers)))
            except Exception as error:  # of memory that does not fit, or of what is done on arrival
                self._inbox.fail(run, error)

        return deliver

    # -- the thread ----------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if isinstance(key.data, _Incoming):
                    self._read(key.data)
                elif isinstance(key.data, _Outgoing):
                    self._flush(key.data)
                else:
                    os.read(self._bell, 4096)
                    for pipe in self._outgoing.values():
                        self._flush(pipe)

    def _read(self, pipe: _Incoming) -> None:
        try:
            pipe.read()
        except Exception as error:  # also what is no frame: nothing after it makes sense
            self._selector.unregister(pipe.fd)
            os.close(pipe.fd)
            self._lost(pipe.source, str(error))

    def _flush(self, pipe: _Outgoing) -> None:
        """Write what waits, and look out for room as long as something does."""
        waits = False
        try:
            waits = pipe.flush()
        except OSError as error:
            self._lost(pipe.to, str(error))
        if waits != (pipe.fd in self._selector.get_map()):
            if waits:
                self._selector.register(pipe.fd, selectors.EVENT_WRITE, pipe)
            else:
                self._selector.unregister(pipe.fd)


def _some(pieces: deque[Bytes]) -> list[memoryview]:
    return [piece.data for piece in islice(pieces, _VECTOR)]


def _path(directory: str, source: int, to: int) -> str:
    return str(Path(directory, f"{source}-to-{to}"))


def _open_own(path: str, mode: int) -> int:
    """Open a pipe of this user; OSError where there is none, or (for writing) where nobody here reads it."""
    fd = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(fd)
    if not stat.S_ISFIFO(status.st_mode) or status.st_uid != os.geteuid():
        os.close(fd)
        raise PermissionError(f"{path} is no pipe of this user")
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # users may have only so much
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _CAPACITY)
    return fd
