"""Collapsed Gibbs sampling for LDA that computes the full conditional of each token, 16 topics at a time.

p(z = k | rest) ∝ (n_dk + α_k) · φ_k with φ_k = (n_wk + β) / (n_k + Vβ), counts without the token itself (Griffiths &
Steyvers 2004, eq. 5). Best for few topics. Tokens are processed word by word (thesis algorithm 5), so φ of the current
word stays in the L1 cache.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels import simd
from strads.models.kernels.aligned import aligned_zeros, padded
from strads.models.kernels.lda_draw import pick
from strads.models.kernels.lda_random import uniform

_AHEAD = 6  # tokens between the prefetch of a document's counts and their use


class DenseScratch(NamedTuple):
    """Memory of one thread: arrays of shape (K padded,), whose contents are not kept between jobs."""

    phi: NDArray[np.float32]  # φ_k of the current word
    inverse: NDArray[np.float32]  # 1 / (n_k + Vβ)
    running: NDArray[np.float32]  # running sums of a draw, as in `lda_draw`


def dense_scratch(topics: int) -> DenseScratch:
    """Memory that a thread needs for jobs of `sample_dense`, one job at a time."""
    return DenseScratch(*(aligned_zeros(padded(topics), np.float32) for _ in range(3)))


@njit(nogil=True, cache=True)
def sample_dense(tokens, block, documents, words, totals, prior, scratch, key, fresh):  # type: ignore[no-untyped-def]
    """Draw a new topic for every token of a worker in one block, given all others.

    Parameters
    ----------
    tokens : Tokens
        The worker's tokens; `topics` is modified.
    block : int
        The block; `words` is its shard.
    documents : DenseDocuments
        The worker's documents; modified.
    words : DenseWords
        The shard of the block; modified.
    totals : int64 array of shape (K,)
        The worker's topic totals n_k; modified.
    prior : Prior
    scratch : DenseScratch
    key : uint64
        From `job_key`.
    fresh : bool
        Whether the tokens have no topic yet: then nothing is subtracted from the counts, and each token is drawn given
        the previous ones.
    """
    phi, inverse, running = scratch.phi, scratch.inverse, scratch.running
    width = len(phi)
    vectors = width >> 4
    numbers = simd.lane_numbers()
    for k in range(len(totals)):
        inverse[k] = 1.0 / (totals[k] + prior.beta_sum)
    last_token = tokens.run_offsets[tokens.block_runs[block + 1]] - 1
    count = 0
    for run in range(tokens.block_runs[block], tokens.block_runs[block + 1]):
        word = tokens.words[run]
        beta = simd.splat_float(np.float32(prior.beta))
        for j in range(vectors):
            counts = simd.load_floats(words.counts, word * width + 16 * j)
            simd.store_floats(phi, 16 * j, simd.multiply(simd.add(counts, beta), simd.load_floats(inverse, 16 * j)))
        row = words.counts[word]
        for token in range(tokens.run_offsets[run], tokens.run_offsets[run + 1]):
            soon = tokens.documents[min(token + _AHEAD, last_token)] * width
            for j in range(0, width, 32):
                simd.prefetch(documents.counts, soon + j)
            document = tokens.documents[token]
            held = np.int64(tokens.topics[token])
            kept_phi = np.float32(0.0)
            kept_weight = np.float32(0.0)
            kept_inverse = np.float32(0.0)
            if fresh:
                held = np.int64(-1)
            else:
                kept_inverse = np.float32(1.0 / (totals[held] - 1 + prior.beta_sum))
                kept_phi = np.float32(row[held] - 1 + prior.beta) * kept_inverse
                kept_weight = (np.float32(documents.counts[document, held] - 1) + prior.alpha[held]) * kept_phi
            weight = simd.splat_float(kept_weight)
            sums = simd.splat_float(np.float32(0.0))
            for j in range(vectors):
                counts = simd.load_floats(documents.counts, document * width + 16 * j)
                both = simd.multiply(
                    simd.add(counts, simd.load_floats(prior.alpha, 16 * j)), simd.load_floats(phi, 16 * j)
                )
                both = simd.where_equal(numbers, simd.splat_whole(np.int32(held - 16 * j)), weight, both)
                sums = simd.add(sums, both)
                simd.store_floats(running, 16 * j, sums)
            prefix = simd.prefix_sums(sums)
            place = uniform(key, count) * simd.lane(prefix, 15)
            count += 1
            topic, _ = pick(running, vectors, sums, prefix, place)
            if topic == held:
                continue
            if held >= 0:
                documents.counts[document, held] -= 1
                row[held] -= 1
                totals[held] -= 1
                inverse[held] = kept_inverse
                phi[held] = kept_phi
            documents.counts[document, topic] += 1
            row[topic] += 1
            totals[topic] += 1
            inverse[topic] = 1.0 / (totals[topic] + prior.beta_sum)
            phi[topic] = np.float32(row[topic] + prior.beta) * inverse[topic]
            tokens.topics[token] = topic
