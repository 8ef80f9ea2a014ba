"""Programs that have changed since the run that wrote the checkpoint are refused, and the same ones are not."""

import enum
import functools
import time
import types
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import strads
from strads import models, ps, schmp
from strads.checkpoints import current_session
from strads.checkpoints.digests import InCode, digest
from strads.errors import CheckpointError

RATE = 1.0


class Halving(schmp.Program):
    workers = 2
    factor = 0.5

    def __init__(self, bias=0.0):
        self.bias = bias

    def schedule(self, iteration):
        return schmp.static_rotation(2)

    def update(self, job, rows, block):
        block *= self.factor
        block += self.bias + rows["x"][0, 0]


class Config:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, worker, table):
        _add(worker, table, self.rate)


def _add(worker, table, rate):
    table.inc(np.arange(2), sparse.csr_array(([rate] * 2, ([0, 1], [0, 0])), table.shape))
    worker.clock()


def _add_configured(worker, table, config):
    _add(worker, table, config.rate)


def _add_global(worker, table):
    _add(worker, table, RATE)


def _with_default(value):
    def add(worker, table, *, rate=value):
        _add(worker, table, rate)

    return add


def _engine(program, shard=1.0, x=0.0):
    data = [{"x": np.full((3, 2), x)} for _ in range(2)]
    with schmp.StaticEngine(program, data, [[np.full(2, shard) for _ in range(2)]]) as engine:
        engine.iterate()
        return np.array(engine.shards()).tolist()


def _ps(program, *arguments, first=0.0, columns=1, is_sparse=False):
    table = ps.Table(2, columns, np.float64, sparse=is_sparse)
    if first:
        table.write([0, 1], sparse.csr_array(([first] * 2, ([0, 1], [0, 0])), table.shape))
    ps.run(program, table, *arguments, workers=1)
    return table.read([0, 1]).sum()


def _class_with(value):
    class Scaling(Halving):
        factor = value

    return Scaling


def _global(value):
    globals()["RATE"] = value
    return _ps(_add_global)


def _take(k, X, W):
    W[k % len(W)] += X[k]


def _in_batches(write):
    """A program whose own code writes tables between loops."""
    X, W, counts = strads.dvector.zeros(8), strads.dvector.zeros(3), ps.Table(2, 1, np.float64)
    keyed = strads.dmap({1: 1.0, 2: 2.0})
    for batch in range(3):
        if batch:
            write(batch, X, W, keyed, counts)
        strads.async_for(8, _take, X, W)
        strads.async_for(2, _of_keys, keyed, W)
        if (session := current_session()) is not None:
            session._writer.wait(10.0)  # so that there is a snapshot after the next operator
        ps.run(_add, counts, 1.0, workers=1)
    return W.to_numpy().tolist(), counts.to_numpy().tolist()


def _of_keys(k, M, W):
    W[k] += M[k + 1]


def _double(x, factor):
    return factor * x + 1


WRITES = {
    "rows written": lambda value: lambda batch, X, W, keyed, counts: X.__setitem__(slice(None), value * batch),
    "row written": lambda value: lambda batch, X, W, keyed, counts: W.__setitem__(1, value * batch),
    "another row": lambda value: lambda batch, X, W, keyed, counts: W.__setitem__(int(value), 5.0),
    "no write": lambda value: lambda batch, X, W, *_: W.__setitem__(1, 5.0) if value == 1.0 or batch == 2 else None,
    "transformed": lambda value: lambda batch, X, W, keyed, counts: X.transform(_double, value),
    "value of a key": lambda value: lambda batch, X, W, keyed, counts: keyed.__setitem__(1, value),
    "new key": lambda value: lambda batch, X, W, keyed, counts: keyed.__setitem__(int(value) + 2, 0.0),
    "parameter server": lambda value: lambda batch, X, W, keyed, counts: counts.write([0], [[value]]),
}

