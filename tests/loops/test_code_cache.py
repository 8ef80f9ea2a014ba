"""Compiled bodies on disk: loaded by later processes if, and only if, nothing that decides them has changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Runs a loop, and prints its result and the names of the functions with the body in them that had to be compiled.
PROGRAM = """
import json
import numpy as np
import strads
from numba.core import event

with event.install_recorder("numba:compile") as compiled:
    {setting}
    def body(k, W, H, scale):
        {body}

    W, H = strads.dvector.full(40, 1.0), strads.dvector.full((40, 2), 1.0, dtype={dtype})
    strads.async_for(range(40), body, W, H, {scale}, strategy="{strategy}")
    names = [e.data["dispatcher"].py_func.__name__ for _, e in compiled.buffer if e.is_start]
    print(json.dumps([W.to_numpy().tolist(), H.to_numpy().tolist(), [n for n in names if n in ("worker", "record")]]))
"""
PLAIN = {
    "setting": "RATE, TABLE = 2.0, np.arange(3.0)\n    def helper(x): return x + 1",
    "body": "W[k] += scale * RATE + helper(TABLE[1]); H[k, 0] += 1",
    "dtype": "np.float64",
    "scale": "1.5",
    "strategy": "auto",
}


class Machine:
    """Where programs run one after the other, each in a process of its own."""

    def __init__(self, home: Path):
        self.bodies = home / "strads" / "strads-bodies"
        kernels = os.environ.get("NUMBA_CACHE_DIR")
        self._environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
        self._environment["XDG_CACHE_HOME"] = str(home)
        assert kernels is None  # else it would be the place of bodies too

    def run(self, **changes: str) -> tuple[list[float], list[list[float]], list[str]]:
        """Run the program with some of its parts changed: what W and H hold then, and what was compiled for it."""
        source = PROGRAM.format(**{**PLAIN, **changes})
        done = subprocess.run(
            [sys.executable, "-c", source], env=self._environment, capture_output=True, text=True, check=True
        )
        w, h, compiled = json.loads(done.stdout)
        return w, h, compiled


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine on which the program has run."""
    machine = Machine(tmp_path_factory.mktemp("used"))
    assert machine.run()[2] == ["record", "worker"]
    return machine


def test_a_known_body_is_not_compiled_again(used: Machine) -> None:
    w, h, compiled = used.run()
    assert (w, compiled) == ([6.0] * 40, [])
    assert h == [[2.0, 1.0]] * 40


@pytest.mark.parametrize(
    ("part", "changed", "expected"),
    [
        ("body", "W[k] += scale * RATE - helper(TABLE[1]); H[k, 0] += 1", 2.0),
        ("setting", PLAIN["setting"].replace("2.0", "4.0"), 9.0),  # a global number
        ("setting", PLAIN["setting"].replace("np.arange(3.0)", "np.arange(3.0) + 1"), 7.0),  # a global array
        ("setting", PLAIN["setting"].replace("x + 1", "x + 2"), 7.0),  # a helper
        ("setting", PLAIN["setting"].replace("x + 1", "x + DEEP") + "\n    DEEP = 3", 8.0),  # a helper's global
        ("dtype", "np.float32", 6.0),
        ("scale", "np.int64(2)", 7.0),
        (
            "setting",
            PLAIN["setting"].replace("np.arange(3.0)", "np.repeat(np.arange(3.0), 2)[::2]"),
            6.0,
        ),  # another layout
    ],
)
def test_what_decides_the_code_is_in_the_key(used: Machine, part: str, changed: str, expected: float) -> None:
    w, _, compiled = used.run(**{part: changed})
    assert w == [expected] * 40
    assert compiled == ["record", "worker"]


def test_another_scalar_of_the_same_type_needs_no_other_code(used: Machine) -> None:
    w, _, compiled = used.run(scale="2.5")
    assert (w, compiled) == ([8.0] * 40, [])


def test_another_strategy_has_code_of_its_own(machine: Machine) -> None:
    first = machine.run(body="W[k % 7] += scale; H[k, 0] += W[3]")
    locked = machine.run(body="W[k % 7] += scale; H[k, 0] += W[3]", strategy="locked")
    assert locked[0] == first[0]
    assert "worker" in locked[2]


def test_a_body_that_needs_real_rows_is_known_too(machine: Machine) -> None:
    body = "H[k] = np.sort(H[k] * W[k])"
    first = machine.run(body=body)
    assert machine.run(body=body) == (*first[:2], [])


def test_damaged_files_are_compiled_anew(machine: Machine) -> None:
    first = machine.run()
    for path in machine.bodies.iterdir():
        path.write_bytes(path.read_bytes()[:40])
    assert machine.run() == first
    assert machine.run()[2] == []


def test_a_body_with_what_has_no_name_is_not_kept(machine: Machine) -> None:
    setting = "BOX = __import__('collections').namedtuple('B', 'a')"
    body = "W[k] += BOX(scale).a"
    assert machine.run(setting=setting, body=body)[0] == [2.5] * 40
    assert machine.run(setting=setting, body=body)[2] == ["record", "worker"]


@pytest.mark.parametrize("smaller", ["x - 2", "int(W[k]) * 0 + x - 2"])
def test_functions_that_call_themselves(machine: Machine, smaller: str) -> None:
    setting = f"""def fall(W, k, x):
        if x > 0:
            fall(W, k, {smaller})
        W[k] += 1"""
    body = "fall(W, k, k % 9)"
    first = machine.run(setting=setting, body=body, strategy="sequential")
    assert first[0][8] == 6.0
    assert machine.run(setting=setting, body=body, strategy="sequential")[:2] == first[:2]


def test_named_tuples_are_known_by_their_fields(machine: Machine) -> None:
    for fields, expected in [("x y", 2.0), ("y x", 3.0)]:
        setting, scale = f"P = __import__('collections').namedtuple('P', '{fields}')", "P(1.0, 2.0)"
        assert machine.run(setting=setting, scale=scale, body="W[k] += scale.x")[0] == [expected] * 40


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="has no owners of files")
def test_only_a_folder_that_nobody_else_can_write_is_used(machine: Machine) -> None:
    machine.bodies.mkdir(parents=True)
    machine.bodies.chmod(0o777)
    first = machine.run()
    assert machine.run() == first
    assert not list(machine.bodies.iterdir())


def test_what_has_not_been_used_for_longest_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from strads.bodies import code_cache

    monkeypatch.setattr(code_cache, "_MOST_FILES", 8)
    for age in range(9):
        path = tmp_path / f"{age}.nbc"
        path.touch()
        os.utime(path, (1000 - age, 1000 - age))
    code_cache._make_room(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{age}.nbc" for age in range(7)]


def test_numbers_of_functions_differ_between_processes() -> None:
    """Else code of two processes, loaded by a third one, could define a symbol twice."""
    source = (
        "import strads; from numba.core.bytecode import FunctionIdentity;"
        "print(FunctionIdentity.from_function(lambda: 0).unique_id)"
    )
    found = {subprocess.run([sys.executable, "-c", source], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(found) == 2
