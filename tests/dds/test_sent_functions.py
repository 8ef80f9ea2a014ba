"""Functions go to other processes with the values that their globals have at the driver."""

import importlib
import pickle
import sys
import threading
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pytest
from launching import needs_mpi, run_under_mpi

from strads.user_code.sent_functions import sent_to

_RATES = """
import threading
from numba import njit
import sent_settings, sent_settings as settings

RATE, TABLE, LOCK = 1, [1, 2], threading.Lock()

def helper(x):
    return x + RATE

@njit
def compiled_helper(x):
    return x + RATE

def body(x):
    return helper(x) * sent_settings.SCALE

def by_compiled(x):
    return compiled_helper(x) * settings.twice(x)

def recursive(x):
    return RATE if x == 0 else recursive(x - 1) + 1

def even(x):
    return RATE if x == 0 else odd(x - 1)

def odd(x):
    return -RATE if x == 0 else even(x - 1)

def closing(own):
    def inner(x):
        return helper(x) + own() + settings.SCALE + (inner(x - 1) if x > 0 else 0)
    return inner

def by_a_cycle(x):
    return sent_settings.sent_rates.helper(x) + by_the_same_cycle()

def by_the_same_cycle():
    return sent_settings.sent_rates.RATE

def locked(x):
    with LOCK:
        return x * RATE

def default(x, *, scale=RATE):
    "Doc."
    return x * scale
"""
_SETTINGS = """
import sent_rates

SCALE = 1
UNUSED = (number for number in range(3))  # cannot be pickled

def twice(x):
    return 2 * x * SCALE
"""
elsewhere = SimpleNamespace(backend="mpi")


@pytest.fixture
def rates(tmp_path, monkeypatch):
    """A module of the user's, whose globals have changed since it was imported."""
    (tmp_path / "sent_rates.py").write_text(_RATES)
    (tmp_path / "sent_settings.py").write_text(_SETTINGS)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("sent_rates")
    module.RATE, module.sent_settings.SCALE = 5, 7
    yield module
    for name in ("sent_rates", "sent_settings"):
        del sys.modules[name]


def arrived(rates, function, **options):
    """Return a function as it arrives in a process where the globals are as they were."""
    message = cloudpickle.dumps(sent_to(elsewhere, function, **options))
    rates.RATE, rates.sent_settings.SCALE = 1, 1
    try:
        return pickle.loads(message)
    finally:
        rates.RATE, rates.sent_settings.SCALE = 5, 7


def unchanged(rates):
    rates.RATE, rates.sent_settings.SCALE = 1, 1


def test_values_of_globals_and_of_modules(rates):
    found = [arrived(rates, getattr(rates, name)) for name in ("body", "recursive", "even", "odd")]
    unchanged(rates)
    assert [function(3) for function in found] == [(3 + 5) * 7, 5 + 3, -5, 5]
    assert found[0].__module__ == "sent_rates"
    assert found[0].__globals__["sent_settings"].__name__ == "sent_settings"


def test_modules_that_import_each_other(rates):
    found = arrived(rates, rates.by_a_cycle)
    unchanged(rates)
    assert found(3) == (3 + 5) + 5
    carried = found.__globals__["sent_settings"].sent_rates
    assert carried is not rates
    assert carried.sent_settings is found.__globals__["sent_settings"]


def test_closures(rates):
    own = [10]
    found = arrived(rates, rates.closing(lambda: own[0] + rates.RATE))
    unchanged(rates)
    assert found(1) == sum(x + 5 + 10 + 5 + 7 for x in (0, 1))


def test_compiled_helpers(rates):
    found = [arrived(rates, function, compiled=True) for function in (rates.by_compiled, rates.compiled_helper)]
    unchanged(rates)
    assert [function(3) for function in found] == [(3 + 5) * (6 * 7), 8]


def test_attributes_of_the_function(rates):
    found = arrived(rates, rates.default)
    assert (found.__name__, found.__doc__, found(3)) == ("default", "Doc.", 3)


def test_what_cannot_be_carried_goes_by_name(rates):
    assert sent_to(elsewhere, rates.locked) is rates.locked
    assert arrived(rates, rates.locked) is rates.locked


def test_what_is_installed_goes_by_name(rates):
    for function in (np.square, np.linalg.norm, len, threading.Thread, importlib.import_module):
        assert sent_to(elsewhere, function) is function


def test_nothing_is_copied_for_logical_nodes(rates):
    assert sent_to(SimpleNamespace(backend="threads"), rates.body) is rates.body


_PROGRAM = """
import numpy as np, strads
runtime = strads.init("mpi", threads=1)
import sent_rates, sent_settings

def update(k, W):
    W[k] = sent_rates.body(W[k]) + sent_settings.SCALE

for rate, scale in ((5, 1), (5, 7), (1, 1)):
    sent_rates.RATE, sent_settings.SCALE = rate, scale
    W = strads.dvector(np.arange(8))
    strads.async_for(8, update, W)
    assert W.to_list() == [(k + rate) * scale + scale for k in range(8)], (rate, scale, W.to_list())
    V = strads.dvector(np.arange(8))
    V.distribute(runtime.cluster)
    assert V.map(sent_rates.body).to_list() == [(k + rate) * scale for k in range(8)]
    assert V.map(sent_rates.locked).to_list()[0] == 0
print("as on one process")
"""


@needs_mpi
def test_all_nodes_use_the_values_of_the_driver(tmp_path):
    (tmp_path / "sent_rates.py").write_text(_RATES)
    (tmp_path / "sent_settings.py").write_text(_SETTINGS)
    (tmp_path / "program.py").write_text(_PROGRAM)
    ended = run_under_mpi(2, str(tmp_path / "program.py"), timeout=100)
    assert ended.stdout == "as on one process\n", ended.stdout + ended.stderr
