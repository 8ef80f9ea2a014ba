"""How often a model is saved while it is trained."""

from pathlib import Path

import pytest

from strads.cli import snapshots
from strads.cli.snapshots import Snapshots


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Model:
    n_iter_ = 0

    def __init__(self, clock: Clock, seconds: float):
        self.clock, self.seconds, self.saved = clock, seconds, []

    def save(self, path: Path) -> None:
        self.clock.now += self.seconds
        self.saved.append(self.n_iter_)


@pytest.mark.parametrize(("cost", "epoch_seconds"), [(0.001, 0.1), (0.5, 0.1), (3.0, 7.0)])
def test_snapshots_take_a_small_share_of_the_time(monkeypatch, cost, epoch_seconds):
    clock = Clock()
    monkeypatch.setattr(snapshots, "time", clock)
    model = Model(clock, cost)
    taken = Snapshots(model, Path("model.npz"))
    assert taken.epoch is None
    for model.n_iter_ in range(1, 10_001):
        clock.now += epoch_seconds
        taken.take_if_due()
    assert taken.epoch == model.saved[-1]
    assert len(model.saved) * cost <= 0.021 * (clock.now - 100.0)
    assert len(model.saved) >= 2
    assert (model.saved[0] - 1) * epoch_seconds <= 2.0
