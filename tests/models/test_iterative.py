"""The base of estimators that iterate, with a small estimator: Newton's iteration for square roots."""

import json
import math
import signal
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import strads
from strads.models._iterative import Epoch, IterativeEstimator, Solver
from strads.models._parameters import check_positive, check_whole_numbers
from strads.models.held_out import held_out
from strads.models.model_files import save_model


@dataclass
class Roots:
    values: np.ndarray

    def copy(self):
        return Roots(self.values.copy())


class NewtonSolver(Solver):
    """x ← (x + a/x) / 2, on all a at once; the objective is Σ |x² − a|."""

    def __init__(self, squares, tol, fails_in=0, error=None):
        self.squares, self.tol = squares, tol
        self.fails_in, self.error = fails_in, error
        self.roots = np.ones(len(squares))
        self.published = 0
        self.is_closed = False

    def run_epoch(self, number):
        if number == self.fails_in:
            raise self.error
        self.roots += self.squares / self.roots
        self.roots /= 2
        error = float(np.abs(self.roots**2 - self.squares).sum())
        return Epoch(number * len(self.roots), error, {"largest": float(self.roots.max())}, is_last=error <= self.tol)

    def evaluate(self, number):
        return {"held_out": abs(number - 3.0)}

    def learnt(self):
        self.published += 1
        return Roots(self.roots)

    def close(self):
        self.is_closed = True


class SquareRoots(IterativeEstimator):
    _early_stopping_figure = "held_out"

    def __init__(self, max_iter=20, *, tol=1e-9, early_stopping=False, n_iter_no_change=2):
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change

    def fit(self, X, y=None, *, on_iteration=None, **options):
        check_whole_numbers(self, "max_iter", "n_iter_no_change")
        check_positive(self, "tol")
        self._forget()
        self.n_features_in_ = 1
        with NewtonSolver(np.asarray(X, float), self.tol, **options) as self.used:
            self.was_stopped = self._train(self.used, on_iteration)
        return self

    def predict(self):
        self._check_fitted()
        return self.roots_

    def _publish(self, learnt):
        self.roots_ = learnt.values.copy()

    def _saved(self):
        return {"count": len(self.roots_)}, {"roots": self.roots_}

    def _restore(self, parameters, arrays):
        self.roots_ = arrays["roots"]
        if len(self.roots_) != parameters["count"]:
            raise ValueError("too few roots")


def test_training_ends_by_convergence_or_max_iter():
    model = SquareRoots().fit([4.0, 9.0])
    np.testing.assert_allclose(model.predict(), [2.0, 3.0])
    assert model.used.is_closed
    assert model.used.published == 1
    assert not model.was_stopped
    assert 3 < model.n_iter_ == len(model.history_) < 20
    for number, record in enumerate(model.history_, 1):
        assert list(record) == ["iteration", "seconds", "samples", "objective", "largest", "held_out"]
        assert record["iteration"] == number
        assert record["samples"] == 2 * number
    seconds = [record["seconds"] for record in model.history_]
    assert seconds == sorted(seconds)
    assert SquareRoots(2).fit([4.0]).n_iter_ == 2


def test_a_callback_is_a_function():
    model = SquareRoots()
    with pytest.raises(strads.ArgumentError, match="on_iteration=5: give a function"):
        model.fit([4.0], on_iteration=5)
    assert not hasattr(model, "history_")


def test_a_callback_sees_the_model_so_far_and_may_stop(tmp_path):
    seen = []

    def on_iteration(record):
        seen.append(model.predict().copy())
        model.save(tmp_path / f"{record['iteration']}.npz")
        return record["iteration"] == 3

    model = SquareRoots()
    model.fit([4.0], on_iteration=on_iteration)
    assert model.was_stopped
    assert model.n_iter_ == 3
    assert model.used.published == 4  # once an iteration, and at the end
    np.testing.assert_allclose(np.ravel(seen), [2.5, 2.05, 2.000609756], rtol=1e-9)
    second = SquareRoots.load(tmp_path / "2.npz")
    assert second.n_iter_ == len(second.history_) == 2
    assert second.predict() == seen[1]


