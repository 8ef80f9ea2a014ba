"""Loops, engines, the parameter server and estimators with restarts, on other numbers of nodes too."""

import itertools
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from checkpoints.crash_programs import PROGRAMS, digest_of, run

import strads
from strads import models
from strads.checkpoints import current_session
from strads.cluster import Runtime
from strads.errors import CheckpointError
from strads.loops.kept_loops import _kept

HERE = Path(__file__).parent


class Crash(BaseException):
    """In place of a kill."""


def crash_after(monkeypatch, count):
    """Make the program end after a number of operators, without a last snapshot."""
    from strads.checkpoints.session import Session

    perform = Session.perform

    def counted(self, operator):
        if self.position >= count:
            self._writer.wait(5.0)
            self._is_broken = True
            raise Crash
        return perform(self, operator)

    monkeypatch.setattr(Session, "perform", counted)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_saved_before_their_first_operator(name, tmp_path, monkeypatch):
    """As on Ray, where what is new to an operator must survive the nodes that run it."""
    wanted = run(name, None)
    monkeypatch.setattr(Runtime, "can_replace_nodes", True)
    with monkeypatch.context() as patch:
        crash_after(patch, 1)
        with pytest.raises(Crash):
            run(name, str(tmp_path))
    assert run(name, str(tmp_path)) == wanted


_LINEAR = {
    "working set": lambda: models.ElasticNet(0.01, l1_ratio=0.7),
    "coordinate descent": lambda: models.Lasso(0.01, solver=models.CoordinateDescent("cyclic")),
    "positive": lambda: models.Lasso(0.01, positive=True),
    "ridge": lambda: models.ElasticNet(0.1, l1_ratio=0.0),
    "several outputs": lambda: models.MultiTaskLasso(0.01),
    "l1 logistic": lambda: models.LogisticRegression(l1_ratio=1.0),
    "l2 logistic": lambda: models.LogisticRegression(),
    "support vectors": lambda: models.LinearSVC(),
    "hinge": lambda: models.LinearSVC(loss="hinge"),
    "l1 support vectors": lambda: models.LinearSVC(penalty="l1"),
    "multinomial": lambda: models.MultinomialLogisticRegression(),
    "l1 multinomial": lambda: models.MultinomialLogisticRegression(penalty="l1"),
}


@pytest.mark.parametrize("name", _LINEAR)
def test_linear_models_are_saved_before_their_first_iteration(name, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = X[:, :2] if name == "several outputs" else (X[:, 0] + rng.normal(size=60) > 0).astype(float)
    if "multinomial" in name:
        y = rng.integers(0, 3, 60)
    wanted = _LINEAR[name]().fit(X, y).coef_
    monkeypatch.setattr(Runtime, "can_replace_nodes", True)
    with strads.init(checkpoint_dir=tmp_path, threads=1):
        assert np.array_equal(_LINEAR[name]().fit(X, y).coef_, wanted)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["mf_early_stopping", "lda", "rotation", "dynamic", "parameter_server", "minibatches"])
def test_other_numbers_of_nodes_continue(name, tmp_path, monkeypatch):
    wanted = run(name, None)
    for nodes, count in ((3, 3), (1, 7)):
        with monkeypatch.context() as patch:
            crash_after(patch, count)
            with pytest.raises(Crash):
                run(name, str(tmp_path), nodes=nodes)
    assert run(name, str(tmp_path), nodes=2) == wanted
    assert run(name, str(tmp_path)) == wanted  # all is skipped


@pytest.mark.parametrize("name", ["mf", "lasso", "loops"])
def test_one_process_continues(name, tmp_path, monkeypatch):
    wanted = run(name, None)
    for count in (2, 5, 9):
        with monkeypatch.context() as patch:
            crash_after(patch, count)
            with pytest.raises(Crash):
                run(name, str(tmp_path))
    assert run(name, str(tmp_path)) == wanted


def _wander(k, e, f, x):
    i, j = e[k], f[k]
    x[i] = (x[i] * 3 + x[j] + k) % 1000003
    x[j] = (x[j] * 5 + 1) % 1000003
    e[k] = (i + 1) % len(x)


def _chain(k, e, x):
    x[e[k, 0]] = (x[e[k, 0]] * 3 + x[e[k, 1]] + k) % 1000003
    x[e[k, 1]] = (x[e[k, 1]] * 5 + 1) % 1000003


