"""Programs that change, between operators, what operators have used; and other ways to meet a checkpoint unprepared."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pytest

import strads
from strads import models, ps
from strads.checkpoints import current_session
from strads.checkpoints import session as sessions
from strads.checkpoints.snapshots import SnapshotWriter
from strads.errors import ArgumentError, CheckpointError


class Killed(Exception):
    """The program ends here; nothing is written afterwards."""


def die():
    session = current_session()
    if session is not None:
        session._writer.wait(10.0)
        session._is_broken = True
        raise Killed


def end():
    """End as after SIGTERM: with a last snapshot, if there can be one."""
    session = current_session()
    if session is not None:
        session.suspend()
        raise Killed


def restarted(program, folder, *arguments, every=1, nodes=1, kill=die):
    """Return what a program returns that is killed where it calls its argument, and then executed again."""
    found = None
    for ending in (kill, lambda: None):
        with strads.init(nodes=nodes, checkpoint_dir=folder, checkpoint_every=every):
            try:
                found = program(ending, *arguments)
            except Killed:
                continue
    return found


def plain(program, *arguments):
    return program(lambda: None, *arguments)


def _step(k, X, W, rate):
    W[k % len(W)] += rate[0] * (X[k] - W[k % len(W)])


FACTOR = 0.5


def _scaled(k, W):
    W[k] = W[k] * FACTOR + 1.0


def tables():
    return strads.dvector.uniform(50, seed=1), strads.dvector.zeros(7)


def test_an_array_argument_that_is_changed_in_place(tmp_path):
    def program(kill):
        (X, W), rate, seen = tables(), np.array([0.5], "f4"), []
        for number in range(9):
            strads.async_for(50, _step, X, W, rate)
            rate *= 0.7
            if number == 4:
                seen.append(float(W[3]))
            if number == 7:
                kill()
        return seen, float(W[3])

    assert restarted(program, tmp_path, every=4) == plain(program)


def test_a_global_variable_that_is_changed_is_noticed(tmp_path, monkeypatch):
    def program(kill):
        monkeypatch.setitem(globals(), "FACTOR", 0.5)
        W, seen = strads.dvector.zeros(7), []
        for number in range(9):
            strads.async_for(7, _scaled, W)
            if number % 3 == 2:  # each value compiles the loop
                monkeypatch.setitem(globals(), "FACTOR", FACTOR * 0.7)
            if number == 5:
                seen.append(float(W[3]))
            if number == 7:
                kill()
        return seen

    with pytest.raises(CheckpointError, match="global variable"):
        restarted(program, tmp_path, every=4)


def test_data_of_a_fit_that_is_changed_in_place_is_noticed(tmp_path):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(60, 20)))

    def program(kill):
        data, model, seen = X.copy(order="F"), models.Lasso(max_iter=3, tol=0.0), []

        def on_iteration(record):
            if record["iteration"] == 1:
                data[:] *= 0.5
            if record["iteration"] == 2:
                seen.append(model.predict(X[:5]).tolist())

        model.fit(data, data[:, :3].sum(1), on_iteration=on_iteration)
        kill()
        return seen

    with pytest.raises(CheckpointError, match="its data has changed"):
        restarted(program, tmp_path, every=3)


def test_an_interrupt_before_the_newest_snapshot_is_reached(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 20))

    def program(interrupted=()):
        def on_iteration(record):
            if record["iteration"] in interrupted:
                signal.raise_signal(signal.SIGINT)

        model = models.Lasso(max_iter=5, tol=0.0)
        with suppress(KeyboardInterrupt):
            model.fit(X, X[:, :3].sum(1), on_iteration=on_iteration)
        return model.n_iter_, model.predict(X[:5]).tolist()

    expected = program((2,)), program()
    with strads.checkpoint(tmp_path):
        program()
    with strads.checkpoint(tmp_path):
        assert program((2,)) == expected[0]
    with strads.checkpoint(tmp_path):
        assert program() == expected[1]


def test_data_of_a_fit_may_change_when_the_fit_is_over(tmp_path):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(60, 20)))

    def program(kill):
        (samples, W), data, seen = tables(), X.copy(order="F"), []
        model = models.Lasso(max_iter=3).fit(data, data[:, :3].sum(1))
        data *= 0.5
        for number in range(9):
            strads.async_for(50, _step, samples, W, np.array([0.5], "f4"))
            if number == 2:
                seen.append(float(W[3]))
        kill()
        return seen, model.coef_.tolist()

    assert restarted(program, tmp_path, every=12) == plain(program)


def test_what_the_driver_writes_before_the_end_is_written_once(tmp_path):
    def program():
        X, W = tables()
        for _ in range(3):
            strads.async_for(50, _step, X, W, np.array([0.5], "f4"))
        W[:] = W.to_numpy() * 0.5
        return W.to_numpy(copy=True).tolist()

    wanted = program()
    for _ in range(3):
        with strads.checkpoint(tmp_path, every=2):
            assert program() == wanted


def test_sigterm_before_the_journal(tmp_path, monkeypatch):
    def program():
        X, W = tables()
        for _ in range(6):
            strads.async_for(50, _step, X, W, np.array([0.5], "f4"))
        return float(W[3])

    wanted, packed, calls = program(), sessions._packed, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return packed(*arguments)

    monkeypatch.setattr(sessions, "_packed", interrupted)
    with pytest.raises(SystemExit), strads.checkpoint(tmp_path, every=3):
        program()
    assert len(calls) == 2
    with strads.checkpoint(tmp_path, every=3):
        assert program() == wanted


def test_a_fit_in_another_thread_is_not_part_of_the_program(tmp_path):
    rng = np.random.default_rng(0)
    data = np.c_[rng.integers(0, 30, 200), rng.integers(0, 20, 200)], rng.normal(size=200)

    def program(kill):
        epochs = []
        with ThreadPoolExecutor(1) as pool:

            def look(record):
                if record["iteration"] == 2:
                    other = models.MatrixFactorization(n_components=3, max_iter=5)
                    epochs.append(pool.submit(other.fit, *data).result().n_iter_)

            models.MatrixFactorization(n_components=4, max_iter=3).fit(*data, on_iteration=look)
        kill()
        return epochs

    assert restarted(program, tmp_path) == [5]


@pytest.mark.parametrize("most", [2, 6])
def test_another_number_of_epochs_is_noticed(tmp_path, most):
    data = np.c_[np.arange(60) % 7, np.arange(60) % 5], np.arange(60) % 3 + 1.0

    def program(count):
        with strads.checkpoint(tmp_path) as session:
            model = models.MatrixFactorization(n_components=2, max_iter=count).fit(*data)
            session.finish()
            return model.n_iter_

    assert program(3) == 3
    assert program(3) == 3
    with pytest.raises(CheckpointError, match="MatrixFactorization"):
        program(most)


def _fit_mf(count, look):
    data = np.c_[np.arange(60) % 7, np.arange(60) % 5], np.arange(60) % 3 + 1.0
    models.MatrixFactorization(2, max_iter=count, learning_rate_schedule="linear").fit(*data, on_iteration=look)


def _fit_transe(count, look):
    triples = np.c_[np.arange(60) % 7, np.arange(60) % 3, np.arange(60) % 5].astype(str)
    models.TransE(2, max_iter=count, learning_rate_schedule="linear").fit(triples, on_iteration=look)


def _fit_lasso(count, look):
    X = np.random.default_rng(0).normal(size=(60, 20))
    models.Lasso(max_iter=count, tol=0.0).fit(X, X[:, :3].sum(1), on_iteration=look)


@pytest.mark.parametrize("fit", [_fit_mf, _fit_transe, _fit_lasso])
def test_another_number_of_epochs_is_noticed_in_the_middle(tmp_path, fit):
    def look(record):
        if record["iteration"] == 2:
            die()

    with suppress(Killed), strads.checkpoint(tmp_path):
        fit(3, look)
    with strads.checkpoint(tmp_path) as session:
        assert session.target >= 1
        with pytest.raises(CheckpointError, match="epoch"):
            fit(5, None)


@pytest.mark.parametrize(("first", "then"), [(2, 2), (1, 2), (3, 1), (1, 1)])
def test_changed_files_are_noticed_wherever_the_rows_are(tmp_path, first, then):
    def add(k, T, W):
        W[T[k].user] += T[k].score

    def program():
        table = strads.read_csv(tmp_path / "data.csv", {"user": "i4", "score": "f8"})
        W = strads.dvector.zeros(7, dtype="f8")
        for _ in range(2):
            strads.async_for(len(table), add, table, W)
        return W.to_numpy(copy=True).tolist()

    def run(nodes, factor):
        lines = [f"{number % 7},{number * factor}\n" for number in range(300)]
        (tmp_path / "data.csv").write_text("user,score\n" + "".join(lines))
        with strads.init(nodes=nodes, threads=1, checkpoint_dir=tmp_path / "checkpoint"):
            return program()

    assert run(first, 0.5) == run(then, 0.5)
    with pytest.raises(CheckpointError, match="content of a table"):
        run(then, 0.25)


def test_a_failure_must_happen_again(tmp_path):
    def program(kill):
        (X, W), seen = tables(), []
        for number in range(4):
            strads.async_for(50, _step, X, W, np.array([0.5], "f4"))
            try:
                seen.append(strads.record(lambda: float((tmp_path / "number").read_text())))
            except OSError:
                seen.append(0.0)
            if number == 1 and current_session() is not None:
                current_session().finish()
            if number == 2:
                kill()
        return seen

    assert restarted(program, tmp_path / "kept") == [0.0] * 4
    with pytest.raises(Killed), strads.checkpoint(tmp_path / "checkpoint"):
        program(die)
    (tmp_path / "number").write_text("0.9")
    with (
        pytest.raises(CheckpointError, match="there it raised FileNotFoundError"),
        strads.checkpoint(tmp_path / "checkpoint"),
    ):
        program(lambda: None)


def test_models_that_are_changed_after_fit(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(40)]
    sentences = [[words[number % 40] for number in rng.zipf(1.4, 12)] for _ in range(100)]

    def program(kill):
        model = models.Word2Vec(vector_size=8, min_count=1, epochs=2).fit(sentences)
        model.vectors_ /= np.linalg.norm(model.vectors_, axis=1, keepdims=True)
        X, W = tables()
        for number in range(4):
            strads.async_for(50, _step, X, W, np.array([0.5], "f4"))
            model.partial_fit(sentences)
            if number == 2:
                kill()
        return float(W[3]), model.vectors_.tolist()

    for every in (1, 3, 7):
        assert restarted(program, tmp_path / str(every), every=every) == plain(program)


def _fit_twice(sentences, operator, here):
    """Fit twice, change what was learnt in between, and look at all of it."""
    model = models.Word2Vec(vector_size=8, min_count=1, epochs=2)
    seen = []
    for _ in range(2):
        model.fit(sentences)
        here()
        model.vectors_ *= 2.0
        here()
        model.partial_fit(sentences)
        seen.append(operator())
        here()
        seen.append(model.vectors_.tolist())
        model.partial_fit(sentences)
        here()
    seen.append(operator())
    model.partial_fit(sentences)
    here()
    return seen, model.vectors_.tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize("ending", [die, end])
@pytest.mark.parametrize("seed", range(4))
def test_models_changed_after_fit_whichever_snapshots_are_there(tmp_path, monkeypatch, seed, ending):
    """A program is killed at any place, and the writer was busy after any of the operators before."""
    sentences = [[f"w{number % 20}" for number in row] for row in np.random.default_rng(0).zipf(1.4, (50, 12))]
    rng = np.random.default_rng(seed)
    looks = seed % 2 == 1

    def program(kill, last=None):
        X, W = tables()
        places = iter(range(100))

        def operator():
            strads.async_for(50, _step, X, W, np.array([0.5], "f4"))
            return float(W[3]) if looks else None

        return _fit_twice(sentences, operator, lambda: kill() if next(places) == last else None)

    expected = plain(program)
    for number in range(8):
        written = set(rng.choice(10, rng.integers(1, 10), replace=False))

        def is_busy(writer, written=written):
            writer.wait(60.0)
            return len(writer._journal) not in written

        monkeypatch.setattr(SnapshotWriter, "is_busy", property(is_busy))
        last = int(rng.integers(9))
        found = restarted(program, tmp_path / str(number), last, kill=ending)
        assert found == expected, f"killed at {last}, snapshots at {sorted(written)}"


def test_padding_of_records_does_not_count(tmp_path):
    dtype = np.dtype([("a", "i1"), ("b", "f8")], align=True)

    def bump(k, T):
        T[k].b += T[k].a + k

    def program(kill):
        array = np.empty(50, dtype)
        array.view("u1")[:] = os.urandom(1)[0]
        array["a"], array["b"] = np.arange(50) % 5, 1.0
        T = strads.dvector(array)
        for _ in range(4):
            strads.async_for(50, bump, T)
        kill()
        return T.to_numpy()["b"].tolist()

    for nodes in (1, 2):
        assert restarted(program, tmp_path / str(nodes), nodes=nodes) == plain(program)


class Metrics(NamedTuple):
    loss: float


def test_record_refuses_what_it_could_not_return(tmp_path):
    with strads.checkpoint(tmp_path), pytest.raises(CheckpointError, match=r"strads.record .*Return numbers"):
        strads.record(lambda: Metrics(1.0))


def test_sessions_are_not_nested(tmp_path):
    with strads.checkpoint(tmp_path / "a"):
        with pytest.raises(ArgumentError, match="already saved"), strads.checkpoint(tmp_path / "b"):
            pass
        assert strads.record(lambda: 3) == 3


def test_plans_of_skipped_loops_can_be_printed(tmp_path):
    def program(kill):
        X, W = tables()
        for _ in range(3):
            strads.async_for(50, _step, X, W, np.array([0.5], "f4")).plan.explain()
        kill()
        return float(W[3])

    assert restarted(program, tmp_path) == plain(program)


def test_memory_that_is_not_of_numpy(tmp_path):
    def program(kill):
        memory, seen = bytearray(28), []
        X, _ = tables()
        W = strads.dvector.from_numpy(np.frombuffer(memory, "f4"), copy=False)
        for _ in range(4):
            strads.async_for(50, _step, X, W, np.array([0.5], "f4"))
            seen.append(float(np.frombuffer(memory, "f4")[3]))
        kill()
        return seen

    assert restarted(program, tmp_path) == plain(program)


def _work(worker, table, out):
    table.inc(np.arange(5), np.ones((5, 1)))
    worker.clock()
    out[worker.number] += worker.number + 1.0


def test_workers_that_write_to_an_argument(tmp_path):
    def program(kill):
        table, out, seen = ps.Table(5, 1), np.zeros(2), []
        for number in range(4):
            ps.run(_work, table, out, workers=2)
            seen.append(float(out.sum()))
            if number == 2:
                kill()
        return seen

    assert restarted(program, tmp_path) == [3.0, 6.0, 9.0, 12.0]


def test_a_forked_child_leaves_the_checkpoint_alone(tmp_path):
    X, W = tables()
    with strads.checkpoint(tmp_path, every=2) as session:
        for _ in range(3):
            strads.async_for(50, _step, X, W, np.array([0.5], "f4"))
        session._writer.wait(10.0)
        before = sorted(path.name for path in tmp_path.rglob("*"))
        child = os.fork()
        if child == 0:
            session.close()
            os._exit(0 if session.closed else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert sorted(path.name for path in tmp_path.rglob("*")) == before


# -- random_state ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: None, lambda: np.random.RandomState(3)], ids=["None", "RandomState"])
def test_generators_give_a_restarted_program_what_they_gave(tmp_path, make):
    """A skipped fit draws its seed all the same, so that what the program draws afterwards does not change."""
    ratings = np.c_[np.arange(60) % 7, np.arange(60) % 5], np.arange(60) % 3 + 1.0

    def program(end):
        np.random.seed(5)  # noqa: NPY002 - programs use it
        random_state = make()
        model = models.MatrixFactorization(2, max_iter=2, random_state=random_state).fit(*ratings)
        held = np.random.permutation(60)[:20]  # noqa: NPY002
        end()
        model.partial_fit(ratings[0][held], ratings[1][held])
        further = models.Word2Vec(3, min_count=1, epochs=1, random_state=random_state).fit(["a b c"] * 5)
        return model.digest(), further.digest(), np.random.rand()  # noqa: NPY002

    assert restarted(program, tmp_path) == plain(program)
