"""Steps of skip-gram and continuous bag of words against NumPy, and the distribution of negatives."""

import numpy as np
import pytest

from strads.models.kernels.alias_tables import alias_table
from strads.models.kernels.continuous_bag_of_words import train_windows, window_memory
from strads.models.kernels.negative_samples import draw_noise
from strads.models.kernels.skip_gram import GROUP, scratch, train_pairs

KEY, STREAM = np.uint64(3), np.uint64(5)
RATES = np.float32(0.05), np.float32(0.05)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def tables(rows, dimensions, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 0.4, (rows, dimensions)).astype(np.float32) for _ in range(2)]


def noise_of(table, negative, count):
    words = np.empty(-(-negative // 5) * 5, np.int64)
    draw_noise(table, KEY, STREAM, count, words)
    return words[:negative]


def test_noise_has_the_probabilities_of_its_weights():
    weights = np.array([5.0, 1.0, 0.0, 3.0, 1.0, 0.25])
    table, words = alias_table(weights), np.empty(5, np.int64)
    counts = np.zeros(6)
    for count in range(40_000):
        draw_noise(table, KEY, STREAM, count, words)
        counts += np.bincount(words, minlength=6)
    assert counts[2] == 0
    assert counts / counts.sum() == pytest.approx(weights / weights.sum(), abs=0.003)


@pytest.mark.parametrize("negative", [1, 3, 5, 12])
@pytest.mark.parametrize("dimensions", [16, 48])
def test_a_group_of_pairs_takes_the_step_of_its_gradient(negative, dimensions):
    inputs, outputs = tables(40, dimensions)
    input_rows, output_rows = np.arange(GROUP, dtype=np.int32), np.arange(20, 20 + GROUP, dtype=np.int32)
    noise = alias_table(np.where(np.arange(40) < 20, 1.0, 0.0))  # negatives are never the contexts
    w, c = inputs.astype(np.float64), outputs.astype(np.float64)
    words, losses = noise_of(noise, negative, 0), 0.0
    for tile in range(0, negative, 5):  # further negatives take their steps after the first five
        dw, dc = np.zeros_like(w), np.zeros_like(c)
        for first, second in zip(input_rows, output_rows, strict=True):
            targets = [(word, 0.0) for word in words[tile : tile + 5]] + [(second, 1.0)] * (tile == 0)
            for row, label in targets:
                score = w[first] @ c[row]
                losses += np.logaddexp(0, -score if label else score)
                dw[first] += 0.05 * (label - sigmoid(score)) * c[row]
                dc[row] += 0.05 * (label - sigmoid(score)) * w[first]
        w, c = w + dw, c + dc
    loss, measured = train_pairs(
        inputs, outputs, input_rows, output_rows, noise, negative, KEY, STREAM, RATES, scratch()
    )
    assert (inputs, outputs) == (pytest.approx(w, abs=2e-5), pytest.approx(c, abs=2e-5))
    assert (loss, measured) == (pytest.approx(losses, rel=1e-4), GROUP)


def test_an_incomplete_group_and_negatives_equal_to_the_context_change_nothing_else():
    inputs, outputs = tables(10, 16)
    before = inputs.copy(), outputs.copy()
    pair = np.array([1], np.int32), np.array([2], np.int32)
    noise = alias_table(np.eye(10)[2])  # all negatives are the context: left out
    train_pairs(inputs, outputs, *pair, noise, 5, KEY, STREAM, RATES, scratch())
    step = 0.05 * (1 - sigmoid(before[0][1].astype(np.float64) @ before[1][2]))
    assert inputs[1] == pytest.approx(before[0][1] + step * before[1][2], abs=1e-5)
    assert outputs[2] == pytest.approx(before[1][2] + step * before[0][1], abs=1e-5)
    inputs[1], outputs[2] = before[0][1], before[1][2]
    assert np.array_equal(inputs, before[0])
    assert np.array_equal(outputs, before[1])


def test_no_pairs_do_nothing():
    inputs, outputs = tables(4, 16)
    none = np.zeros(0, np.int32)
    noise = alias_table(np.ones(4))
    assert train_pairs(inputs, outputs, none, none, noise, 5, KEY, STREAM, RATES, scratch()) == (0.0, 0)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("negative", [1, 5, 20])
def test_a_window_takes_the_step_of_its_gradient(mean, negative):
    inputs, outputs = tables(60, 32)
    words, reaches = np.array([1, 2, 3, 2, -1, 9], np.int32), np.array([0, 0, 3, 0, 0, 2], np.uint8)
    noise = alias_table(np.where(np.arange(60) > 20, 1.0, 0.0))
    w, c = inputs.astype(np.float64), outputs.astype(np.float64)
    share = 1 / 3 if mean else 1.0
    hidden, change = share * (w[1] + w[2] + w[2]), np.zeros(32)
    drawn = np.empty(negative, np.int64)
    draw_noise(noise, KEY, STREAM, 2, drawn)
    targets = [(3, 1.0), *((row, 0.0) for row in drawn)]
    steps = [0.05 * (label - sigmoid(hidden @ c[row])) for row, label in targets]
    for (row, _), step in zip(targets, steps, strict=True):
        change += step * c[row]
        c[row] += step * hidden
    for row in (1, 2, 2):
        w[row] += change if mean else change / 3  # as in gensim
    memory = window_memory(32, negative)
    train_windows(inputs, outputs, words, reaches, noise, negative, mean, KEY, STREAM, RATES, memory)
    assert inputs == pytest.approx(w, abs=3e-5)
    assert outputs == pytest.approx(c, abs=3e-5)
