"""Random programs of everything public, killed anywhere and executed again, with any subset of snapshots.

python -m tests.checkpoints.killed_programs FIRST COUNT
"""

import copy
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import strads
from strads import models, ps
from strads.checkpoints import current_session
from strads.checkpoints.snapshots import SnapshotWriter

RNG = np.random.default_rng(0)
X = np.asfortranarray(RNG.normal(size=(60, 20)))
Y = X[:, :3].sum(1) + 0.1 * RNG.normal(size=60)
LABELS = np.digitize(Y, [-1, 1])
RATINGS = np.c_[RNG.integers(0, 20, 150), RNG.integers(0, 12, 150)], RNG.normal(3, 1, 150)
SENTENCES = [[f"w{number % 20}" for number in row] for row in RNG.zipf(1.4, (30, 8))]
SHOTGUN = models.CoordinateDescent(schedule="random", concurrency=2)
MAKERS: list[tuple[Callable[[], Any], tuple[Any, ...], str]] = [
    (lambda: models.MatrixFactorization(n_components=3, max_iter=3), RATINGS, "user_factors_"),
    (lambda: models.Word2Vec(vector_size=4, min_count=1, epochs=2), (SENTENCES,), "vectors_"),
    (lambda: models.Lasso(0.05, tol=1e-3), (X, Y), "coef_"),
    (lambda: models.Lasso(0.05, tol=1e-3, solver=SHOTGUN), (X, Y), "coef_"),
    (lambda: models.LinearSVC(max_iter=20), (X, LABELS), "coef_"),
    (lambda: models.MultinomialLogisticRegression(max_iter=9), (X, LABELS), "coef_"),
]


def _step(k, D, W, rate):
    W[k % len(W)] += rate[0] * (D[k] - W[k % len(W)])


def _shake(k, W, rng, loss):
    W[k] += 0.01 * rng.normal()
    loss.add(W[k])


def _smooth(k, W, old):
    W[k] = 0.5 * (old[k] + old[(k + 1) % len(old)])


def _tally(k, D, M):
    M[k % 5] += D[k]


def _average(batch, V):
    for i in range(len(batch)):
        V[0] += 0.01 * (batch[i] - V[0])


def _work(worker, table, number):
    table.inc(np.arange(6), 0.01 * np.round(table.get(np.arange(6))) + number)
    worker.clock()
    return float(table.get(np.arange(6)).sum())


class Killed(BaseException):
    """The program ends here."""


