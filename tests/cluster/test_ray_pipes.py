"""Pipes between nodes of one machine: frames, order, large and many messages, processes that end, bad bytes."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.cluster.inbox import Inbox
from strads.cluster.messages import decode, encode
from strads.cluster.ray_frames import advance, decode_frames, encode_frame
from strads.cluster.ray_pipes import Pipes

RUN = 3


class End:
    """A node with pipes, but no actor around it."""

    def __init__(self, rank: int):
        self.rank = rank
        self.inbox = Inbox()
        self.inbox.start(RUN)
        self.lost: list[tuple[int, str]] = []
        self.pipes = Pipes(rank, self.inbox, lambda to, reason: self.lost.append((to, reason)))

    def recv(self, source: int, tag: int = 0) -> object:
        return decode(wait_for(lambda: self.inbox.take(source, tag)))


def wait_for(ready: Callable[[], object], seconds: float = 20) -> object:
    limit = time.monotonic() + seconds
    while not (result := ready()):
        assert time.monotonic() < limit
        time.sleep(0.001)
    return result


def connected(count: int) -> list[End]:
    ends = [End(rank) for rank in range(count)]
    offers = [end.pipes.offer([rank for rank in range(count) if rank != end.rank]) for end in ends]
    for end in ends:
        others = [rank for rank in range(count) if rank != end.rank]
        assert end.pipes.join({rank: offers[rank] for rank in others}) == others
    for end in ends:
        end.pipes.settle([rank for rank in range(count) if rank != end.rank])
    return ends


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def raw() -> Iterator[tuple[End, int]]:
    """A node that reads what is written into a descriptor, as node 1."""
    end = End(0)
    fd = os.open(Path(end.pipes.offer([1]), "1-to-0"), os.O_WRONLY)
    end.pipes.settle([1])
    yield end, fd
    with suppress(OSError):
        os.close(fd)


def as_written(value: object, run: int = RUN, tag: int = 0) -> bytes:
    message = encode(value)
    return b"".join(piece.tobytes() for piece in encode_frame(run, tag, message.header, message.buffers))


# -- frames ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.none() | st.binary(), st.lists(st.binary(), max_size=4)), max_size=6),
    st.lists(st.integers(1, 50), min_size=1),
)
def test_frames_come_out_as_they_went_in_however_they_are_cut(messages, cuts):
    messages = [
        (tag, header, buffers if header is not None else [b"".join(buffers)]) for tag, header, buffers in messages
    ]
    stream = b""
    for tag, header, buffers in messages:
        pieces = encode_frame(RUN, tag, header, [np.frombuffer(buffer, np.uint8) for buffer in buffers])
        stream += b"".join(piece.tobytes() for piece in pieces)
    found = []
    frames = decode_frames(
        lambda run, tag, header, buffers: found.append((run, tag, header, [b.tobytes() for b in buffers]))
    )
    wanted = deque(next(frames))
    at = turn = 0
    while at < len(stream):
        cut = min(cuts[turn % len(cuts)], len(wanted[0]), len(stream) - at)
        wanted[0][:cut] = np.frombuffer(stream, np.uint8, cut, at)
        advance(wanted, cut)
        at, turn = at + cut, turn + 1
        while not wanted:
            wanted.extend(next(frames))
    assert found == [(RUN, *message) for message in messages]


# -- messages ----------------------------------------------------------------------------------------------


def test_many_messages_keep_their_order_among_three_nodes():
    ends = connected(3)

    def send(end: End) -> None:
        for number in range(2000):
            for to in range(3):
                if to != end.rank:
                    end.pipes.send(to, RUN, number % 3, encode((number, np.full(number % 50, end.rank))))

    threads = [threading.Thread(target=send, args=[end]) for end in ends]
    for thread in threads:
        thread.start()
    for end in ends:
        for source in {0, 1, 2} - {end.rank}:
            for number in range(2000):
                got, array = end.recv(source, number % 3)
                array += 1  # what was received can be changed
                assert got == number
                assert array.tolist() == [source + 1] * (number % 50)
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("nbytes", [65_536, 1_048_576, 50_000_001])
def test_large_messages_in_both_directions_wait_for_nobody(nbytes):
    ends = connected(2)
    sent = [np.random.default_rng(rank).integers(0, 256, nbytes, np.uint8) for rank in range(2)]
    for end in ends:  # neither pipe has room for it all, and nobody else reads meanwhile
        memory = sent[end.rank].copy()
        end.pipes.send(1 - end.rank, RUN, 0, encode(memory))
        memory[:] = 0
        end.pipes.send(1 - end.rank, RUN, 0, encode("after it"))
        end.pipes.put(1 - end.rank, RUN, 7, sent[end.rank])
    for end in ends:
        assert np.array_equal(end.recv(1 - end.rank), sent[1 - end.rank])
        assert end.recv(1 - end.rank) == "after it"
        out = np.empty(nbytes, np.uint8)
        arrival = end.inbox.expect(1 - end.rank, 7, out)
        wait_for(lambda arrival=arrival: arrival.done)
        assert np.array_equal(out, sent[1 - end.rank])


def test_a_message_of_thousands_of_arrays_some_of_them_empty():
    one, other = connected(2)
    arrays = [np.arange(number % 4) for number in range(5000)]
    one.pipes.send(1, RUN, 0, encode(arrays))
    for got, expected in zip(other.recv(0), arrays, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_puts_land_in_their_order_whether_expected_or_early():
    one, other = connected(2)
    out = np.zeros((4, 3))
    calls: list[int] = []
    arrivals = [
        other.inbox.expect(0, 5, out[row].view(np.uint8), lambda row=row: calls.append(row)) for row in range(2)
    ]
    for row in range(4):
        one.pipes.put(1, RUN, 5, np.full(3, float(row)).view(np.uint8))
    one.pipes.put(1, RUN, 6, np.empty(0, np.uint8))
    last = other.inbox.expect(0, 6, np.empty(0, np.uint8))
    wait_for(lambda: last.done)
    arrivals += [other.inbox.expect(0, 5, out[row].view(np.uint8)) for row in range(2, 4)]
    assert all(arrival.done for arrival in arrivals)
    assert calls == [0, 1]
    assert out[:, 0].tolist() == [0, 1, 2, 3]


def test_a_put_of_another_size_fails_the_run_and_nothing_else():
    one, other = connected(2)
    other.inbox.expect(0, 5, np.empty(8, np.uint8))
    one.pipes.put(1, RUN, 5, np.zeros(9, np.uint8))
    wait_for(lambda: isinstance(other.inbox.failure, ValueError))
    one.pipes.send(1, RUN, 0, encode("still there"))
    assert other.recv(0) == "still there"
    assert other.lost == []


# -- opening -----------------------------------------------------------------------------------------------


def test_names_are_private_and_last_only_until_the_pipes_are_open(temporary):
    end = End(0)
    directory = Path(end.pipes.offer([1, 2]))
    assert directory.parent == temporary
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in directory.iterdir())
    end.pipes.settle([])
    assert list(temporary.iterdir()) == []


def test_who_cannot_open_a_pipe_does_not_join(temporary):
    (temporary / "file").mkdir()
    (temporary / "file" / "0-to-1").touch()
    (temporary / "unread").mkdir()
    os.mkfifo(temporary / "unread" / "0-to-2")
    (temporary / "link").mkdir()
    offered = End(3).pipes.offer([0])
    (temporary / "link" / "0-to-4").symlink_to(Path(offered, "0-to-3"))
    offers = {1: str(temporary / "file"), 2: str(temporary / "unread"), 4: str(temporary / "link"), 5: "/nowhere"}
    end = End(0)
    assert end.pipes.join(offers) == []
    assert end.pipes.join({3: offered}) == [3]
    assert 3 in end.pipes
    assert 1 not in end.pipes


def test_pipes_of_another_user_are_not_opened(monkeypatch):
    offered = End(1).pipes.offer([0])
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    assert End(0).pipes.join({1: offered}) == []


def test_where_no_pipe_can_be_made_none_is_offered(monkeypatch, temporary):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.mkfifo", refuse)
    assert End(0).pipes.offer([1]) is None
    assert list(temporary.iterdir()) == []


# -- ends and bad bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 5, 30, 40, 2000])
def test_a_peer_that_ends_in_the_middle_of_a_message_is_reported(raw, count):
    end, fd = raw
    whole = as_written(np.arange(1000.0))
    os.write(fd, whole + whole[:count])
    os.close(fd)  # as if the process were gone
    wait_for(lambda: end.lost)
    assert end.lost == [(1, "its end of a pipe is closed")]
    assert end.recv(1)[999] == 999
    assert end.inbox.take(1, 0) is None


def frame(put: int, run: int, tag: int, *sizes: int) -> bytes:
    head = bytes([put]) + len(sizes).to_bytes(4, "little")
    numbers = [number.to_bytes(8, "little", signed=number < 0) for number in (run, tag, *sizes)]
    return head + b"".join(numbers)


@pytest.mark.parametrize(
    "written",
    [frame(0, -1, 0, 1), frame(0, RUN, -1, 1), frame(0, RUN, 0), frame(1, RUN, 0, 1, 1), frame(1, RUN, 0, 2**63),
     frame(0, RUN, 0, 1, 2**40 + 1), b"\xff" * 21, b"\0" * 21],
)  # fmt: skip
def test_what_is_no_frame_is_refused_and_the_pipe_closed(raw, written):
    end, fd = raw
    os.write(fd, as_written("before") + written)
    assert end.recv(1) == "before"
    wait_for(lambda: end.lost)
    assert [rank for rank, _ in end.lost] == [1]
    with pytest.raises(BrokenPipeError):
        os.write(fd, as_written("after"))


def test_messages_of_an_ended_program_are_dropped(raw):
    end, fd = raw
    os.write(fd, as_written("old", RUN - 1) + as_written("next", RUN + 1) + as_written("now"))
    assert end.recv(1) == "now"
    assert end.inbox.take(1, 0) is None
    end.inbox.start(RUN + 1)
    assert end.recv(1) == "next"


@pytest.mark.parametrize("nbytes", [10, 30_000_000])
def test_to_send_to_a_killed_process_reports_it_every_time(nbytes):
    script = "import os, sys, time; os.open(sys.argv[1], os.O_RDONLY); print(flush=True); time.sleep(60)"
    end, peer = End(0), End(1)
    offer = peer.pipes.offer([0])
    process = subprocess.Popen([sys.executable, "-c", script, f"{offer}/0-to-1"], stdout=subprocess.PIPE)
    assert end.pipes.join({1: offer}) == [1]
    end.pipes.settle([])
    process.stdout.readline()
    peer.pipes.settle([])  # the only reader is the process now, which never reads
    end.pipes.send(1, RUN, 0, encode(np.zeros(nbytes, np.uint8)))
    assert end.lost == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    if nbytes > 1 << 20:  # some was waiting
        wait_for(lambda: end.lost)
    for _ in range(2):
        before = len(end.lost)
        end.pipes.put(1, RUN, 0, np.zeros(10, np.uint8))
        wait_for(lambda before=before: len(end.lost) > before)
    assert {rank for rank, _ in end.lost} == {1}


def test_who_waits_costs_no_processor_time():
    connected(2)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1
