"""Collapsed Gibbs sampling for LDA at a cost far below K per token, for many topics.

p(z = k | rest) ∝ (n_dk + α_k) · φ_k with φ_k = (n_wk + β) / (n_k + Vβ), counts without the token itself (Griffiths &
Steyvers 2004, eq. 5), split into Σ n_dk φ_k over the document's own topics and the smoothing mass Σ α_k φ_k. Tokens are
processed word by word (thesis algorithm 5): φ of the current word is a dense array in the L1 cache, which differs from
that of a word without counts in few places; the first part is one gather over the document's list, the second a sum
updated incrementally, with partial sums of 16 topics each to draw from. Cost: O(topics of the document + K / 256).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels import simd
from strads.models.kernels.aligned import aligned_zeros, padded
from strads.models.kernels.lda_draw import BELOW_ONE, pick, pick_lane
from strads.models.kernels.lda_random import uniform

_AHEAD = 4  # tokens between the prefetch of a document's list and its use


class SparseScratch(NamedTuple):
    """Memory of one thread, whose contents are not kept between jobs.

    Attributes
    ----------
    phi, inverse : float32 arrays of shape (K padded,)
        φ_k of the current word, and 1 / (n_k + Vβ).
    sums : float32 array of shape (K / 16, padded)
        Σ α_k φ_k over groups of 16 topics.
    running : float32 array
        Running sums of a draw, over a document's list or `sums`.
    counts : int32 array of shape (K padded,)
        n_wk of the current word.
    listed : uint16 array of shape (K,)
        Topics that the current word has or had a token of.
    is_listed : bool array of shape (K,)
        Whether a topic is among them.
    """

    phi: NDArray[np.float32]
    inverse: NDArray[np.float32]
    sums: NDArray[np.float32]
    running: NDArray[np.float32]
    counts: NDArray[np.int32]
    listed: NDArray[np.uint16]
    is_listed: NDArray[np.bool_]


def sparse_scratch(topics: int) -> SparseScratch:
    """Memory that a thread needs for jobs of `sample_sparse`, one job at a time."""
    width = padded(topics)
    return SparseScratch(
        aligned_zeros(width, np.float32),
        aligned_zeros(width, np.float32),
        aligned_zeros(padded(width // 16), np.float32),
        aligned_zeros(width, np.float32),
        np.zeros(width, np.int32),
        np.zeros(topics, np.uint16),
        np.zeros(topics, np.bool_),
    )


@njit(nogil=True, cache=True)
def _sum_up(prior, scratch, bucket):  # type: ignore[no-untyped-def]
    """Recompute Σ α_k φ_k over the 16 topics of a bucket."""
    weights = simd.multiply(simd.load_floats(prior.alpha, 16 * bucket), simd.load_floats(scratch.phi, 16 * bucket))
    scratch.sums[bucket] = simd.total(weights)


@njit(nogil=True, cache=True)
def _set_phi(prior, scratch, topic, value):  # type: ignore[no-untyped-def]
    """Set φ of `topic` in `scratch` to `value`, and update the sum of its bucket, with the α of `prior`.

    A whole vector is written, because a load cannot be forwarded from a store that covers only part of it.
    """
    first = topic & ~15
    here = simd.splat_whole(np.int32(topic - first))
    phi = simd.where_equal(simd.lane_numbers(), here, simd.splat_float(value), simd.load_floats(scratch.phi, first))
    simd.store_floats(scratch.phi, first, phi)
    scratch.sums[topic >> 4] = simd.total(simd.multiply(phi, simd.load_floats(prior.alpha, first)))


@njit(nogil=True, cache=True)
def _start_job(totals, prior, scratch):  # type: ignore[no-untyped-def]
    """Set φ to that of a word without counts; returns its smoothing mass."""
    beta = np.float32(prior.beta)
    mass = 0.0
    for k in range(len(totals)):
        scratch.inverse[k] = 1.0 / (totals[k] + prior.beta_sum)
        scratch.phi[k] = beta * scratch.inverse[k]
        mass += float(prior.alpha[k]) * float(scratch.phi[k])
    for bucket in range(len(scratch.phi) >> 4):
        _sum_up(prior, scratch, bucket)
    return mass


@njit(nogil=True, cache=True)
def _sum_up_listed(prior, scratch, size):  # type: ignore[no-untyped-def]
    """Recompute the sums of the buckets that contain the listed topics."""
    buckets = len(scratch.phi) >> 4
    if size >= buckets:
        for bucket in range(buckets):
            _sum_up(prior, scratch, bucket)
    else:
        for entry in range(size):
            _sum_up(prior, scratch, scratch.listed[entry] >> 4)


@njit(nogil=True, cache=True)
def _load_word(words, word, prior, scratch):  # type: ignore[no-untyped-def]
    """Load the counts of row `word` of `words`, a `SparseWords`, into the dense arrays of `scratch`.

    Returns the number of listed topics, and what they add to the smoothing mass Σ α_k φ_k, with the α of `prior`.
    """
    first, size = words.offsets[word], np.int64(words.sizes[word])
    mass = 0.0
    for entry in range(size):
        topic = words.topics[first + entry]
        count = words.counts[first + entry]
        base = scratch.phi[topic]
        scratch.listed[entry] = topic
        scratch.is_listed[topic] = True
        scratch.counts[topic] = count
        scratch.phi[topic] = np.float32(count + prior.beta) * scratch.inverse[topic]
        mass += float(prior.alpha[topic]) * (float(scratch.phi[topic]) - float(base))
    _sum_up_listed(prior, scratch, size)
    return size, mass


@njit(nogil=True, cache=True)
def _store_word(words, word, prior, scratch, size):  # type: ignore[no-untyped-def]
    """Write the counts in `scratch` back to row `word` of `words`, and reset φ to that of a word without counts.

    `size` is the number of listed topics; `prior` has β, and the α of the sums.
    """
    place = words.offsets[word]
    beta = np.float32(prior.beta)
    for entry in range(size):
        topic = scratch.listed[entry]
        count = scratch.counts[topic]
        scratch.is_listed[topic] = False
        scratch.counts[topic] = 0
        scratch.phi[topic] = beta * scratch.inverse[topic]
        if count > 0:
            words.topics[place] = topic
            words.counts[place] = count
            place += 1
    words.sizes[word] = place - words.offsets[word]
    _sum_up_listed(prior, scratch, size)


@njit(nogil=True, cache=True)
def _weigh_document(entries, first, vectors, topic_bits, held, kept_phi, scratch):  # type: ignore[no-untyped-def]
    """Compute running sums of n_dk φ_k over a document's list, without the token itself, in `scratch`.

    The list is the `16 * vectors` places of `entries` from `first` on, each a topic in the lowest `topic_bits` bits and
    its count. `held` is the token's topic, whose φ without the token is `kept_phi`; −1 if it has no topic yet.

    Returns
    -------
    The sums of the 16 lanes over the whole list, a vector register, and the position of `held` in `entries`, which is
    before `first` if it is not in the list.
    """
    topic_mask = simd.splat_whole(np.int32((1 << topic_bits) - 1))
    shift = simd.splat_whole(np.int32(topic_bits))
    held_topic = simd.splat_whole(np.int32(held))
    kept = simd.splat_float(kept_phi)
    one = simd.splat_float(np.float32(1.0))
    sums = simd.splat_float(np.float32(0.0))
    place = np.int64(-1)
    for j in range(vectors):
        pairs = simd.load_wholes(entries, first + 16 * j)
        topics = simd.bits_and(pairs, topic_mask)
        counts = simd.as_floats(simd.shift_right(pairs, shift))
        weights = simd.multiply(counts, simd.gather(scratch.phi, topics))
        # Unused places are topic 0 with a count of 0: they must not become negative.
        less = simd.multiply(simd.positive_part(simd.subtract(counts, one)), kept)
        sums = simd.add(sums, simd.where_equal(topics, held_topic, less, weights))
        simd.store_floats(scratch.running, 16 * j, sums)
        found = simd.mask_equal(topics, held_topic)
        if (found != 0) & (place < 0):
            place = 16 * j + simd.first_bit(found)
    return sums, first + place


@njit(nogil=True, cache=True)
def _pick_smoothing(prior, scratch, place):  # type: ignore[no-untyped-def]
    """The topic that `place` falls on in Σ α_k φ_k: first among the sums of 16, then among the 16."""
    vectors = len(scratch.sums) >> 4
    sums = simd.splat_float(np.float32(0.0))
    for j in range(vectors):
        sums = simd.add(sums, simd.load_floats(scratch.sums, 16 * j))
        simd.store_floats(scratch.running, 16 * j, sums)
    prefix = simd.prefix_sums(sums)
    place = min(place, simd.lane(prefix, 15) * BELOW_ONE)
    bucket, rest = pick(scratch.running, vectors, sums, prefix, place)
    weights = simd.multiply(simd.load_floats(prior.alpha, 16 * bucket), simd.load_floats(scratch.phi, 16 * bucket))
    prefix = simd.prefix_sums(weights)
    chosen, _ = pick_lane(weights, prefix, min(rest, simd.lane(prefix, 15) * BELOW_ONE))
    return 16 * bucket + chosen


@njit(nogil=True, cache=True)
def _place_of(documents, document, topic):  # type: ignore[no-untyped-def]
    """Position of a topic in a document's `entries`; the first position after its list if it is absent."""
    first, size = documents.offsets[document], np.int64(documents.sizes[document])
    topic_mask = simd.splat_whole(np.int32((1 << documents.topic_bits) - 1))
    wanted = simd.splat_whole(np.int32(topic))
    for j in range((size + 15) >> 4):
        found = simd.mask_equal(simd.bits_and(simd.load_wholes(documents.entries, first + 16 * j), topic_mask), wanted)
        if found != 0:
            return min(first + 16 * j + simd.first_bit(found), first + size)
    return first + size