def test_early_stopping_keeps_the_best():
    model = SquareRoots(tol=1e-12, early_stopping=True, n_iter_no_change=4).fit([1e6])
    assert model.n_iter_ == 3 + 4
    best = SquareRoots(3).fit([1e6])
    assert model.predict() == best.predict()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_errors_of_callbacks_come_when_the_model_is_whole(error):
    def on_iteration(record):
        if record["iteration"] == 2:
            raise error

    model = SquareRoots()
    with pytest.raises(error):
        model.fit([4.0], on_iteration=on_iteration)
    assert model.predict() == SquareRoots(2).fit([4.0]).predict()
    assert model.used.is_closed


def test_ctrl_c_ends_training_after_the_iteration(monkeypatch):
    run = NewtonSolver.run_epoch

    def interrupted(self, number):
        if number == 2:
            signal.raise_signal(signal.SIGINT)
        return run(self, number)

    monkeypatch.setattr(NewtonSolver, "run_epoch", interrupted)
    model = SquareRoots()
    with pytest.raises(KeyboardInterrupt):
        model.fit([4.0])
    assert model.n_iter_ == 2
    assert model.predict() == pytest.approx(2.05)


@pytest.mark.parametrize("intact", [False, True])
def test_an_epoch_that_fails(monkeypatch, intact):
    monkeypatch.setattr(NewtonSolver, "is_intact", intact)
    model = SquareRoots().fit([9.0])
    with pytest.raises(ZeroDivisionError):
        model.fit([4.0], fails_in=3, error=ZeroDivisionError())
    assert model.used.is_closed
    assert model.n_iter_ == 2
    if intact:
        assert model.predict() == pytest.approx(2.05)
    else:
        with pytest.raises(NotFittedError):
            model.predict()


@pytest.mark.parametrize("error", [strads.NodeFailure("node 1 is lost"), ZeroDivisionError()])
def test_a_model_saved_before_what_was_lost_is_not_that_of_a_later_epoch(tmp_path, monkeypatch, error):
    monkeypatch.setattr(NewtonSolver, "is_intact", False)
    model = SquareRoots()

    def on_iteration(record):
        if record["iteration"] == 1:
            model.save(tmp_path / "first.npz")

    with pytest.raises(type(error)):
        model.fit([4.0], on_iteration=on_iteration, fails_in=4, error=error)
    assert SquareRoots.load(tmp_path / "first.npz").n_iter_ == 1
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "last.npz")


def test_after_the_loss_of_a_node_nothing_is_learnt():
    model = SquareRoots().fit([9.0])
    with pytest.raises(strads.NodeFailure):
        model.fit([4.0], fails_in=3, error=strads.NodeFailure("node 1 is lost"))
    with pytest.raises(NotFittedError, match="This SquareRoots instance is not fitted yet"):
        model.predict()


def test_divergence_is_an_error():
    with np.errstate(all="ignore"), pytest.raises(strads.InputError, match="diverged in epoch 1: use a smaller"):
        SquareRoots().fit([math.inf])


def test_conventions_of_scikit_learn():
    model = SquareRoots(max_iter=np.int64(7))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(model.fit([4.0]))
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict()


def test_files_that_are_incomplete(tmp_path):
    path = tmp_path / "model.npz"
    SquareRoots(max_iter=np.int64(7)).fit([4.0]).save(path)
    again = SquareRoots.load(path)
    assert again.max_iter == 7
    assert json.dumps(again.history_)
    good = {"params": {}, "n_iter": 1, "history": [], "count": 1}
    for parameters, arrays, message in [
        (good | {"count": 2}, {"roots": np.ones(1)}, "too few roots"),
        ({"params": {}}, {}, "n_iter"),
        (good, {}, "roots"),
        (good | {"params": {"depth": 3}}, {"roots": np.ones(1)}, "depth"),
    ]:
        save_model(path, "SquareRoots", parameters, arrays)
        with pytest.raises(strads.InputError, match=rf"model.npz: the model file is incomplete .*{message}"):
            SquareRoots.load(path)
    save_model(path, "Roots", good, {})
    with pytest.raises(strads.InputError, match=r"holds a Roots"):
        SquareRoots.load(path)


def test_held_out_samples():
    mask = held_out(100, 0.1, seed=1)
    assert mask.sum() == 10
    assert (mask == held_out(100, 0.1, seed=1)).all()
    assert (mask != held_out(100, 0.1, seed=2)).any()
    assert held_out(2, 0.999, seed=0).sum() == held_out(5, 0.001, seed=0).sum() == 1
    with pytest.raises(strads.InputError, match="at least 2 words, one to hold out"):
        held_out(1, 0.5, 0, "words")
