"""Topics of unseen documents: Gibbs sampling with the topics' word distributions held fixed.

p(z = k | rest) ∝ (n_dk + α_k) · φ_wk. Documents are independent, and the random stream of each is a function of its
words: the result is bitwise identical for any split over threads, and whichever other documents there are.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels import simd
from strads.models.kernels.aligned import aligned_zeros
from strads.models.kernels.lda_draw import pick
from strads.models.kernels.lda_random import uniform
from strads.models.kernels.lda_tables import Prior
from strads.rng.splitmix import GAMMA, mix


@njit(nogil=True, cache=True)
def fill_phi(words, totals, prior, places, phi):  # type: ignore[no-untyped-def]
    """Write φ_wk = (n_wk + β) / (n_k + Vβ) of the words of a shard, `SparseWords`, into the rows `places` of `phi`.

    `phi` is float32 of shape (words, K padded), with zeros after the K-th column, allocated by `aligned_zeros`.
    """
    inverse = 1.0 / (totals + prior.beta_sum)
    for row in range(len(words.sizes)):
        place = places[row]
        for k in range(len(totals)):
            phi[place, k] = prior.beta * inverse[k]
        for entry in range(words.offsets[row], words.offsets[row] + words.sizes[row]):
            topic = words.topics[entry]
            phi[place, topic] = (words.counts[entry] + prior.beta) * inverse[topic]


@njit(nogil=True, cache=True)
def _set_count(counts, topic, change):  # type: ignore[no-untyped-def]
    """Add `change` to the count of a topic.

    A whole vector is written: a load cannot be forwarded from a store that covers only part of it.
    """
    first = topic & ~15
    here = simd.splat_whole(np.int32(topic - first))
    old = simd.load_floats(counts, first)
    new = simd.add(old, simd.splat_float(change))
    simd.store_floats(counts, first, simd.where_equal(simd.lane_numbers(), here, new, old))


@njit(nogil=True, cache=True)
def _draw(counts, phi, word, prior, running, place):  # type: ignore[no-untyped-def]
    """Draw the topic of a token from p(k) ∝ (`counts[k]` + α_k) · `phi[word, k]`, with the α of `prior`.

    `counts` (float32, shape (K padded,)) are those of its document without the token itself, `running` is scratch
    memory of the same shape, and `place` a random number between 0 and 1.
    """
    vectors = len(counts) >> 4
    sums = simd.splat_float(np.float32(0.0))
    for j in range(vectors):
        weights = simd.add(simd.load_floats(counts, 16 * j), simd.load_floats(prior.alpha, 16 * j))
        weights = simd.multiply(weights, simd.load_floats(phi, word * len(counts) + 16 * j))
        sums = simd.add(sums, weights)
        simd.store_floats(running, 16 * j, sums)
    prefix = simd.prefix_sums(sums)
    return pick(running, vectors, sums, prefix, place * simd.lane(prefix, 15))[0]


@njit(nogil=True, cache=True)
def _infer(indptr, indices, repeats, words, first, last, phi, prior, sweeps, burn_in, key, counts, running, theta):  # type: ignore[no-untyped-def]
    """Sample as described at `infer_documents`, with the same arguments.

    Those are `indptr`, `indices`, `repeats`, `words`, `first`, `last`, `phi`, `prior`, `sweeps`, `burn_in`, `key` and
    `theta`; `counts` and `running` are scratch memory, aligned float32 arrays of shape (K padded,).
    """
    one = np.float32(1.0)
    topics = np.empty(0, np.uint16)
    for document in range(first, last):
        length, stream = 0, key
        for entry in range(indptr[document], indptr[document + 1]):
            length += repeats[entry]
            stream = mix((stream ^ np.uint64(words[entry])) + GAMMA)
            stream = mix((stream ^ np.uint64(repeats[entry])) + GAMMA)
        if length > len(topics):
            topics = np.empty(2 * length, np.uint16)
        counts[:] = 0.0
        theta[document] = 0.0
        drawn = 0
        for sweep in range(sweeps + 1):  # the first sweep draws each token given the previous ones
            token = 0
            for entry in range(indptr[document], indptr[document + 1]):
                for _ in range(repeats[entry]):
                    if sweep > 0:
                        _set_count(counts, np.int64(topics[token]), -one)
                    topic = _draw(counts, phi, indices[entry], prior, running, uniform(stream, drawn))
                    _set_count(counts, topic, one)
                    topics[token] = topic
                    token += 1
                    drawn += 1
            if sweep > burn_in:
                for k in range(theta.shape[1]):
                    theta[document, k] += counts[k]
        share = 1.0 / (sweeps - burn_in)
        total = float(length)
        for k in range(theta.shape[1]):
            total += float(prior.alpha[k])
        for k in range(theta.shape[1]):
            theta[document, k] = (theta[document, k] * share + prior.alpha[k]) / total


def infer_documents(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    repeats: NDArray[Any],
    words: NDArray[Any],
    first: int,
    last: int,
    phi: NDArray[np.float32],
    prior: Prior,
    sweeps: int,
    burn_in: int,
    key: np.uint64,
    theta: NDArray[np.floating[Any]],
) -> None:
    """Write the mean topic proportions of the documents `first … last - 1` into their rows of `theta`.

    Parameters
    ----------
    indptr, indices, repeats : integer arrays
        Documents in the form of a CSR matrix: `indices` are the rows of `phi` of their words, `repeats` the words'
        counts.
    words : integer array
        Numbers of the same words that are the same in all calls: a document's random stream comes from them.
    phi : float32 array of shape (words, K padded)
        From `fill_phi`; may hold only the words that occur. C-contiguous.
    sweeps, burn_in : int
        Number of sweeps over a document's tokens, and of initial sweeps left out of the mean; burn_in < sweeps.
    key : uint64
        From `job_key`; the same for all parts of a call.
    theta : float array of shape (documents, K)
        Rows become (mean n_dk + α_k) / (n_d + Σα) and sum to 1; without tokens α / Σα.
    """
    if not 0 <= burn_in < sweeps:
        raise ValueError(f"burn_in must be from 0 to sweeps - 1, got {burn_in} of {sweeps} sweeps")
    counts = aligned_zeros(phi.shape[1], np.float32)
    running = aligned_zeros(phi.shape[1], np.float32)
    _infer(indptr, indices, repeats, words, first, last, phi, prior, sweeps, burn_in, key, counts, running, theta)


@njit(nogil=True, cache=True, fastmath=True)
def log_of_words(indptr, indices, repeats, first, last, theta, phi):  # type: ignore[no-untyped-def]
    """Return Σ log Σ_k θ_dk φ_wk over the tokens of documents `first … last - 1`, in nats.

    `indptr`, `indices`, `repeats` and `phi` are as in `infer_documents`, and `theta` is what that has written.
    """
    total = 0.0
    for document in range(first, last):
        for entry in range(indptr[document], indptr[document + 1]):
            word = indices[entry]
            probability = np.float32(0.0)
            for k in range(theta.shape[1]):
                probability += theta[document, k] * phi[word, k]
            total += repeats[entry] * np.log(float(probability))
    return total
