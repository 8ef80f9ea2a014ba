"""Fast re-execution: a program with restarts sees what it sees without."""

import errno
import gc
import os
import random
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from checkpoints.faulty_storage import FaultyFileSystem, HangingFileSystem
from checkpoints.programs import Stopped, random_program, run
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st

import strads
from strads.checkpoints import Operator, Session, current_session, perform, snapshots
from strads.checkpoints import session as sessions
from strads.checkpoints.journal import Entry, Journal, Segment
from strads.checkpoints.storage import DamagedFileError, Folder
from strads.errors import ArgumentError, CheckpointError, NodeFailure


def run_with_stops(program, url, stops, rng, **options):
    """Run a program again and again, each time up to a stop; then to the end."""
    for stop in [*stops, None]:
        session = Session(url, **options)
        try:
            return run(program, session, stop)
        except Stopped:
            session._writer.wait(rng.choice([0.0, 0.001, 5.0]))  # snapshots may be finished or not
            session._writer.wait(5.0)  # one process: the next session must not meet a living writer
        finally:
            session._writer.close(5.0)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), every=st.integers(1, 4), keep=st.integers(1, 3), stops=st.integers(0, 4))
def test_restarts_change_nothing(tmp_path_factory, seed, every, keep, stops):
    rng = random.Random(seed)
    program = random_program(seed)
    places = sorted(rng.randrange(len(program)) for _ in range(stops))
    folder = tmp_path_factory.mktemp("checkpoint")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run_with_stops(program, folder, places, rng, every=every, keep=keep)
    assert found == run(program, None)


