"""Programs that are killed: each trains something and returns a digest of what it has learnt.

python crash_programs.py NAME FOLDER [--backend threads] [--nodes 1]
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import strads
from strads import cli, models, ps, schmp


def digest_of(*arrays: Any) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def ratings(count: int = 30_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return np.c_[rng.integers(0, 600, count), rng.integers(0, 300, count)], rng.normal(3.0, 1.0, count)


def mf() -> str:
    model = models.MatrixFactorization(n_components=16, max_iter=40).fit(*ratings())
    return digest_of(model.user_factors_, model.item_factors_)


def mf_early_stopping() -> str:
    model = models.MatrixFactorization(n_components=16, max_iter=40, early_stopping=True, n_iter_no_change=20)
    model.fit(*ratings())
    return digest_of(model.user_factors_, model.item_factors_, [record["rmse"] for record in model.history_])


def mf_ccd() -> str:
    model = models.MatrixFactorization(n_components=8, max_iter=15, solver="ccd").fit(*ratings())
    return digest_of(model.user_factors_, model.item_factors_)


def lda() -> str:
    counts = np.random.default_rng(0).poisson(0.2, (1500, 800))
    model = models.LatentDirichletAllocation(20, max_iter=20, learn_priors="symmetric").fit(counts)
    return digest_of(model.components_)


def lasso() -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 120))
    y = X[:, :10].sum(1) + rng.normal(size=300)
    first = models.Lasso(0.01, tol=1e-10).fit(X, y)
    scheduled = models.CoordinateDescent(schedule="random", concurrency=4)
    second = models.Lasso(0.05, tol=1e-6, solver=scheduled, max_iter=1000).fit(X, y)
    return digest_of(first.coef_, second.coef_)


def classes(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 60))
    return X, (X @ rng.normal(size=(60, count)) + rng.gumbel(size=(3000, count))).argmax(1)


def mlr() -> str:
    fits = [models.MultinomialLogisticRegression(penalty, C=0.1, tol=1e-9).fit(*classes(8)) for penalty in ("l2", "l1")]
    return digest_of(*(fit.coef_ for fit in fits))


def linear_classifiers() -> str:
    margins = models.LinearSVC(tol=1e-8).fit(*classes(2))
    logistic = models.LogisticRegression("l1", C=0.05, tol=1e-8).fit(*classes(2))
    return digest_of(margins.coef_, logistic.coef_)


def continued() -> str:
    pairs, values = ratings()
    model = models.MatrixFactorization(n_components=8, max_iter=3)
    for number, part in enumerate(np.array_split(np.arange(len(pairs)), 12)):
        batch = pairs[part] + (number, 0), values[part]  # with new users
        model = (
            models.MatrixFactorization(8, max_iter=3).fit(*batch, init=model)
            if number == 6
            else model.partial_fit(*batch)
        )
    return model.digest()


def word2vec() -> str:
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(400)]
    sentences = [[words[number % 400] for number in rng.zipf(1.4, 25)] for _ in range(3000)]
    model = models.Word2Vec(vector_size=32, min_count=1, epochs=12).fit(sentences)
    return digest_of(model.vectors_)


def bpr() -> str:
    likes = sp.random_array((800, 500), density=0.03, format="csr", rng=np.random.default_rng(0))
    model = models.BayesianPersonalizedRanking(16, iterations=20).fit(likes)
    return digest_of(model.user_factors_, model.item_factors_)


def transe() -> str:
    rng = np.random.default_rng(0)
    triples = np.c_[rng.integers(0, 400, 8000), rng.integers(0, 5, 8000), rng.integers(0, 400, 8000)].astype(str)
    model = models.TransE(16, max_iter=20).fit(triples)
    return digest_of(model.entity_vectors_, model.relation_vectors_)


class Rotation(schmp.Program):
    workers = 4

    def __init__(self) -> None:
        self.total, self.rng = 0.0, np.random.default_rng(3)

    def schedule(self, iteration: int) -> schmp.Schedule:
        return schmp.static_rotation(4)

    def update(self, job: schmp.Job, rows: dict[str, np.ndarray], block: np.ndarray) -> float:
        block *= 0.9
        block += rows["x"].sum(axis=0)
        rows["x"] *= 0.99
        return float(block.sum())

    def aggregate(self, results: Any) -> None:
        self.total += sum(result for result in results if result is not None) * self.rng.random()


def rotation() -> str:
    parts = [{"x": np.random.default_rng(number).random((500, 200))} for number in range(4)]
    with schmp.StaticEngine(Rotation(), parts, [[np.ones(200) for _ in range(4)]]) as engine:
        for _ in range(40):
            engine.iterate()
        return digest_of(*engine.shards(), engine.program.total)


class Means(schmp.DynamicProgram):
    workers, parameters = 2, 60

    def __init__(self) -> None:
        self.means = np.zeros(60)

    def schedule(self, instance: int, parameters: Any) -> Any:
        return schmp.RandomSchedule(parameters, 3, seed=5)

    def update(self, parameters: Any, rows: np.ndarray) -> np.ndarray:
        return rows[:, parameters].sum(axis=0)

    def aggregate(self, parameters: Any, result: np.ndarray) -> np.ndarray:
        changes = 0.3 * (result / 8 - self.means[parameters])
        self.means[parameters] += changes
        return changes

    def commit(self, parameters: Any, changes: np.ndarray, rows: np.ndarray) -> None:
        rows[:, parameters] *= 0.999


def dynamic() -> str:
    parts = [np.random.default_rng(number).random((4, 60)) for number in range(2)]
    with schmp.DynamicEngine(Means(), parts, instances=1) as engine:
        for _ in range(30):
            engine.run(10)
        return digest_of(engine.program.means, *engine.data())


def _work(worker: ps.Worker, table: Any, number: int) -> float:
    rows = np.arange(50)
    for _ in range(3):
        values = table.get(rows)
        table.inc(rows, 0.01 * np.round(values) + number + 1)
        worker.clock()
    return float(values.sum())


def parameter_server() -> str:
    table = ps.Table(200, 20, np.float64)
    seen = [ps.run(_work, table, number, workers=2).values for number in range(30)]
    return digest_of(table.to_numpy(), seen)


def _step(k, X, W, rate, loss):
    W[k % len(W)] += rate * (X[k] - W[k % len(W)])
    loss.add(W[k % len(W)])


def _shake(k, W, rng):
    W[k] += 0.01 * rng.normal()


def loops() -> str:
    X, W = strads.dvector.uniform(20_000, seed=1), strads.dvector.zeros(500)
    rng, seen = strads.random(3), []
    for number in range(30):
        loss = strads.accumulator(0.0)
        strads.async_for(range(20_000), _step, X, W, 1.0 / (number + 2), loss)
        strads.async_for(range(500), _shake, W, rng)
        seen.append((loss.value, strads.record(lambda: float(W.to_numpy().sum()))))
        if number % 10 == 3:
            W[number] = 1.0
            seen.append((float(W[number + 1]), float(W[0])))
    return digest_of(W.to_numpy(), seen)


def _average(batch, W):
    for i in range(len(batch)):
        W[0] += 0.01 * (batch[i] - W[0])


def minibatches() -> str:
    X, W = strads.dvector.uniform((20_000, 3), seed=1), strads.dvector.zeros((1, 3), dtype="f8")
    for _ in range(30):
        strads.sync_for(X, _average, W, batch_size=100)
    return digest_of(W.to_numpy())


def train_command(folder: str | None, nodes: int) -> str:
    """The program of `strads train mf`, which calls `strads.init` itself."""
    with tempfile.TemporaryDirectory() as own:
        home = Path(folder or own)
        home.mkdir(exist_ok=True)
        pairs, values = ratings(10_000)
        np.savetxt(
            home / "ratings.csv", np.c_[pairs, values.round(3)], "%g", ",", header="user,item,rating", comments=""
        )
        where = ["--nodes", str(nodes), "--threads", "1", "--quiet", "--out", str(home / "run")]
        training = ["--rank", "8", "--epochs", "25", "--checkpoint", str(home / "state"), "--resume"]
        status = cli.run(["train", "mf", "--data", str(home / "ratings.csv"), *where, *training])
        if status != 0:
            sys.exit(status)
        return models.MatrixFactorization.load(home / "run" / "model.npz").digest()


PROGRAMS: dict[str, Callable[[], str]] = {
    program.__name__: program
    for program in (
        mf, mf_early_stopping, mf_ccd, continued, lda, lasso, mlr, linear_classifiers, word2vec, bpr, transe, rotation,
        dynamic, parameter_server, loops, minibatches,
    )
}  # fmt: skip
COMMANDS: dict[str, Callable[[str | None, int], str]] = {"train_command": train_command}


def run(name: str, folder: str | None, backend: str = "threads", nodes: int = 1) -> str:
    """Run a program, with checkpoints if there is a folder; returns its digest."""
    if name in COMMANDS:
        return COMMANDS[name](folder, nodes)
    threads = 2 if nodes == 1 else 1
    with strads.init(backend, nodes=nodes, threads=threads, checkpoint_dir=folder):
        return PROGRAMS[name]()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("folder")
    parser.add_argument("--backend", default="threads")
    parser.add_argument("--nodes", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps({"digest": run(options.name, options.folder, options.backend, options.nodes)}))
    sys.exit(0)
