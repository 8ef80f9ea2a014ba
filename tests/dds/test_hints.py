import numpy as np
import pytest

from strads.dds import Accumulator, Readonly, Relaxed, accumulator, dvector, readonly, relaxed
from strads.errors import ArgumentError, InputError


def test_hints_carry_their_table():
    v = dvector.zeros((2, 3))
    assert readonly(v) == Readonly(v)
    assert relaxed(v) == Relaxed(v)
    assert readonly(dvector([[1], [2, 3]])).table.is_ragged


@pytest.mark.parametrize("hint", [readonly, relaxed])
def test_hints_take_only_tables(hint):
    with pytest.raises(ArgumentError, match=f"{hint.__name__} takes a dvector or a map, not ndarray"):
        hint(np.zeros(3))
    with pytest.raises(ArgumentError, match="not Readonly"):
        hint(readonly(dvector.zeros(3)))


def test_relaxed_refuses_what_cannot_be_summed():
    with pytest.raises(ArgumentError, match="ragged"):
        relaxed(dvector([[1], [2, 3]]))
    with pytest.raises(ArgumentError, match="records"):
        relaxed(dvector.zeros(3, [("a", "f4")]))


@pytest.mark.parametrize(
    ("initial", "dtype", "kind"),
    [
        (0.0, "f8", float),
        (np.float32(1), "f8", float),
        (3, "i8", int),
        (True, "i8", int),
        (np.int8(2), "i8", int),
    ],
)
def test_an_accumulator_has_the_dtype_of_its_start(initial, dtype, kind):
    total = accumulator(initial)
    assert isinstance(total, Accumulator)
    assert total.dtype == np.dtype(dtype)
    total.add(np.int32(2))
    assert type(total.value) is kind
    assert total.value == initial + 2
    total.reset()
    assert total.value == initial


def test_an_accumulator_sums():
    loss = accumulator()
    for x in (0.5, 1, np.float32(0.25), False):
        loss.add(x)
    assert loss.value == 1.75
    assert repr(loss) == "accumulator(1.75)"


def test_an_accumulator_refuses_what_it_cannot_hold():
    for initial in ("0", None, 1j, [0.0]):
        with pytest.raises(ArgumentError):
            accumulator(initial)
    count = accumulator(0)
    with pytest.raises(ArgumentError, match=r"accumulator\(0\.0\)"):
        count.add(0.5)
    with pytest.raises(ArgumentError):
        count.add("1")
    count.add(2**63 - 1)
    with pytest.raises(InputError, match="int64"):
        count.add(1)
    assert count.value == 2**63 - 1