def run_on_faulty_storage(seed, folder):
    rng = random.Random(seed)
    program = random_program(seed, length=12)
    FaultyFileSystem.begin(seed, share=rng.choice([0.05, 0.2, 0.5]))
    stops = sorted(rng.randrange(len(program)) for _ in range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run_with_stops(program, f"faulty://{folder}", stops, rng, every=1, keep=2)
    assert found == run(program, None), f"seed {seed}"


@pytest.mark.parametrize("seed", range(25))
def test_faults_of_the_storage_lose_nothing(tmp_path, seed):
    run_on_faulty_storage(seed, tmp_path)


@pytest.mark.slow
def test_faults_of_the_storage_with_many_seeds(tmp_path):
    for seed in range(1000, 2000):
        run_on_faulty_storage(seed, tmp_path / str(seed))


class Number:
    def __init__(self, value=0):
        self.array = np.full(1000, value)

    def checkpoint_state(self, save):
        return save(self.array)

    def restore_state(self, tree, load):
        self.array = load(tree, self.array)


def add(session, number, amount, calls):
    def run():
        calls.append(amount)
        number.array += amount
        return int(number.array[0])

    return session.perform(Operator("add", run, lambda: amount, [number]))


def test_finished_operators_are_skipped(tmp_path):
    for planned, expected in ((3, [1, 2, 3]), (5, [4, 5])):
        session, number, calls = Session(tmp_path), Number(), []
        results = [add(session, number, amount, calls) for amount in range(1, planned + 1)]
        session.close()
        assert calls == expected
        assert results == list(np.cumsum(range(1, planned + 1)))
        assert number.array[0] == sum(range(1, planned + 1))


def test_a_changed_program_is_refused(tmp_path):
    session, number = Session(tmp_path), Number()
    add(session, number, 1, [])
    session.close()
    session = Session(tmp_path)
    with pytest.raises(CheckpointError, match=r"operator 0 .* is not the one .* another checkpoint_dir"):
        add(session, Number(), 2, [])
    with pytest.raises(CheckpointError, match="there it was 'add'"):
        session.perform(Operator("subtract", lambda: None, lambda: 1, []))


def test_reading_between_snapshots_repeats_what_is_missing(tmp_path):
    session, number = Session(tmp_path, every=10), Number()
    for amount in range(10):
        add(session, number, amount, [])
    session.close()
    session, number, calls = Session(tmp_path), Number(), []
    for amount in range(10):
        add(session, number, amount, calls)
        if amount == 4:
            with pytest.warns(RuntimeWarning, match=r"5 operators .* strads.record"):
                session.observe(number)
            assert number.array[0] == 10
    assert calls == [0, 1, 2, 3, 4]  # the rest comes from the snapshot
    assert number.array[0] == 45


def test_snapshots_that_the_program_has_read_stay(tmp_path):
    for _ in range(2):
        session, number, calls = Session(tmp_path), Number(), []
        for amount in range(8):
            add(session, number, amount, calls)
            session._writer.wait(5.0)
            session.observe(number)
            assert number.array[0] == sum(range(amount + 1))
        session.close()
    assert calls == []
    assert len(list((tmp_path / "snapshots").iterdir())) == 8


def test_old_snapshots_go(tmp_path):
    session, number = Session(tmp_path, keep=2), Number()
    for amount in range(8):
        add(session, number, amount, [])
        session._writer.wait(5.0)
    session.close()
    assert len(list((tmp_path / "snapshots").iterdir())) == 2
    assert len(list((tmp_path / "arrays").iterdir())) == 2


def test_foreign_files_stay(tmp_path):
    for folder in ("arrays", "journal", "snapshots", "unfinished", "parts"):
        (tmp_path / folder / "folder").mkdir(parents=True)
        for name in ("mine.npy", "mine.json", "1.json", "0000000001-mine.npy"):
            (tmp_path / folder / name).write_text("{}")
    (tmp_path / "arrays" / "0000000001-00000000.npy").mkdir()
    foreign = set(tmp_path.rglob("*"))
    for count in (4, 6):
        session, number = Session(tmp_path, keep=1), Number()
        for amount in range(count):
            add(session, number, amount, [])
            session._writer.wait(5.0)
        session.close()
        assert session.counters.failed == 0
    assert foreign <= set(tmp_path.rglob("*"))
    assert len(list((tmp_path / "arrays").glob("*.npy"))) == 4  # two of them foreign files, one a folder


def test_arrays_that_stay_the_same_are_written_once(tmp_path):
    session, pair = Session(tmp_path), Pair()
    for amount in range(1, 6):
        add(session, pair, amount, [])
        session._writer.wait(5.0)
    session.close()
    sizes = sorted(path.stat().st_size for path in (tmp_path / "arrays").iterdir())
    assert sum(size > 40_000 for size in sizes) == 1


def test_arrays_are_read_once(tmp_path, monkeypatch):
    def program():
        session, pairs = Session(tmp_path), [Pair(), Pair()]  # with equal arrays, which are in one file
        for pair in pairs:
            add(session, pair, 1, [])
        session.close()
        return pairs

    program()
    read, usual = [], Folder._array_file
    monkeypatch.setattr(Folder, "_array_file", lambda folder, *what: read.append(what[0]) or usual(folder, *what))
    first, second = program()
    assert len(read) == 4
    assert not np.shares_memory(first.array, second.array)
    assert first.array[0] == second.array[0] == 1


def test_a_damaged_snapshot_is_skipped_with_a_warning(tmp_path):
    session, number = Session(tmp_path), Number()
    for amount in range(3):
        add(session, number, amount, [])
        session._writer.wait(5.0)
    session.close()
    newest = max((tmp_path / "arrays").iterdir())
    content = bytearray(newest.read_bytes())
    content[-5] ^= 4
    newest.write_bytes(content)
    calls = []

    def again():
        session, number = Session(tmp_path), Number()
        return [add(session, number, amount, calls) for amount in range(3)], number

    with pytest.warns(UserWarning, match="is damaged and is not used: .*checksum"):
        _, number = again()
    assert calls == [2]
    assert number.array[0] == 3


def test_a_later_format_is_refused(tmp_path):
    session, number = Session(tmp_path), Number()
    add(session, number, 1, [])
    session.close()
    (name,) = session.folder.names("snapshots")
    session.folder.write_json(name, session.folder.read_json(name) | {"format": 99})
    with pytest.raises(CheckpointError, match="has format 99"):
        Session(tmp_path)


def finished(folder, count, **options):
    """Run `add` a number of times, with a snapshot each time; returns the session and what it has added."""
    session, number, calls = Session(folder, **options), Number(), []
    for amount in range(count):
        add(session, number, amount, calls)
        session._writer.wait(5.0)
    session.close()
    assert number.array[0] == sum(range(count))
    return session, calls


def flip(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)


class Pair(Number):
    """A root of which one array never changes, so that every snapshot names the file of the first one."""

    def __init__(self):
        super().__init__()
        self.data = np.arange(5000)

    def checkpoint_state(self, save):
        return save([self.array, self.data])

    def restore_state(self, tree, load):
        self.array, self.data = load(tree, [self.array, self.data])


@pytest.mark.parametrize("damage", [flip, os.unlink])
def test_damaged_arrays_are_written_again(tmp_path, damage):
    def program(count):
        session, pair, calls = Session(tmp_path), Pair(), []
        for amount in range(count):
            add(session, pair, amount, calls)
            session._writer.wait(5.0)
        session.close()
        assert pair.array[0] == sum(range(count))
        assert pair.data.tolist() == list(range(5000))
        return calls

    program(4)
    damage(max((tmp_path / "arrays").iterdir(), key=lambda path: path.stat().st_size))
    with pytest.warns(UserWarning, match="is damaged and is not used"):
        assert program(5) == list(range(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program(6) == [5]
    assert len(list((tmp_path / "snapshots").iterdir())) == 2


def test_of_two_programs_in_a_folder_the_older_one_stops(tmp_path):
    def step(session, number, amount):
        add(session, number, amount, [])
        session._writer.wait(5.0)

    older, number = Session(tmp_path, keep=1), Number()
    step(older, number, 0)
    with pytest.raises(CheckpointError, match="there it was"):
        Session(tmp_path).perform(Operator("another", lambda: None, lambda: None))  # claims nothing
    step(older, number, 1)
    newer, other = Session(tmp_path, keep=1), Number()
    for amount in range(3):
        step(newer, other, amount)
    with pytest.warns(RuntimeWarning, match="another program .* NOT SAVED"):
        step(older, number, 2)
    step(newer, other, 3)
    step(older, number, 3)
    for session in (older, newer):
        session.close()
    assert number.array[0] == other.array[0] == sum(range(4))
    assert (older.counters.written, newer.counters.written, newer.counters.failed) == (2, 2, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert finished(tmp_path, 4)[1] == []


def test_what_another_program_has_saved_stays(tmp_path):
    newer = Session(tmp_path)
    finished(tmp_path, 6)
    saved = set(tmp_path.rglob("0*"))
    newer._writer._owner._claim()  # as if it had begun in the middle of the other one
    number = Number()
    for amount in range(3):
        add(newer, number, amount, [])
        newer._writer.wait(5.0)
    newer.close()
    assert newer.counters.written == 3
    assert saved <= set(tmp_path.rglob("0*"))
    assert finished(tmp_path, 6)[1] == []


def test_a_folder_is_claimed_later_if_it_cannot_be_written_to(tmp_path):
    FaultyFileSystem.begin(0, 1.0)
    FaultyFileSystem.rng.choice = lambda faults: "full"
    session, number = Session(f"faulty://{tmp_path}"), Number()

    def fail():
        add(session, number, 1, [])
        session._writer.wait(5.0)

    with pytest.warns(RuntimeWarning, match="No space left"):
        fail()
    FaultyFileSystem.begin(0, 0.0)
    add(session, number, 1, [])
    session.close()
    assert (session.counters.failed, session.counters.written) == (1, 1)
    assert (tmp_path / "owner.json").exists()


def test_an_older_file_of_another_format_is_skipped(tmp_path):
    session, _ = finished(tmp_path, 3)
    older = session.folder.names("snapshots")[0]
    session.folder.write_json(older, session.folder.read_json(older) | {"format": 0})
    with pytest.warns(UserWarning, match="cannot be read and is not used: .* format 0"):
        assert finished(tmp_path, 4)[1] == [3]


@pytest.mark.parametrize(("folder", "before"), [("snapshots", 18), ("journal", 17)])  # 18 is in the file as well
def test_a_valid_file_under_another_name_is_not_believed(tmp_path, folder, before):
    session, _ = finished(tmp_path, 19, keep=19)
    first, *_, last = session.folder.names(folder)
    for other in (first, "owner.json"):
        content = (tmp_path / last).read_bytes()
        (tmp_path / last).write_bytes((tmp_path / other).read_bytes())
        with pytest.warns(UserWarning, match="is damaged and is not used"):
            assert Session(tmp_path).target == before
        (tmp_path / last).write_bytes(content)


def test_files_of_the_journal_that_have_changed_places(tmp_path):
    folder, journal = Folder(tmp_path), Journal(Entry(f"operator {number}", "", None) for number in range(50))
    journal.write(folder, 20, "00000000")
    journal.write(folder, 34, "00000000")
    (first, second, third), tail = journal.write(folder, 43, "00000000")
    assert not tail
    assert Journal.read(folder, [first, second, third]).entries == journal.entries[:43]
    wrong = Segment(second.name, 0, 14)  # as many entries as the name promises
    with pytest.raises(DamagedFileError, match="operators 0 to 14"):
        Journal.read(folder, [wrong])


def test_the_last_entries_of_the_journal_are_in_the_snapshot(tmp_path):
    folder, journal = Folder(tmp_path), Journal(Entry(f"operator {number}", "", None) for number in range(100))
    for end in range(1, 101):
        segments, tail = journal.write(folder, end, "00000000")
        assert len(tail) <= 8
        assert Journal.read(folder, segments, tail).entries == journal.entries[:end]
    assert len(segments) <= 8  # they are merged


def test_a_full_disk_does_not_end_the_program(tmp_path):
    FaultyFileSystem.begin(0, 1.0)
    FaultyFileSystem.rng.choice = lambda faults: "full"
    session, number = Session(f"faulty://{tmp_path}"), Number()

    def go():
        for amount in range(3):
            add(session, number, amount, [])
            session._writer.wait(5.0)

    with pytest.warns(RuntimeWarning, match="No space left on device"):
        go()
    FaultyFileSystem.begin(0, 0.0)
    assert number.array[0] == 3
    assert session.counters.failed == 3
    assert "No space left" in session.counters.last_error
    session.close()


@pytest.fixture
def hanging(monkeypatch):
    """Let the storage hang; the session waits a tenth of a second for it, and warns each time."""
    monkeypatch.setattr(sessions, "PATIENCE", 0.1)
    monkeypatch.setattr(snapshots, "_WARN_EVERY", 0.05)
    HangingFileSystem.hangs.clear()
    HangingFileSystem.goes_on.clear()
    yield HangingFileSystem.hangs.set
    HangingFileSystem.goes_on.set()
    HangingFileSystem.hangs.clear()


@pytest.mark.parametrize("end", [Session.finish, Session.suspend, Session.close])
def test_a_storage_that_does_not_answer(tmp_path, hanging, end):
    session, number, calls = Session(f"hanging://{tmp_path}"), Number(), []
    add(session, number, 0, calls)
    session._writer.wait(5.0)
    hanging()
    begin = time.monotonic()
    add(session, number, 1, calls)
    time.sleep(0.06)
    with pytest.warns(RuntimeWarning, match="has been in progress for .* continues without it"):
        add(session, number, 2, calls)
    end(session)
    session.close()
    assert time.monotonic() - begin < 5.0
    assert calls == [0, 1, 2]
    assert session.counters.written == 1
    HangingFileSystem.goes_on.set()


def test_bytes_are_counted(tmp_path):
    session, _ = finished(tmp_path, 3)
    assert session.counters.bytes == 3 * Number().array.nbytes
    for size in (1, 2):
        with strads.init(nodes=size, threads=1, checkpoint_dir=tmp_path / str(size)):
            W = strads.dvector.zeros(1000, dtype="f8")
            strads.async_for(1000, _count, W)
            session = current_session()
        assert session.counters.bytes == 8000


def _count(k, W):
    W[k] += k


@pytest.mark.parametrize("folder", ["snapshots", "journal", "owner.json"])
def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch, folder):
    finished(tmp_path, 10)

    def denied(self, path, **options):
        if folder in path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return usual(self, path, **options)

    usual = LocalFileSystem.cat_file
    monkeypatch.setattr(LocalFileSystem, "cat_file", denied)
    if folder == "owner.json":  # only writing needs it
        with pytest.warns(RuntimeWarning, match="could not be written .*Permission denied"):
            assert finished(tmp_path, 11)[1] == [10]
        return
    with pytest.raises(CheckpointError, match=r"cannot be read: .*Permission denied"):
        Session(tmp_path)


def test_operators_that_run_again_for_damage_say_so(tmp_path):
    session, _ = finished(tmp_path, 4)
    for name in session.folder.names("snapshots"):
        flip(tmp_path / name)
    with pytest.warns(UserWarning, match="is damaged"):
        session = Session(tmp_path)
    assert session.target == 0
    finished(tmp_path, 4)
    for name in session.folder.names("arrays"):
        flip(tmp_path / name)
    with pytest.warns(RuntimeWarning, match="4 operators .* because the snapshots of that position are damaged"):
        finished(tmp_path, 4)


def test_a_snapshot_that_was_waited_for_is_given_up(tmp_path, hanging):
    session = Session(f"hanging://{tmp_path}")
    hanging()
    add(session, Number(), 1, [])
    assert not session._writer.wait(0.2)
    threading.Timer(0.1, HangingFileSystem.goes_on.set).start()
    assert session._writer.cancel(0.2)
    assert session.counters.written == 0
    session._writer.close(0.0)


class Lost(Number):
    """A root whose content cannot be read when it is first used."""

    content = None

    def fixed_content(self):
        if self.content is None:
            raise NodeFailure("node 1 is lost")
        return self.content


def test_content_that_was_lost_when_an_operator_first_used_it(tmp_path):
    for _ in range(2):
        session, number = Session(tmp_path), Lost()
        assert add(session, number, 1, []) == 1
        session.close()
        Lost.content = "found"
    Lost.content = None


@pytest.mark.parametrize("error", [NodeFailure("node 1 is lost"), MemoryError(), KeyboardInterrupt()])
def test_an_error_of_the_machine_is_not_of_the_program(tmp_path, error):
    def fail():
        raise error

    session, number = Session(tmp_path), Number()
    assert add(session, number, 1, []) == 1
    with pytest.raises(type(error)):
        session.perform(Operator("add", lambda: 2, fail, [number]))
    session.close()
    session, number, calls = Session(tmp_path), Number(), []
    assert [add(session, number, amount, calls) for amount in (1, 2)] == [1, 3]
    assert calls == [2]
    session.close()


class Unlost:
    """Nodes that could be replaced."""

    def check_nodes(self):
        pass


def test_an_operator_with_a_new_table_does_not_wait_for_ever(tmp_path, hanging):
    session, calls = Session(f"hanging://{tmp_path}", nodes=Unlost()), []
    hanging()
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for amount in range(3):
            add(session, Number(), amount, calls)
    assert time.monotonic() - begin < 5.0
    assert calls == [0, 1, 2]
    session.close()


def test_a_session_of_another_thread_and_of_a_forked_child(tmp_path):
    def program(folder):
        with strads.checkpoint(folder):
            perform(Operator("add", lambda: 1, lambda: 0, [Number()]))

    thread = threading.Thread(target=program, args=[tmp_path / "thread"])
    thread.start()
    thread.join()
    assert Session(tmp_path / "thread").target == 1
    with strads.checkpoint(tmp_path / "parent"):
        child = os.fork()
        if child == 0:
            os._exit(current_session() is not None)
        assert os.waitpid(child, 0)[1] == 0


def test_the_copies_of_a_session_are_freed_at_its_end(tmp_path):
    with strads.init(threads=1, checkpoint_dir=tmp_path):
        x = strads.dvector.zeros(1000)
        strads.async_for(1000, lambda k, x: None, x)
        session = weakref.ref(current_session())
    deadline = time.monotonic() + 30
    while session() is not None and time.monotonic() < deadline:  # the thread that writes may be about to end
        gc.collect()
        time.sleep(0.01)
    assert session() is None


@pytest.mark.parametrize("name", ["every", "keep"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_bad_options(tmp_path, name, value):
    with pytest.raises(ArgumentError, match=f"checkpoint_{name}"):
        Session(tmp_path, **{name: value})


def test_an_unknown_url(tmp_path):
    with pytest.raises(ArgumentError, match="checkpoint_dir='nonsense://x'"):
        Session("nonsense://x")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name in ("file", "link"):
        with pytest.raises(CheckpointError, match="give a folder"):
            Session(tmp_path / name)
    with pytest.raises(CheckpointError, match="cannot be made"):
        Session(tmp_path / "file" / "folder")
