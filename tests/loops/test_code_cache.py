"""Compiled bodies on disk: loaded by later processes if, and only if, nothing that decides them has changed."""

import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import strads

# Prints the number of a function, runs loops, and prints the results of each and the names of the functions with the
# body in them that it compiled.
PROGRAM = """
import json
import sys
import numpy as np
import strads
from numba.core import event
from numba.core.bytecode import FunctionIdentity

print(FunctionIdentity.from_function(lambda: 0).unique_id)
for source in json.load(sys.stdin):
    with event.install_recorder("numba:compile") as compiled:
        found = {"__name__": "__main__", "np": np, "strads": strads}
        exec(source, found)
    names = [e.data["dispatcher"].py_func.__name__ for _, e in compiled.buffer if e.is_start]
    print(json.dumps([found["w"], found["h"], [n for n in names if n in ("worker", "record")]]))
"""
LOOP = """
{setting}
def body(k, W, H, scale):
    {body}

W, H = strads.dvector.full(40, 1.0), strads.dvector.full((40, 2), 1.0, dtype={dtype})
strads.async_for(range(40), body, W, H, {scale}, strategy="{strategy}")
w, h = W.to_numpy().tolist(), H.to_numpy().tolist()
"""
PLAIN = {
    "setting": "RATE, TABLE = 2.0, np.arange(3.0)\ndef helper(x): return x + 1",
    "body": "W[k] += scale * RATE + helper(TABLE[1]); H[k, 0] += 1",
    "dtype": "np.float64",
    "scale": "1.5",
    "strategy": "auto",
}
SETTING = PLAIN["setting"]
STRIDED = "np.repeat(np.arange(3.0), 2)[::2]"
# What is changed of the plain loop, and what W holds then. Each change needs other code.
CHANGES: dict[str, tuple[dict[str, str], float]] = {
    "nothing": ({}, 6.0),
    "body": ({"body": "W[k] += scale * RATE - helper(TABLE[1]); H[k, 0] += 1"}, 2.0),
    "global number": ({"setting": SETTING.replace("2.0", "4.0")}, 9.0),
    "global array": ({"setting": SETTING.replace("np.arange(3.0)", "np.arange(3.0) + 1")}, 7.0),
    "helper": ({"setting": SETTING.replace("x + 1", "x + 2")}, 7.0),
    "global of a helper": ({"setting": SETTING.replace("x + 1", "x + DEEP") + "\nDEEP = 3"}, 8.0),
    "dtype": ({"dtype": "np.float32"}, 6.0),
    "type of a scalar": ({"scale": "np.int64(2)"}, 7.0),
}
SHARED = {"body": "W[k % 7] += scale; H[k, 0] += W[3]"}


def calling_itself(smaller: str) -> dict[str, str]:
    setting = f"""def fall(W, k, x):
        if x > 0:
            fall(W, k, {smaller})
        W[k] += 1"""
    return {"setting": setting, "body": "fall(W, k, k % 9)", "strategy": "sequential"}


def with_fields(fields: str) -> dict[str, str]:
    setting = f"P = __import__('collections').namedtuple('P', '{fields}')"
    return {"setting": setting, "scale": "P(1.0, 2.0)", "body": "W[k] += scale.x"}


OTHERS = {
    "another scalar": {"scale": "2.5"},
    "layout of a global array": {"setting": SETTING.replace("np.arange(3.0)", STRIDED)},
    "unnamed": {"setting": "BOX = __import__('collections').namedtuple('B', 'a')", "body": "W[k] += BOX(scale).a"},
    "real rows": {"body": "H[k] = np.sort(H[k] * W[k])"},
    "shared": SHARED,
    "locked": SHARED | {"strategy": "locked"},
    "calls itself": calling_itself("x - 2"),
    "calls itself with a value": calling_itself("int(W[k]) * 0 + x - 2"),
    "fields x y": with_fields("x y"),
    "fields y x": with_fields("y x"),
}
Result = tuple[list[float], list[list[float]], list[str]]  # W, H, and what was compiled
Twice = tuple[dict[str, Result], dict[str, Result]]


def count(k: int, counts: Any) -> None:
    counts[k] += 1