class Program:
    """A program that is the same for each seed; `here` is called between its steps, and in callbacks."""

    def __init__(self, seed: int, here: Callable[[], None]):
        self.random, self.here, self.seen = random.Random(seed), here, []
        self.D, self.W = strads.dvector.uniform(50, seed=1), strads.dvector.zeros(7)
        self.V, self.D3 = strads.dvector.zeros((1, 3), dtype="f8"), strads.dvector.uniform((40, 3), seed=2)
        self.M, self.table = strads.dmap(dict.fromkeys(range(5), 0.0)), ps.Table(6, 1, np.float64)
        self.rng, self.loss, self.rate = strads.random(3), strads.accumulator(0.0), np.array([0.5], "f4")
        self.model: Any = None
        self.view = np.zeros(1)

    def run(self, length: int) -> list[Any]:
        """Run it; returns all that it has seen."""
        for _ in range(length):
            step = self.random.choice([self.loop, self.loop, self.tables, self.tables, self.fit, self.models])
            step(self.random)
            self.here()
        self.seen += [self.W.to_list(), self.V.to_list(), self.M.to_dict(), self.loss.value, self.view.tolist()]
        self.look_at_model()
        return self.seen

    def loop(self, rng: random.Random) -> None:
        """Run an operator."""
        kind = rng.randrange(7)
        if kind == 0:
            strads.async_for(50, _step, self.D, self.W, self.rate)
        elif kind == 1:
            strads.async_for(7, _shake, self.W, self.rng, self.loss)
        elif kind == 2:
            strads.async_for(7, _smooth, self.W, strads.snapshot(self.W))
        elif kind == 3:
            strads.async_for(50, _tally, self.D, self.M)
        elif kind == 4:
            strads.sync_for(self.D3, _average, self.V, batch_size=10)
        elif kind == 5:
            self.seen.append(ps.run(_work, self.table, rng.randrange(3), workers=2).values)
        else:
            self.seen.append(strads.record(lambda: float(self.W.to_numpy().sum())))

    def tables(self, rng: random.Random) -> None:
        """Read or write tables."""
        actions: list[Callable[[], Any]] = [
            lambda: float(self.W[3]),
            lambda: self.W.map(lambda x: 2 * x).to_list(),
            lambda: self.M.to_dict(),
            lambda: self.view.tolist(),
            lambda: self.table.to_numpy().tolist(),
            lambda: self.W.transform(lambda x: 0.5 * x),
            lambda: self.D.transform(lambda x: 0.5 * x),
            lambda: self.table.write([1], np.ones((1, 1))),
            lambda: self.M.pop(rng.randrange(5, 9), None),
            lambda: self.loss.value,
            lambda: self.loss.reset(),
        ]
        kind, value = rng.randrange(len(actions) + 6), rng.random()
        if kind == 0:
            self.W[2] = value
        elif kind == 1:
            self.M[rng.randrange(9)] = value
        elif kind == 2:
            self.rate *= np.float32(0.7)
        elif kind == 3:
            self.W = rng.choice([self.W.copy, lambda: copy.deepcopy(self.W), lambda: strads.dvector.zeros(7)])()
        elif kind == 4:
            is_local = strads.cluster.current().is_local  # otherwise tables lie on the nodes: there are no views
            self.view = self.W.to_numpy() if is_local else self.view
        elif kind == 5:
            self.V[0] = [value, 1.0, 2.0]
        else:
            self.seen.append(actions[kind - 6]())

    def fit(self, rng: random.Random) -> None:
        """Fit a model; a callback looks at it, or ends training."""
        make, self.data, self.attribute = rng.choice(MAKERS)
        if self.model is None or rng.random() < 0.5 or type(self.model) is not type(make()):
            self.model = make()
        stop, looks = rng.randrange(1, 6), rng.random() < 0.5

        def on_iteration(record: dict[str, Any]) -> bool:
            self.here()
            if looks and record["iteration"] == 1:
                self.model._check_fitted()
                self.look_at_model()
            return bool(record["iteration"] == stop)

        self.model.fit(*self.data, on_iteration=rng.choice([None, on_iteration]))

    def models(self, rng: random.Random) -> None:
        """Look at a model, change it, let it go on learning, or copy it."""
        kind = rng.randrange(5)
        if self.model is None:
            return
        if kind == 0:
            self.look_at_model()
        elif kind == 1 and self.attribute in vars(self.model):
            learnt = getattr(self.model, self.attribute)
            setattr(self.model, self.attribute, learnt * learnt.dtype.type(0.5))
        elif kind == 2 and hasattr(self.model, "partial_fit"):
            self.model.partial_fit(*self.data)
        elif kind == 3:
            self.model = copy.deepcopy(self.model)
        else:
            self.model = None

    def look_at_model(self) -> None:
        """See all that a model has learnt."""
        if self.model is not None:
            names = sorted(name for name in vars(self.model) if name.endswith("_") and name != "history_")
            self.seen += [(name, np.asarray(getattr(self.model, name)).tolist()) for name in names]
            self.seen += [record["samples"] for record in self.model.history_]


def is_the_same(seed: int, *, length: int = 12) -> bool:
    """Whether a program that is killed up to three times ends as one that is not."""
    rng, places = random.Random(~seed), iter(range(10_000))
    nodes, every = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 4])
    with strads.init(nodes=nodes, threads=1):
        expected = Program(seed, lambda: next(places) and None).run(length)
    kills = [rng.randrange(next(places)) for _ in range(rng.randrange(1, 4))]
    with tempfile.TemporaryDirectory() as folder:
        for kill in [*kills, None]:
            share, place = rng.choice([0.0, 0.2, 0.5, 1.0]), iter(range(10_000))

            def here(kill: int | None = kill, place: Any = place) -> None:
                session = current_session()
                if next(place) == kill and session is not None:
                    session._writer.wait(60.0)
                    session._is_broken = True  # nothing is written afterwards
                    raise Killed

            def is_busy(writer: SnapshotWriter, share: float = share) -> bool:
                writer.wait(60.0)
                return rng.random() >= share

            with patch.object(SnapshotWriter, "is_busy", property(is_busy)):
                try:
                    with strads.init(nodes=nodes, threads=1, checkpoint_dir=folder, checkpoint_every=every):
                        found = Program(seed, here).run(length)
                except Killed:
                    continue
    return found == expected


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(first, first + count):
        if not is_the_same(number):
            print(f"program {number} ends otherwise when it is killed", flush=True)
