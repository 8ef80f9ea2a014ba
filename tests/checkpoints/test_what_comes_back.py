"""What a restarted program finds must be, to the last bit, what it had: attributes, views, maps, memory order."""

import numpy as np
import pytest
from tests.checkpoints.programs import Table
from tests.checkpoints.test_restarts import die, end, plain, restarted

import strads
from strads import models
from strads.checkpoints import Operator, Session, current_session
from strads.checkpoints.re_execution import ReExecution
from strads.checkpoints.snapshots import SnapshotWriter

RNG = np.random.default_rng(0)
X = np.asfortranarray(RNG.normal(size=(60, 20)))
Y = X[:, :3].sum(1) + 0.1 * RNG.normal(size=60)
LABELS = np.digitize(Y, [-1, 1])


@pytest.fixture
def only(monkeypatch):
    """Return a function that lets only snapshots at some positions be written."""

    def choose(*positions):
        def is_busy(writer):
            writer.wait(60.0)
            return len(writer._journal) not in positions

        monkeypatch.setattr(SnapshotWriter, "is_busy", property(is_busy))

    return choose


def _average(k, W, old):
    W[k] = 0.5 * (old[k] + old[(k + 1) % len(old)])


def _tally(k, D, M):
    M[k % 5] += D[k]


def attributes_of(model):
    found = {name: value for name, value in vars(model).items() if name.endswith("_") and name != "history_"}
    samples = [(record["samples"], record.get("gap")) for record in model.history_]
    return {name: np.asarray(value).tolist() for name, value in found.items()} | {"samples": samples}


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("written", [1, 2, 100])
@pytest.mark.parametrize(
    "make",
    [
        lambda: models.LinearSVC(max_iter=20),
        lambda: models.LinearSVC(loss="hinge", C=10.0, max_iter=20),
        lambda: models.MultinomialLogisticRegression(max_iter=9),
        lambda: models.Lasso(0.05, tol=1e-3, solver=models.CoordinateDescent(schedule="random", concurrency=2)),
    ],
)
def test_all_attributes_of_a_model(tmp_path, only, make, written, size):
    def program(kill):
        model = make()
        model.fit(X, Y if isinstance(model, models.Lasso) else LABELS, on_iteration=lambda record: None)
        kill()
        return attributes_of(model)

    only(*([written] if written < 100 else range(written)))
    with strads.init(nodes=size):
        wanted = plain(program)
    assert restarted(program, tmp_path, nodes=size) == wanted


def test_weights_of_samples_are_part_of_the_program(tmp_path):
    def program(weight):
        with strads.checkpoint(tmp_path):
            models.LinearSVC(max_iter=3).fit(X, LABELS, np.full(60, weight))

    program(1.0)
    program(1.0)
    with pytest.raises(strads.CheckpointError, match="LinearSVC"):
        program(2.0)


@pytest.mark.parametrize("make", [lambda W: W, lambda W: W.copy(), lambda W: strads.dvector(W.to_numpy().copy())])
@pytest.mark.parametrize("rows", [7, 3 << 18])
def test_views_see_what_operators_write(tmp_path, only, make, rows):
    def program(kill):
        W, seen = make(strads.dvector.uniform(rows, seed=3)), []
        view = W.to_numpy()
        for number in range(4):
            strads.async_for(7, _average, W, strads.snapshot(W))
            seen.append(view[:7].tolist())
            if number == 2:
                kill()
        return seen

    only(3)
    assert restarted(program, tmp_path) == plain(program)


@pytest.mark.parametrize("rows", [7, 3 << 18])
@pytest.mark.parametrize(("kept", "ending"), [((6,), die), ((), end)])
def test_tables_of_any_size_are_skipped_and_in_the_last_snapshot(tmp_path, only, monkeypatch, rows, kept, ending):
    run_again, repeated, targets = ReExecution._run_again, [], []

    def counted(past, steps, position):
        repeated.extend(steps)
        run_again(past, steps, position)

    def program(kill):
        targets.append(getattr(current_session(), "target", None))
        W = strads.dvector.uniform(rows, seed=3)
        for _ in range(6):
            strads.async_for(7, _average, W, strads.snapshot(W))
        kill()
        return W.to_numpy(copy=True)

    only(*kept)
    monkeypatch.setattr(ReExecution, "_run_again", counted)
    np.testing.assert_array_equal(restarted(program, tmp_path, kill=ending), plain(program))
    assert targets == [0, 6, None]
    assert not repeated


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("kept", [(), (2,), (1, 4), (3, 5)])
def test_rows_that_are_transformed_between_operators(tmp_path, only, kept, size):
    def program(kill):
        D, W, seen = strads.dvector.uniform(50, seed=1), strads.dvector.uniform(7, seed=2), []
        M = strads.dmap(dict.fromkeys(range(5), 0.0))
        for number in range(3):
            strads.async_for(7, _average, W, strads.snapshot(W))
            strads.async_for(50, _tally, D, M)
            W.transform(lambda x: 0.5 * x)
            D.transform(lambda x: 2.0 * x)
            seen.append(float(W[3]) if number == 1 else None)
            if number == 2:
                kill()
        return seen, W.to_list(), M.to_dict()

    only(*kept, 6)
    with strads.init(nodes=size):
        wanted = plain(program)
    assert restarted(program, tmp_path, nodes=size) == wanted


@pytest.mark.parametrize("size", [1, 2])
def test_keys_that_change_between_operators(tmp_path, only, size):
    def program(kill):
        D, M = strads.dvector.uniform(50, seed=1), strads.dmap(dict.fromkeys(range(5), 0.0))
        for number in range(3):
            strads.async_for(50, _tally, D, M)
            M[7 + number] = 1.0
            if number:
                M.pop(6 + number)
        kill()
        return M.to_dict()

    for kept in ((), (1,), (2,)):
        only(*kept, 3)
        with strads.init(nodes=size):
            wanted = plain(program)
        assert restarted(program, tmp_path / str(kept), nodes=size) == wanted


class Records(Table):
    """What an operator makes: records, with any bytes between their fields."""

    is_result = True

    def make(self):
        self.calls = getattr(self, "calls", 0) + 1
        bytes_between = np.random.default_rng(self.calls).bytes(16 * 50)
        self.array = np.frombuffer(bytearray(bytes_between), np.dtype([("a", "i1"), ("b", "i8")], align=True))
        self.array["b"], self.version = 3, self.version + 1


def test_a_result_with_padding_is_not_made_again(tmp_path):
    for calls in (1, 0):
        session = Session(tmp_path)
        records = Records(session, 1)
        session.perform(Operator("make", records.make, lambda: 0, [records]))
        assert records.look()["b"].tolist() == [3] * 50
        assert getattr(records, "calls", 0) == calls
        session.close()