class Machine:
    """Where programs run one after the other, each in a process of its own."""

    def __init__(self, home: Path):
        self.bodies = home / "strads" / "strads-bodies"
        self.numbers: list[str] = []  # of the same function in each process
        kernels = os.environ.get("NUMBA_CACHE_DIR")
        self._environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
        self._environment["XDG_CACHE_HOME"] = str(home)
        assert kernels is None  # else it would be the place of bodies too

    def run(self, *loops: dict[str, str]) -> list[Result]:
        """Run the plain loop in one process, each time with some of its parts changed."""
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps([LOOP.format(**PLAIN | changes) for changes in loops]),
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        number, *results = done.stdout.splitlines()
        self.numbers.append(number)
        return [(w, h, compiled) for w, h, compiled in map(json.loads, results)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("used"))


@pytest.fixture(scope="module")
def twice(used: Machine) -> Twice:
    """The results of all loops in the first process of a machine, and in the next one."""
    loops = {name: changes for name, (changes, _) in CHANGES.items()} | OTHERS
    first, second = (dict(zip(loops, used.run(*loops.values()), strict=True)) for _ in range(2))
    return first, second


@pytest.mark.parametrize("change", CHANGES)
def test_what_decides_the_code_is_in_the_key(twice: Twice, change: str) -> None:
    first, second = (results[change] for results in twice)
    assert first == ([CHANGES[change][1]] * 40, [[2.0, 1.0]] * 40, ["record", "worker"])
    assert second == (*first[:2], [])


def test_so_is_the_layout_of_a_global_array(twice: Twice) -> None:
    first, second = (results["layout of a global array"] for results in twice)
    assert first[::2] == ([6.0] * 40, ["record", "worker"])
    assert second[:2] == first[:2]


def test_another_scalar_of_the_same_type_needs_no_other_code(twice: Twice) -> None:
    for results in twice:
        assert results["another scalar"][::2] == ([8.0] * 40, [])


def test_another_strategy_has_code_of_its_own(twice: Twice) -> None:
    first, second = twice
    assert first["locked"][0] == second["locked"][0] == first["shared"][0]
    assert "worker" in first["locked"][2]
    assert second["locked"][2] == []


def test_a_body_that_needs_real_rows_is_known_too(twice: Twice) -> None:
    first, second = (results["real rows"] for results in twice)
    assert first[2] != []
    assert second == (*first[:2], [])


def test_a_body_with_what_has_no_name_is_not_kept(twice: Twice) -> None:
    for results in twice:
        assert results["unnamed"][::2] == ([2.5] * 40, ["worker"])


@pytest.mark.parametrize("name", ["calls itself", "calls itself with a value"])
def test_functions_that_call_themselves(twice: Twice, name: str) -> None:
    first, second = (results[name] for results in twice)
    assert first[0][8] == 6.0
    assert second[:2] == first[:2]


def test_named_tuples_are_known_by_their_fields(twice: Twice) -> None:
    for results in twice:
        assert results["fields x y"][0] == [2.0] * 40
        assert results["fields y x"][0] == [3.0] * 40


def test_damaged_files_are_compiled_anew(twice: Twice, used: Machine) -> None:
    for path in used.bodies.iterdir():
        path.write_bytes(path.read_bytes()[:40])
    assert used.run({}) == [twice[0]["nothing"]]
    assert used.run({})[0][2] == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="has no owners of files")
def test_only_a_folder_that_nobody_else_can_write_is_used(machine: Machine) -> None:
    machine.bodies.mkdir(parents=True)
    machine.bodies.chmod(0o777)
    first, second = machine.run({}, OTHERS["another scalar"])
    assert first[2] == ["record", "worker"]
    assert second[0] == [8.0] * 40
    assert not list(machine.bodies.iterdir())


def test_what_has_not_been_used_for_longest_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from strads.bodies import code_cache

    monkeypatch.setattr(code_cache, "_MAX_FILES", 8)
    for age in range(9):
        path = tmp_path / f"{age}.nbc"
        path.touch()
        os.utime(path, (1000 - age, 1000 - age))
    code_cache._make_room(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{age}.nbc" for age in range(7)]


def test_the_module_of_a_body_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "never_imported.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    counts = strads.dvector.zeros(3)
    strads.async_for(3, types.FunctionType(count.__code__, {"__name__": "never_imported"}), counts)
    assert counts.to_numpy().tolist() == [1, 1, 1]
    assert "never_imported" not in sys.modules


@pytest.mark.usefixtures("twice")
def test_numbers_of_functions_differ_between_processes(used: Machine) -> None:
    """Else code of two processes, loaded by a third one, could define a symbol twice."""
    assert len(used.numbers) >= 2
    assert len(set(used.numbers)) == len(used.numbers)