@pytest.mark.few(1)
@pytest.mark.parametrize("skipped", [1, 2])
def test_the_order_of_a_loop_does_not_depend_on_calls_that_were_skipped(skipped, tmp_path, monkeypatch):
    def program(folder):
        _kept.clear()  # as in a new process
        rng = np.random.default_rng(0)
        tables = [strads.dvector(rng.integers(0, 2000, 40_000)) for _ in range(2)]
        pairs, x = strads.dvector(np.zeros((400_000, 2), int)), strads.dvector(np.arange(2000))
        with strads.checkpoint(folder):
            for call in range(3):
                strads.async_for(40_000, _wander, *tables, x)
                if call == 1:
                    pairs[:] = rng.integers(0, 2000, (400_000, 2))
                strads.async_for(400_000, _chain, pairs, x)
        return x.to_numpy(copy=True)

    wanted = program(tmp_path / "whole")
    with monkeypatch.context() as patch:
        crash_after(patch, 2 * skipped)
        with pytest.raises(Crash):
            program(tmp_path / "crashed")
    np.testing.assert_array_equal(program(tmp_path / "crashed"), wanted)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["loops", "lda", "word2vec", "train_command"])
def test_kills_at_random_moments(name):
    harness = [sys.executable, str(HERE / "crash_harness.py"), "--kills", "4", "--backends", "threads"]
    subprocess.run([*harness, "--programs", name], check=True, timeout=300, capture_output=True)


def _scale(k, W, factor):
    W[k] *= factor


def test_changed_arguments_and_content_are_noticed(tmp_path):
    def program(factor=2.0, first=1.0, body=_scale):
        with strads.checkpoint(tmp_path):
            W = strads.dvector.full(10, first)
            strads.async_for(range(10), body, W, factor)
            return W.to_numpy(copy=True)

    assert program().tolist() == [2.0] * 10
    assert program().tolist() == [2.0] * 10
    with pytest.raises(CheckpointError, match="arguments"):
        program(factor=3.0)
    with pytest.raises(CheckpointError, match="content of a table"):
        program(first=4.0)

    def _scale_differently(k, W, factor):
        W[k] /= factor

    _scale_differently.__name__ = "_scale"
    with pytest.raises(CheckpointError, match="code"):
        program(body=_scale_differently)


def test_what_has_been_dropped_before_the_last_snapshot_is_kept(tmp_path):
    def learnt():
        W = strads.dvector.full(10, 1.0)
        for _ in range(2):
            strads.async_for(range(10), _scale, W, 2.0)
        strads.record(lambda: 1)  # changes nothing
        return W.to_numpy(copy=True)  # of the position of the last snapshot, which is taken when W is gone

    for _ in range(3):
        with strads.checkpoint(tmp_path, every=2):
            assert learnt().tolist() == [4.0] * 10


def test_views_show_what_skipped_loops_have_done(tmp_path):
    def program():
        with strads.checkpoint(tmp_path):
            W = strads.dvector.full(10, 1.0)
            view, seen = W.to_numpy(), []
            for _ in range(5):
                strads.async_for(range(10), _scale, W, 2.0)
                seen.append(float(view[3]))  # strads does not see this access
        return seen

    wanted = program()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program() == wanted == [2.0, 4.0, 8.0, 16.0, 32.0]


