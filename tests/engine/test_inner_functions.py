"""Functions that only compiled code calls become part of their callers."""

import pytest
from numba import njit

from strads.engine.compiling import INNER


def add_one(x):
    return x + 1


def show(x):
    print("inner", x)
    return x


def refuse(x):
    if x > 2:
        raise ValueError("too large", x)
    return x


def twice(x, function):
    return function(function(x))


def called(function):
    """Return a compiled caller of a function, and the function's dispatcher."""
    inner = njit(**INNER)(function)
    between = njit(**INNER)(twice)

    @njit
    def caller(x):
        return between(x, inner)

    return caller, inner


def addresses(dispatcher):
    return [each.library.get_pointer_to_function(each.fndesc.llvm_func_name) for each in dispatcher.overloads.values()]


def test_no_machine_code_is_made_of_a_function_alone():
    caller, inner = called(add_one)
    assert caller(1) == 3
    assert caller(1.5) == 3.5
    assert addresses(inner) == [0, 0]
    assert all(addresses(caller))


def test_a_function_that_prints_finds_its_environment(capfd):
    caller, inner = called(show)
    assert caller(7) == 7
    assert capfd.readouterr().out == "inner 7\n" * 2
    assert all(addresses(inner))


def test_an_error_has_its_values():
    caller, _ = called(refuse)
    assert caller(2) == 2
    with pytest.raises(ValueError) as raised:
        caller(3)
    assert raised.value.args == ("too large", 3)
