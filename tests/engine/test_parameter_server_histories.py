"""What each consistency model guarantees, over random histories (decision 15): bounds, no deadlock, no lost update."""

import os
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from parameter_server_simulation import Script, Simulation

from strads.engine.ps.client import Lookup
from strads.schedule.consistency import ASP, BSP, ESSP, SSP, VAP, Consistency, Push


class _EagerBSP(BSP):
    push = Push.CLOCK


class _RestlessSSP(SSP):
    push = Push.UPDATE


class _ClockedESSP(ESSP):
    pushes_between = 0


OWN_MODELS = [_EagerBSP(), _RestlessSSP(1), _ClockedESSP(2)]  # as a researcher may derive them
MODELS = [BSP(), SSP(0), SSP(2), ESSP(0), ESSP(1), ESSP(3), ASP(), VAP(6.0, 0.0), VAP(1.0), *OWN_MODELS]
HISTORIES = int(os.environ.get("STRADS_HISTORIES", "40000"))  # of the slow test, of all models together


class _Checked(Simulation):
    """Checks what workers read against what the model promises."""

    def check_read(self, worker: int, lookup: Lookup, values: NDArray[Any]) -> None:
        clock, rows = lookup.clock, lookup.rows
        seen = values.reshape(len(rows), len(self.scripts), self.clocks)
        made = self.made[rows].reshape(seen.shape)
        assert not np.isnan(seen).any()
        own = seen[:, worker] if self.is_reading_own_writes else None
        if own is not None:
            np.testing.assert_allclose(own, self.own[worker][rows].reshape(seen.shape)[:, worker], atol=1e-9)
        else:
            assert (seen <= made + 1e-9).all()
        required = self.rules.required(clock)
        if required > 0:
            np.testing.assert_array_equal(seen[:, :, :required], made[:, :, :required])  # all updates before it
            ahead = clock + (clock - required)  # nobody may have been further, so no update of later clocks is there
            assert not seen[:, :, ahead + 1 :].any()
        if isinstance(self.rules, BSP):
            others = np.delete(seen, worker, axis=1) if self.is_reading_own_writes else seen
            assert not others[:, :, clock:].any()

    def check_bound(self, bound: float) -> None:
        """No cached row differs from all that has been made by more than the bound."""
        for client in self.clients:
            rows = np.arange(len(self.made))
            slots, _ = client._cache.find(rows, 0, np.zeros(len(rows), np.bool_), np.full(len(rows), -1))
            for row, slot in zip(rows, slots, strict=True):
                if slot >= 0:
                    assert np.abs(self.made[row] - client._store.values[slot]).max() <= bound + 1e-9

    is_reading_own_writes = False


class _Bounded(_Checked):
    """Looks at the bound after every event."""

    def _send(self) -> None:
        super()._send()
        if isinstance(self.rules, VAP) and self.rules.decay == 0:
            self.check_bound(self.rules.v0)


class _ReadMyWrites(_Checked):
    is_reading_own_writes = True


def _script(generator: random.Random, rows: int, steps: int) -> Script:
    script = []
    for _ in range(generator.randrange(steps + 1)):
        kind = generator.choice(("get", "inc", "clock"))
        script.append((kind, np.array(generator.choices(range(rows), k=generator.randrange(1, 4)))))
    return script


def _history(seed: int, model: Consistency, kind: type[_Checked], steps: int = 10, sparse: bool = False) -> _Checked:
    generator = random.Random(seed)
    nodes, rows = generator.randrange(1, 4), generator.randrange(1, 5)
    scripts = [_script(generator, rows, steps) for _ in range(generator.randrange(1, 5))]
    slots = generator.choice((None, 0, 1, 2))
    history = kind(scripts, nodes, rows, model, generator.randrange, slots, kind.is_reading_own_writes, sparse)
    history.run()
    np.testing.assert_allclose(history.table(), history.made, atol=1e-9)  # no update is lost
    expected = np.zeros_like(history.made)
    for worker, script in enumerate(scripts):
        clock = 0
        for step, chosen in script:
            if step == "inc":
                np.add.at(expected, (chosen, worker * history.clocks + clock), 1)
            clock += step == "clock"
    np.testing.assert_allclose(history.made, expected, atol=1e-9)
    return history


@pytest.mark.parametrize("model", MODELS, ids=repr)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_model_keeps_its_promise_and_ends_without_losing_an_update(model, seed):
    _history(seed, model, _Bounded)


@pytest.mark.parametrize("model", [BSP(), SSP(1), ESSP(1), ASP()], ids=repr)
@pytest.mark.parametrize("kind", [_Checked, _ReadMyWrites])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_sparse_rows_are_as_good(kind, model, seed):
    _history(seed, model, kind, sparse=True)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_worker_can_read_its_own_writes(model, seed):
    _history(seed, model, _ReadMyWrites)


def test_under_bsp_what_is_read_does_not_depend_on_timing():
    for script_seed in range(20):
        generator = random.Random(script_seed)
        scripts = [_script(generator, 4, 12) for _ in range(3)]
        found = []
        for seed in range(4):
            history = _Checked(scripts, 1 + seed % 3, 4, BSP(), random.Random(seed).randrange)
            history.run()
            reads = sorted((read[:2] for read in history.reads), key=repr)
            values = {worker: [r[3].tolist() for r in history.reads if r[0] == worker] for worker in range(3)}
            found.append((reads, values, history.table().tolist()))
        assert all(other == found[0] for other in found)


def test_a_model_that_answers_too_early_is_found_out():
    class Liar(SSP):
        """Says that it is SSP(0), and is SSP(2)."""

    def search(model: Consistency, promised: Consistency) -> None:
        for seed in range(300):
            kind = type("Judged", (_Checked,), {})
            generator = random.Random(seed)
            scripts = [_script(generator, 2, 12) for _ in range(3)]
            history = kind(scripts, 2, 2, model, generator.randrange)
            history.rules = promised
            history.run()

    search(SSP(1), SSP(1))
    with pytest.raises(AssertionError):
        search(Liar(2), SSP(0))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_many_short_histories(model):
    for seed in range(HISTORIES // len(MODELS)):
        _history(seed, model, _Checked, steps=5)
