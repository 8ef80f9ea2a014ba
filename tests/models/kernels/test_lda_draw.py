"""Draws from lane sums, and the lanes themselves."""

import numpy as np
import pytest
from numba import njit

from strads.models.kernels import simd
from strads.models.kernels.aligned import aligned_zeros
from strads.models.kernels.lda_draw import pick


@njit
def draw(weights, running, place, use_ends):
    """Position at `place`; with `use_ends`, at the end of the lane of this number."""
    vectors = len(weights) // 16
    sums = simd.splat_float(np.float32(0.0))
    for j in range(vectors):
        sums = simd.add(sums, simd.load_floats(weights, 16 * j))
        simd.store_floats(running, 16 * j, sums)
    prefix = simd.prefix_sums(sums)
    total = simd.lane(prefix, 15)
    if use_ends:
        place = min(simd.lane(prefix, np.int64(place)), total * np.float32(1 - 2.0**-24))
    return pick(running, vectors, sums, prefix, np.float32(place))


@pytest.mark.parametrize("vectors", [1, 3, 8, 9, 40])
def test_equal_steps_fall_on_positions_as_often_as_they_weigh(vectors):
    weights = aligned_zeros(16 * vectors, np.float32)
    weights[:] = np.random.default_rng(vectors).integers(0, 6, len(weights))
    running = aligned_zeros(len(weights), np.float32)
    places = np.arange(0, weights.sum(), 0.25, np.float32)
    found = [draw(weights, running, place, False) for place in places]
    np.testing.assert_array_equal(np.bincount([position for position, _ in found], minlength=len(weights)), 4 * weights)
    assert all(0 <= rest < weights[position] for position, rest in found)


def test_a_position_without_weight_is_never_drawn():
    """Also at the very ends of lanes, where prefix sums that round differently seem to leave room."""
    random = np.random.default_rng(0)
    for _ in range(4_000):
        weights = aligned_zeros(16 * random.integers(1, 20), np.float32)
        chosen = random.random(len(weights)) < random.choice([0.02, 0.3])
        weights[chosen] = random.gamma(0.3, 1.0, chosen.sum()) + 1e-6
        if not weights.any():
            continue
        running = aligned_zeros(len(weights), np.float32)
        for number in range(16):
            position, rest = draw(weights, running, number, True)
            assert weights[position] > 0
            assert rest >= 0


@njit
def every_operation(floats, small, wholes, out):
    a, b = simd.load_floats(floats, 3), simd.load_floats(small, 1)
    positions = simd.load_wholes(wholes, 0)
    four, numbers = simd.splat_whole(np.int32(4)), simd.lane_numbers()
    results = (
        simd.add(a, b),
        simd.subtract(a, b),
        simd.multiply(a, simd.splat_float(np.float32(3.0))),
        simd.positive_part(simd.subtract(a, simd.splat_float(np.float32(0.5)))),
        simd.gather(floats, positions),
        simd.as_floats(simd.bits_and(positions, four)),
        simd.as_floats(simd.shift_right(positions, simd.splat_whole(np.int32(1)))),
        simd.where_equal(numbers, four, a, b),
        simd.prefix_sums(b),
    )
    for row, result in enumerate(results):
        simd.store_floats(out, 16 * row, result)
    mask = simd.mask_equal(positions, four)
    simd.prefetch(floats, 0)
    return mask, simd.first_bit(mask), simd.count_at_most(a, np.float32(0.25)), simd.lane(a, 5), simd.total(b)


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32])
def test_lanes_are_what_numpy_says(dtype):
    random = np.random.default_rng(1)
    floats, small = random.random(32, np.float32), random.integers(0, 90, 17).astype(dtype)
    wholes = random.permutation(16).astype(np.uint32)
    out = np.zeros((9, 16), np.float32)
    mask, first, count, fifth, total = every_operation(floats, small, wholes, out)
    a, b = floats[3:19], small[1:17].astype(np.float32)
    expected = [a + b, a - b, 3 * a, np.maximum(a - np.float32(0.5), 0), floats[wholes], wholes & 4, wholes >> 1]
    expected += [np.where(np.arange(16) == 4, a, b), np.cumsum(b)]
    np.testing.assert_array_equal(out, np.array(expected, np.float32))
    place = int(np.flatnonzero(wholes == 4)[0])
    assert (mask, first, count, fifth, total) == (1 << place, place, (a <= 0.25).sum(), a[5], b.sum())
