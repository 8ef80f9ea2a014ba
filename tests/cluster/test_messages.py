"""What a message refers to by name, and what it carries."""

import subprocess
import sys
import types
from functools import partial

import cloudpickle
import numpy as np
import pytest

from strads.cluster.cores import check_count
from strads.cluster.messages import Message, decode, encode
from strads.cluster.node import Outcome, ProgramCall

# Nothing else is imported there: what a message refers to by name has to be importable.
_RECEIVER = """
import pickle, sys
value = pickle.loads(sys.stdin.buffer.read())
print(value.program(*value.arguments))
"""


def received(call: ProgramCall) -> str:
    """Run the program of a call in a new process."""
    header = encode(call, functions=True).header
    run = subprocess.run([sys.executable, "-c", _RECEIVER], input=header, capture_output=True, check=False)
    return (run.stdout or run.stderr).decode().strip()


def a_function_of_this_module(number: int) -> int:
    return number + 1


def test_functions_that_another_process_cannot_import_travel_by_value() -> None:
    module = types.ModuleType("nowhere_else")
    exec("def double(x): return helper(x) * 2\ndef helper(x): return x\nclass Thing:\n    size = 3", module.__dict__)
    sys.modules["nowhere_else"] = module
    cloudpickle.register_pickle_by_value(module)
    offset = 10
    try:
        assert received(ProgramCall(1, lambda x: x + offset, (1,))) == "11"
        assert received(ProgramCall(1, module.double, (4,))) == "8"
        assert received(ProgramCall(1, partial(module.double), (4,))) == "8"
        assert received(ProgramCall(1, getattr, (module.Thing(), "size"))) == "3"
    finally:
        cloudpickle.unregister_pickle_by_value(module)
        del sys.modules["nowhere_else"]


@pytest.mark.parametrize("name", ["numpy.fake", "strads.fake", "builtins"])
def test_a_function_that_claims_to_belong_elsewhere_travels_by_value(name: str) -> None:
    def claims(number: int) -> int:
        return number * 7

    claims.__module__ = name
    assert received(ProgramCall(1, claims, (2,))) == "14"


def test_our_own_functions_travel_by_name_and_quickly() -> None:
    message = encode(ProgramCall(3, check_count, ("threads", 2), ["table 1"]), functions=True)
    assert len(message.header) < 300
    assert decode(message).program is check_count
    assert received(ProgramCall(1, check_count, ("threads", 2))) in ("2", "None")


def test_the_memory_of_arrays_is_not_copied() -> None:
    array = np.arange(100_000, dtype=np.float64)
    for value in (Outcome(1, {"a": array}), Outcome(1, {"a": array, "f": lambda x: x})):  # by name, and not
        message = encode(value, functions=True)
        assert len(message.header) < 2_000
        assert [np.shares_memory(buffer, array) for buffer in message.buffers] == [True]
        assert np.array_equal(decode(Message(*message)).value["a"], array)


def test_what_cannot_be_pickled_is_reported_by_its_type() -> None:
    with pytest.raises(TypeError, match="generator"):
        encode(ProgramCall(1, a_function_of_this_module, ((i for i in range(3)),)), functions=True)