PROGRAMS = {
    **{name: (lambda value, make=make: _in_batches(make(value))) for name, make in WRITES.items()},
    "attribute": lambda value: _engine(Halving(value)),
    "class": lambda value: _engine(_class_with(value)()),
    "shards": lambda value: _engine(Halving(), shard=value),
    "data": lambda value: _engine(Halving(), x=value),
    "instance": lambda value: _ps(_add_configured, Config(value)),
    "namespace": lambda value: _ps(_add_configured, types.SimpleNamespace(rate=value)),
    "partial": lambda value: _ps(functools.partial(_add, rate=value)),
    "callable": lambda value: _ps(Config(value)),
    "method": lambda value: _ps(Config(value).__call__),
    "default": lambda value: _ps(_with_default(value)),
    "global": _global,
    "table": lambda value: _ps(_add, 1.0, first=value),
    "sparse table": lambda value: _ps(
        _add, 1.0, first=value, columns=1 << 30, is_sparse=True
    ),  # too many as a dense one
    "closure": lambda value: strads.record(lambda: value),
    "argument": lambda value: strads.record(lambda number: number, value),
}


X, SIGNS = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
TRIPLES = [("a", "near", "b"), ("b", "near", "c"), ("a", "far", "c")]


def _classify(model):
    """Fit to the same two classes under other labels, and wait until a snapshot has them."""
    return lambda value: _settled(model.fit(X, np.where(SIGNS, value, value + 1.0))).classes_.tolist()


def _embed(names):
    def run(value):
        triples, labels = names(value)
        return _settled(models.TransE(2, max_iter=2).fit(triples, **labels)).entities_.tolist()

    return run


def _settled(model):
    if (session := current_session()) is not None:
        session._writer.wait(10.0)
    return model


PROGRAMS |= {
    "labels of a path of ℓ1": _classify(models.LogisticRegression()),
    "labels of a softmax": _classify(models.LogisticRegression(penalty="l2")),
    "labels of classes": _classify(models.MultinomialLogisticRegression()),
    "labels of support vectors": _classify(models.LinearSVC()),
    "names of entities": _embed(lambda value: ([(f"{head}{value}", *rest) for head, *rest in TRIPLES], {})),
    "names of relations": _embed(lambda value: ([(head, f"{how}{value}", tail) for head, how, tail in TRIPLES], {})),
    "number of entities": _embed(lambda value: (np.array([[0, 0, 1], [1, 0, 2]]), {"entities": 3 + int(value)})),
}

ON_NODES = [(2, name) for name in ("attribute", "shards", "data", "table", *WRITES)]


@pytest.mark.parametrize(("size", "name"), [*((1, name) for name in PROGRAMS), *ON_NODES])
def test_a_change_is_noticed(tmp_path, name, size):
    def program(value):
        with strads.init(nodes=size, threads=1, checkpoint_dir=tmp_path):
            return PROGRAMS[name](value)

    found = program(1.0)
    assert program(1.0) == found
    with pytest.raises(CheckpointError, match="is not the one of the run"):
        program(2.0)


def test_content_counts_on_any_number_of_nodes(tmp_path):
    for size in (1, 2, 1):
        with strads.init(nodes=size, threads=1, checkpoint_dir=tmp_path):
            _engine(Halving(2.0), shard=3.0)
            _ps(_add, 1.0, first=2.0)


def test_what_record_looks_at_may_be_skipped(tmp_path):
    ratings = np.c_[np.arange(60) % 7, np.arange(60) % 5], np.arange(60) % 3 + 1.0

    def program():
        W, model, timed = strads.dvector.zeros(4), models.MatrixFactorization(2, max_iter=3), Timed()
        with strads.checkpoint(tmp_path):
            found = strads.async_for(4, _one, W)
            model.fit(*ratings, on_iteration=lambda record: strads.record(lambda: float(model.user_factors_.sum())))
            return strads.record(lambda: (float(W[1]), timed.begin > 0, found.tasks)), strads.record(timed.get, model)

    assert program() == program()


class Timed:
    """Something that differs in each run, and that records only reach by their code."""

    def __init__(self):
        self.begin = time.time()

    def get(self, model):
        return 1.0


def _one(k, W):
    W[k] += 1.0


class Kind(enum.Enum):
    A = 1


@dataclass
class Point:
    x: float


def test_digests():
    generators = [np.random.default_rng(seed) for seed in (0, 0, 1)]
    assert digest(generators[0]) == digest(generators[1]) != digest(generators[2])
    assert digest(Config(1)) != digest(Config(2))
    assert digest(InCode(Config(1))) == digest(InCode(Config(2)))
    assert digest(InCode(Point(1))) != digest(InCode(Point(2)))
    chain = None
    for _ in range(5000):  # deeper than Python's stack
        chain = [chain]
    assert digest(chain) == digest(chain)
    assert digest(Kind.A) == digest(Kind.A) != digest(enum.Enum("Kind", {"A": 2}).A)
