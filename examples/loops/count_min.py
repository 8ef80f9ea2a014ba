"""A count-min sketch of a stream (Cormode and Muthukrishnan, J. Algorithms 2005)."""

from typing import Any

import numpy as np

import strads


def body(k, stream, a, b, sketch):
    """One key: a counter in each row of the sketch."""
    for row in range(len(sketch)):
        sketch[row, (a[row] * stream[k] + b[row]) % 2147483647 % sketch.shape[1]] += 1


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Keys as frequent as by Zipf's law, a sketch of 4 rows."""
    rng = np.random.default_rng(seed)
    n, keys = int(28_000_000 * scale), int(5_000_000 * scale)
    stream = rng.integers(0, 2**31 - 1, keys)[(keys ** rng.random(n)).astype(int) - 1]
    a, b = rng.integers(1, 2**31 - 1, (2, 4))
    return n, (*map(strads.dvector, (stream, a, b)), strads.dvector.zeros((4, 100_003), "i8"))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"counters: {arguments[3].to_numpy().sum(1)}")
