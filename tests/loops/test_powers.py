"""Powers: of constants, by another function; integer ones, which LLVM calls by a name that somebody has to provide."""

import math

import numpy as np
import pytest

import strads
from strads import async_for


def ten_to(k, x, out):
    out[k] = 10.0 ** (x[k] / 4.0)


def two_to(k, x, out):
    out[k] = 2 ** x[k] + 0.5 ** -x[k]


def two_to_an_integer(k, n, out):
    out[k] = 2 ** n[k]


def by_a_name(k, x, out):
    out[k] = math.pow(10.0, x[k])


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("body", [ten_to, two_to, by_a_name], ids=lambda body: body.__name__)
def test_powers_of_constants(body, dtype):
    x = np.array([-700, -30, -1.5, 0, 0.25, 7, 120, np.inf, -np.inf, np.nan], dtype)
    out, expected = strads.dvector.zeros(len(x), dtype), np.zeros(len(x), dtype)
    async_for(len(x), body, strads.dvector(x), out)
    with np.errstate(all="ignore"):
        for k in range(len(x)):
            try:
                body(k, x, expected)
            except OverflowError:  # of math.pow
                expected[k] = np.inf
    np.testing.assert_allclose(out.to_numpy(), expected, rtol=1e-4 if dtype == "f4" else 1e-13)


def test_integer_powers_of_constants_stay_integers():
    n, out = np.arange(62), strads.dvector.zeros(62, "i8")
    async_for(62, two_to_an_integer, strads.dvector(n), out)
    assert out.to_list() == [2**k for k in range(62)]


def to_a_converted_power(k, x, n, out):
    out[k] = x[k] ** float(n[k])


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("integers", ["i2", "i4", "u1"])
def test_converted_exponents(dtype, integers):
    n = np.array([0, 1, 2, 3, 10, 31] + ([] if integers == "u1" else [-1, -2, -7]), integers)
    x = np.linspace(0.5, 1.5, len(n)).astype(dtype)
    out = strads.dvector.zeros(len(n), dtype)
    async_for(len(n), to_a_converted_power, strads.dvector(x), strads.dvector(n), out)
    np.testing.assert_allclose(out.to_numpy(), x ** n.astype(dtype), rtol=1e-5 if dtype == "f4" else 1e-13)