@pytest.mark.parametrize("size", [1, 2])
def test_copies_and_rows_of_tables_that_skipped_loops_have_changed(tmp_path, size):
    def program(epochs):
        with strads.init("threads", nodes=size, threads=1), strads.checkpoint(tmp_path, every=100):
            W, seen, copies = strads.dvector.full(10, 1.0), [], []
            for epoch in range(epochs):
                strads.async_for(range(10), _scale, W, 2.0)
                if epoch % 2:
                    copies.append(copy := W.copy())
                    strads.async_for(range(10), _scale, copy, 3.0)
                    seen.append((float(copy[4]), float(W[4])))
        return seen

    program(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(8) == [(3.0 * 4.0**power, 4.0**power) for power in (1, 2, 3, 4)]


def test_a_skipped_loop_has_statistics_but_no_plan(tmp_path):
    for _ in range(2):
        with strads.checkpoint(tmp_path):
            W = strads.dvector.full(10, 1.0)
            found = strads.async_for(range(10), _scale, W, 2.0)
    assert (found.tasks, found.strategy) == (10, "independent")
    assert found.plan.explain().startswith("skipped")
    with pytest.raises(CheckpointError, match="skipped"):
        found.plan.jobs  # noqa: B018


def test_record(tmp_path):
    calls = itertools.count()

    def measure():
        next(calls)
        return {"error": 0.5, "each": np.arange(100)}

    for _ in range(2):
        with strads.checkpoint(tmp_path):
            found = strads.record(measure)
    assert next(calls) == 1
    assert found["error"] == 0.5
    assert found["each"].tolist() == list(range(100))


def test_callbacks_and_history_are_those_of_an_uninterrupted_fit(tmp_path):
    X = np.c_[np.arange(400) % 20, np.arange(400) % 17]
    y = np.arange(400) % 5 + 1.0

    def program(stop=None):
        seen = []
        model = models.MatrixFactorization(n_components=4, max_iter=10)

        def look(record):
            seen.append((record["iteration"], digest_of(model.user_factors_)))
            if record["iteration"] == stop:
                current_session()._writer.wait(5.0)
                current_session()._is_broken = True
                raise Crash

        with strads.checkpoint(tmp_path):
            model.fit(X, y, on_iteration=look)
        return seen, [record["rmse"] for record in model.history_], model.n_iter_

    wanted = None
    for stop in (4, 7, None):
        try:
            wanted = program(stop)
        except Crash:
            continue
    assert wanted[0][-1][0] == 10
    assert len(wanted[1]) == wanted[2] == 10
    again = program()
    assert again == wanted


def test_interrupted_training_continues(tmp_path):
    X = np.c_[np.arange(400) % 20, np.arange(400) % 17]
    y = np.arange(400) % 5 + 1.0

    def interrupt(record):
        if record["iteration"] == 3:
            raise KeyboardInterrupt

    reference = models.MatrixFactorization(n_components=4, max_iter=6).fit(X, y)
    model = models.MatrixFactorization(n_components=4, max_iter=6)
    with pytest.raises(KeyboardInterrupt), strads.checkpoint(tmp_path):
        model.fit(X, y, on_iteration=interrupt)
    assert model.n_iter_ == 3
    with strads.checkpoint(tmp_path) as session:
        assert session.target == 3
        model.fit(X, y)
    np.testing.assert_array_equal(model.user_factors_, reference.user_factors_)


def test_two_models_in_one_program(tmp_path):
    X = np.c_[np.arange(400) % 20, np.arange(400) % 17]
    y = np.arange(400) % 5 + 1.0

    def program():
        with strads.checkpoint(tmp_path, every=3):
            first = models.MatrixFactorization(n_components=3, max_iter=4).fit(X, y)
            score = first.predict(X).sum()
            second = models.MatrixFactorization(n_components=2, max_iter=4).fit(X, y + score)
        return digest_of(first.user_factors_, second.user_factors_)

    assert program() == program()


SIGNALLED = """
import sys, time, strads
W = strads.dvector.zeros(1000)
def step(k, W):
    for _ in range(2_000): W[k] = 0.5 * W[k] + 1.0
with strads.checkpoint(sys.argv[1]):
    for number in range(10_000):
        strads.async_for(range(1000), step, W)
        print(number, flush=True)
"""


def test_sigterm_writes_a_last_snapshot(tmp_path):
    program = [sys.executable, "-c", SIGNALLED, str(tmp_path)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    for _ in range(5):
        process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    done = [int(line) for line in process.communicate(timeout=60)[0].split()]
    assert process.returncode == 143
    with strads.checkpoint(tmp_path) as session:
        assert session.target >= (done[-1] if done else 4) + 1
        current_session()._is_broken = True


def test_nodes_of_another_number_are_refused_where_they_matter(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        crash_after(patch, 12)
        with pytest.raises(Crash):
            run("lasso", str(tmp_path), nodes=2)
    with pytest.raises(CheckpointError, match=r"2 (workers|scheduler instances)"):
        run("lasso", str(tmp_path), nodes=3)


def test_a_folder_on_a_file_system_of_fsspec(tmp_path):
    for expected in (0, 1):
        with strads.init(checkpoint_dir=f"file://{tmp_path}"):
            assert current_session().target == expected
            W = strads.dvector.full(10, 1.0)
            strads.async_for(range(10), _scale, W, 2.0)
        assert W[3] == 2.0


def test_no_code_is_read_from_the_folder(tmp_path):
    with strads.checkpoint(tmp_path):
        W = strads.dvector.full(1000, 1.0)
        strads.async_for(range(1000), _scale, W, 2.0)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert path.suffix in (".json", ".npy")
    (path,) = (tmp_path / "arrays").iterdir()
    with open(path, "rb") as file:
        assert np.load(file, allow_pickle=False).tolist() == [2.0] * 1000
    assert os.listdir(tmp_path / "unfinished") == []
