import numpy as np

from strads.cli.comparison import sameness


def test_equal_bits():
    table = np.array([[1.0, np.nan], [0.0, 3.0]], np.float32)
    told = sameness([table, table[0]], [table.copy(), table[0].copy()], "A and B", "numbers")
    assert told == "yes: A and B give 6 numbers equal bit for bit"


def test_different_bits():
    first, second = np.array([0.0, 1.0, 2.0]), np.array([-0.0, 1.0, 3.0])
    assert sameness([first], [second], "A and B", "numbers").startswith("NO: 2 of 3 numbers differ between A and B")


def test_different_shapes_or_types():
    first = np.arange(3, dtype=np.int32)
    for second in (np.arange(4, dtype=np.int32), first.astype(np.int64), first[None]):
        assert sameness([first], [second], "A and B", "counts").startswith("NO: 3 of 3 counts differ")