@njit(nogil=True, cache=True)
def _take_from_document(documents, document, place):  # type: ignore[no-untyped-def]
    one = np.uint32(1) << np.uint32(documents.topic_bits)
    entry = documents.entries[place] - one
    if entry >= one:
        documents.entries[place] = entry
    else:
        size = documents.sizes[document] - 1
        last = documents.offsets[document] + size
        documents.entries[place] = documents.entries[last]
        documents.entries[last] = 0
        documents.sizes[document] = size


@njit(nogil=True, cache=True)
def _give_to_document(documents, document, topic):  # type: ignore[no-untyped-def]
    place = _place_of(documents, document, topic)
    one = np.uint32(1) << np.uint32(documents.topic_bits)
    if place < documents.offsets[document] + documents.sizes[document]:
        documents.entries[place] += one
    else:
        documents.entries[place] = one | np.uint32(topic)
        documents.sizes[document] += 1


@njit(nogil=True, cache=True)
def sample_sparse(tokens, block, documents, words, totals, prior, scratch, key, fresh):  # type: ignore[no-untyped-def]
    """Draw a new topic for every token of a worker in one block, given all others.

    As `lda_dense_sampler.sample_dense`, with the same `tokens`, `block`, `totals`, `prior`, `key` and `fresh`, but with
    `SparseDocuments` as `documents`, `SparseWords` as `words` and a `SparseScratch` as `scratch`.
    """
    phi = scratch.phi
    base_mass = _start_job(totals, prior, scratch)  # Σ α_k φ_k of a word without counts
    last_token = tokens.run_offsets[tokens.block_runs[block + 1]] - 1
    one = np.uint32(1) << np.uint32(documents.topic_bits)
    topic_mask = np.uint32(one - np.uint32(1))
    count = 0
    for run in range(tokens.block_runs[block], tokens.block_runs[block + 1]):
        word = tokens.words[run]
        size, added = _load_word(words, word, prior, scratch)
        mass = base_mass + added
        for token in range(tokens.run_offsets[run], tokens.run_offsets[run + 1]):
            soon = documents.offsets[tokens.documents[min(token + _AHEAD, last_token)]]
            simd.prefetch(documents.entries, soon)
            simd.prefetch(documents.entries, soon + 16)
            document = tokens.documents[token]
            held = np.int64(-1)
            kept_phi = np.float32(0.0)
            kept_inverse = np.float32(0.0)
            kept_mass = mass
            if not fresh:
                held = np.int64(tokens.topics[token])
                kept_inverse = np.float32(1.0 / (totals[held] - 1 + prior.beta_sum))
                kept_phi = np.float32(scratch.counts[held] - 1 + prior.beta) * kept_inverse
                kept_mass += float(prior.alpha[held]) * (float(kept_phi) - float(phi[held]))
            first = documents.offsets[document]
            vectors = np.int64(documents.sizes[document] + 15) >> 4
            sums, held_place = _weigh_document(
                documents.entries, first, vectors, documents.topic_bits, held, kept_phi, scratch
            )
            prefix = simd.prefix_sums(sums)
            own = simd.lane(prefix, 15)
            place = uniform(key, count) * (own + np.float32(kept_mass))
            count += 1
            if place < own:
                entry, _ = pick(scratch.running, vectors, sums, prefix, place)
                topic = np.int64(documents.entries[first + entry] & topic_mask)
                if topic == held:
                    continue
                documents.entries[first + entry] += one
                if held >= 0:
                    _set_phi(prior, scratch, held, kept_phi)
                    _take_from_document(documents, document, held_place)
            else:
                present = kept_phi
                if held >= 0:
                    present = phi[held]
                    _set_phi(prior, scratch, held, kept_phi)
                topic = _pick_smoothing(prior, scratch, place - own)
                if topic == held:
                    _set_phi(prior, scratch, held, present)
                    continue
                if held >= 0:
                    _take_from_document(documents, document, held_place)
                _give_to_document(documents, document, topic)
            if held >= 0:
                scratch.counts[held] -= 1
                totals[held] -= 1
                base_mass += (
                    float(prior.alpha[held]) * prior.beta * (float(kept_inverse) - float(scratch.inverse[held]))
                )
                scratch.inverse[held] = kept_inverse
                mass = kept_mass
            if not scratch.is_listed[topic]:
                scratch.is_listed[topic] = True
                scratch.listed[size] = topic
                size += 1
            scratch.counts[topic] += 1
            totals[topic] += 1
            inverse = np.float32(1.0 / (totals[topic] + prior.beta_sum))
            base_mass += float(prior.alpha[topic]) * prior.beta * (float(inverse) - float(scratch.inverse[topic]))
            scratch.inverse[topic] = inverse
            higher = np.float32(scratch.counts[topic] + prior.beta) * inverse
            mass += float(prior.alpha[topic]) * (float(higher) - float(phi[topic]))
            _set_phi(prior, scratch, topic, higher)
            tokens.topics[token] = topic
        _store_word(words, word, prior, scratch, size)
