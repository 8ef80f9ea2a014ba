"""What the Dynamic Engine says when a program or a schedule goes wrong, and that it stops on all nodes."""

import signal
import threading
import time

import numpy as np
import pytest
from programs import DenseLasso, LargestChange, lasso

import strads
from strads import schmp


class Failing(DenseLasso):
    """Fails where it is told to, on the worker of the last rows."""

    where = "update"

    def update(self, parameters, data):
        if self.where == "update" and len(data[1]) == 17:
            raise ValueError("no update here")
        return super().update(parameters, data)

    def aggregate(self, parameters, result):
        if self.where == "aggregate":
            raise ValueError("no aggregate here")
        return super().aggregate(parameters, result)

    def commit(self, parameters, changes, data):
        if self.where == "commit" and len(data[1]) == 17:
            raise ValueError("no commit here")
        super().commit(parameters, changes, data)

    def schedule(self, instance, parameters):
        return FailingSchedule(parameters, instance if self.where == "propose" else -1)


class FailingSchedule(LargestChange):
    def __init__(self, parameters, instance):
        super().__init__(parameters, 5, 0)
        self.instance = instance

    def propose(self):
        if self.instance == 1:
            raise ValueError("no propose here")
        return super().propose()


@pytest.mark.nodes
@pytest.mark.parametrize("where", ["update", "aggregate", "commit", "propose"])
def test_an_error_ends_all_nodes_and_the_engine(runtime, where):
    program, data, *_ = lasso(workers=4, samples=65, kind=Failing)  # 16, 16, 16 and 17 rows
    program.where = where
    with schmp.DynamicEngine(program, data, instances=2) as engine:
        assert engine.is_intact
        with pytest.raises(ValueError, match=f"no {where} here"):
            engine.run(10)
        assert not engine.is_intact
        with pytest.raises(strads.StradsError, match=r"a run failed \(ValueError\), so the model is incomplete"):
            engine.run(10)
    program, data, *_ = lasso(workers=4)
    with schmp.DynamicEngine(program, data) as engine:  # the nodes are still there
        assert engine.run(10).rounds == 10


class Proposing(schmp.DynamicSchedule):
    """Proposes the same again and again."""

    def __init__(self, parameters, priorities):
        self.plan = parameters, priorities

    def propose(self):
        return self.plan

    def feedback(self, parameters, changes):
        pass


class Wrong(DenseLasso):
    def schedule(self, instance, parameters):
        return Proposing(*(self.first if instance == 0 else self.second))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (([30], [1.0]), r"instance 1 \(Proposing\) returned parameter 30 again before `feedback`"),
        (([30, 24], [1.0, 1.0]), r"returned parameter 24, but the instance has 25 … 49"),
        (([50], [1.0]), r"returned parameter 50, but the instance has 25 … 49"),
        (([-1], [1.0]), r"returned parameter -1, but"),
        (([30, 31, 30], [1.0, 1.0, 1.0]), "returned a parameter twice in one plan"),
        (([30, 31], [1.0]), r"parameters of shape \(2,\) with priorities of shape \(1,\)"),
    ],
)
@pytest.mark.parametrize("size", [1, 2])
def test_impossible_plans_are_refused(plan, message, size):
    program, data, *_ = lasso(kind=Wrong)
    program.first, program.second = ([], []), plan
    with (
        strads.init("threads", nodes=size, threads=1),
        schmp.DynamicEngine(program, data, instances=2) as engine,
        pytest.raises(strads.PlanError, match=message),
    ):
        engine.run(10)


class Shapeless(DenseLasso):
    def aggregate(self, parameters, result):
        return super().aggregate(parameters, result)[1:]


def test_changes_that_are_not_one_for_each_parameter_are_refused():
    program, data, *_ = lasso(kind=Shapeless)
    with schmp.DynamicEngine(program, data) as engine, pytest.raises(strads.PlanError, match=r"shape \(2,\) for 3 par"):
        engine.run(10)


def test_the_given_program_is_left_alone():
    program, data, *_ = lasso()
    with schmp.DynamicEngine(program, data) as engine:
        engine.run(10)
        assert engine.program.coef.any()
    assert not program.coef.any()
    with pytest.raises(strads.StradsError, match="closed"):
        engine.run(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": [1, 2]}, "data for 2 workers were given, but the program has 4"),
        ({"instances": 0}, "instances=0"),
        ({"instances": 51}, "51 instances are more than the 50 parameters"),
        ({"pipeline_depth": 0}, "pipeline_depth=0"),
        ({"pipeline_depth": 1.5}, "pipeline_depth=1.5"),
        ({"subplans": 0}, "subplans=0"),
        ({"threads": 0}, "threads=0"),
        ({"program": "lasso"}, "program is a str: derive it from strads.schmp.DynamicProgram"),
    ],
)
def test_wrong_arguments(options, message):
    program, data, *_ = lasso()
    with pytest.raises(strads.ArgumentError, match=message):
        schmp.DynamicEngine(**({"program": program, "data": data} | options))


@pytest.mark.parametrize(
    ("attribute", "value"), [("workers", 0), ("parameters", 0), ("grain", 0), ("parameters", None)]
)
def test_wrong_attributes(attribute, value):
    program, *_ = lasso()
    setattr(program, attribute, value)
    with pytest.raises(strads.ArgumentError, match=f"{attribute}={value}"):
        schmp.DynamicEngine(program)


def test_rounds_below_one():
    program, data, *_ = lasso()
    with schmp.DynamicEngine(program, data) as engine, pytest.raises(strads.ArgumentError, match="rounds=0"):
        engine.run(0)


class Slow(DenseLasso):
    def update(self, parameters, data):
        time.sleep(2e-3)
        return super().update(parameters, data)


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


class Stuck(DenseLasso):
    def update(self, parameters, data):
        if len(data[1]) == 17:
            time.sleep(1.5)
        return super().update(parameters, data)


def test_a_node_that_is_too_slow_is_named():
    program, data, *_ = lasso(workers=4, samples=65, kind=Stuck)
    with (
        strads.init("threads", nodes=4, threads=1, timeout=0.4),
        schmp.DynamicEngine(program, data) as engine,
        pytest.raises(strads.NodeFailure, match=r"node 0 .* waited 0.4 s for a result or a plan from node 3") as caught,
    ):
        engine.run(10)
    assert caught.value.rank == 3


@pytest.mark.parametrize("size", [1, 2])
def test_interrupted_runs(size):
    """One Ctrl-C lets the run end, so that the model stays whole; two break it off."""
    program, data, X, y, _ = lasso(kind=Slow)
    with strads.init("threads", nodes=size, threads=1), schmp.DynamicEngine(program, data) as engine:
        timer = threading.Timer(0.03, interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            engine.run(20)
        timer.join()
        assert engine.is_intact
        residual = np.concatenate([residual for _, residual in engine.data()])
        np.testing.assert_allclose(residual, y - X @ engine.program.coef, atol=1e-10)

        def twice():
            for _ in range(2):
                time.sleep(0.05)
                interrupt()

        begun = time.monotonic()
        thread = threading.Thread(target=twice)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            engine.run(100_000)
        thread.join()
        assert time.monotonic() - begun < 10
        assert not engine.is_intact
