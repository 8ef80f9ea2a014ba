"""A few fixed programs of the fuzzer, and tests of the fuzzer itself."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuzz import runner
from fuzz.arguments import Arg
from fuzz.driver import Tally
from fuzz.grammar import generate
from fuzz.reproducer import script
from fuzz.runner import EQUAL, EXPECTED, FAILURES, GRAMMAR, MISSED, REFUSED, WRONG
from fuzz.scenario import Case, Step
from fuzz.shrink import shrink
from fuzz.worker import CRASH, HANG, Worker

# Bodies, and of each how many scenarios; 1015 is of minibatches, whose plans take longest to compile.
PROGRAMS = [(1000, 25), (1001, 30), (1015, 6), (1002, 30)]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.stop()


@pytest.mark.few(1)
@pytest.mark.parametrize(("body", "scenarios"), PROGRAMS)
def test_loops_agree_with_plain_python(body: int, scenarios: int, worker: Worker):
    tally = Tally()
    for number, outcomes in worker.run_body(body, scenarios):
        tally.add(f"{body}:{number}", outcomes)
        assert outcomes[-1].kind not in (*FAILURES, CRASH, HANG, GRAMMAR), (
            f"python tests/fuzz --only {body}:{number}: {outcomes[-1].kind}: {outcomes[-1].detail}"
        )


# -- the fuzzer itself ---------------------------------------------------------------------------------------

SOURCE = """import numpy as np

def double(x):
    return x * 2

def body(k, p, W, V, y):
    a = 3
    V[p[k]] += y
    for f in range(2):
        if a > k:
            W[p[k], f] += double(k)
    b = a + 1
"""


def case() -> Case:
    args = [Arg("p", "vec", "i8", points="W"), Arg("W", "mat", "i8", "written"), Arg("V", "vec", "f4", "written")]
    values = {"p": np.array([1, 0, 2, 1]), "W": np.ones((3, 2), "i8"), "V": np.zeros(3, "f4"), "y": 0.5}
    steps = [Step("call", value=4), Step("set", "p", 1, 2), Step("call", value=range(4))]
    return Case(SOURCE, [*args, Arg("y", "float")], values, steps, 1, 2, obeys=True)


def test_a_right_result_is_accepted():
    assert [o.kind for o in runner.run(case())] == [EQUAL, EQUAL]


def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A strads that forgets an update of a row, as if two threads had written it at once."""
    call = runner.Parallel.call

    def forgetful(self: runner.Parallel, indices: Any) -> Any:
        stats = call(self, indices)
        if stats.order.size > 1:
            self.tables["W"][0, 1] += 1
        return stats

    monkeypatch.setattr(runner.Parallel, "call", forgetful)


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch):
    _planted(monkeypatch)
    assert [o.kind for o in runner.run(case())] == [WRONG]


def test_index_errors_are_expected_of_both_sides():
    bad = case()
    bad.values["p"] = np.array([1, 0, 3, 1])
    assert [o.kind for o in runner.run(bad)] == [EXPECTED, EXPECTED]


def test_an_error_that_is_not_raised_is_noticed(monkeypatch: pytest.MonkeyPatch):
    good = case()
    monkeypatch.setattr(runner.Plain, "run", lambda self, *arguments, **options: [][0])
    assert [o.kind for o in runner.run(good)] == [MISSED]


def test_refusing_is_allowed_only_to_those_who_break_the_rule():
    breaking = case()
    breaking.source = SOURCE.replace("V[p[k]]", "V[int(V[k % 3]) % 3]")
    plain = runner.Plain(breaking, runner.module_of(breaking.source))
    assert runner.breaks_the_rule(plain, [0, 1, 2])
    plain = runner.Plain(case(), runner.module_of(SOURCE))
    assert not runner.breaks_the_rule(plain, [0, 1, 2])
    assert REFUSED not in FAILURES


@pytest.mark.slow
def test_a_failure_is_made_small(monkeypatch: pytest.MonkeyPatch):
    _planted(monkeypatch)
    small, outcome = shrink(case(), runner.run, seconds=60)
    assert outcome.kind == WRONG
    assert len(small.steps) == 1
    assert [a.name for a in small.args] == ["W"]
    assert len(small.source.splitlines()) <= 5
    text = script(small, outcome, "0:0")
    assert "wrong numbers" in text
    compile(text, "reproducer", "exec")


def test_crashes_and_hangs_are_caught_and_the_worker_goes_on():
    worker = Worker(timeout=30)
    crash = "import os\ndef body(k, W):\n    W[k] += 1\nos.kill(os.getpid(), 11)\n"
    args, values = [Arg("W", "vec", "i8", "written")], {"W": np.zeros(4, "i8")}
    planted = Case(crash, args, values, [Step("call", value=2)])
    assert worker.run(planted)[-1].kind == CRASH
    assert worker.run(replace(planted, source=crash.split("\nos.kill")[0] + "\n"))[-1].kind == EQUAL
    worker.timeout = 1
    assert worker.run(replace(planted, source="import time\ntime.sleep(60)\n"))[-1].kind == HANG
    worker.stop()


def test_programs_depend_on_their_seed_alone():
    assert generate(7) == generate(7)
