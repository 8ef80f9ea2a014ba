"""Ctrl-C and callbacks between the iterations of training."""

import signal

import pytest

from strads.models._stopping import Stopping


@pytest.mark.parametrize("looks", [0, 1])
def test_ctrl_c_waits_until_the_model_is_whole(looks):
    done = []

    def train():
        with Stopping() as stopping:
            signal.raise_signal(signal.SIGINT)
            done.append("iteration")
            done.extend(stopping.look({}, None) for _ in range(looks))
            assert stopping.is_wanted == (looks > 0)
            done.append("model")

    with pytest.raises(KeyboardInterrupt):
        train()
    assert done == ["iteration", *[True] * looks, "model"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_only_true_stops():
    with Stopping() as stopping:
        assert not stopping.look({}, lambda record: None)
        assert not stopping.look({}, lambda record: 1)
        assert stopping.look({"iteration": 3}, lambda record: record["iteration"] == 3)


def test_errors_of_a_callback_come_when_the_model_is_whole():
    done = []

    def train():
        with Stopping() as stopping:
            done.append(stopping.look({}, lambda record: 1 / 0))

    with pytest.raises(ZeroDivisionError):
        train()
    assert done == [True]
