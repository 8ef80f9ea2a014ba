"""Skip-gram with negative sampling, on all cores; `word2vec_serial.py` is the serial program."""

from math import exp, log

import numpy as np

import strads


def step(k, pairs, negatives, W, C, rate, total):
    """One pair: a word predicts one near it, against negative samples."""
    w = W[pairs[k, 0]]
    loss = 0.0
    for n in range(negatives.shape[1] + 1):
        c = C[pairs[k, 1]] if n == 0 else C[negatives[k, n - 1]]
        score = 0.0
        for f in range(len(w)):
            score += w[f] * c[f]
        sign = 1.0 if n == 0 else -1.0
        error = sign / (1.0 + exp(sign * score))
        loss += log(1.0 + exp(-sign * score))
        for f in range(len(w)):
            wf = w[f]
            w[f] += rate * error * c[f]
            c[f] += rate * error * wf
    total.add(loss)


def make_text(sentences=800, topics=10, words=20, length=10, seed=0):
    """Return sentences of words of one topic each, as numbers."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(topics, size=(sentences, 1))
    return topic * words + ((words + 1) ** rng.random((sentences, length))).astype(int) - 1


def pairs_within(text, window=2):
    """Return the pairs of words of a sentence that are at most `window` places apart."""
    found = [text[:, [i, j]] for i in range(text.shape[1]) for j in range(text.shape[1]) if 0 < abs(i - j) <= window]
    return np.concatenate(found).astype("i4")


def main(epochs=3, rank=16, drawn=5, rate=0.1):
    """Train on generated text, and show how similar words of a topic are, and words of different topics."""
    rng = np.random.default_rng(1)
    pairs = pairs_within(make_text())
    rng.shuffle(pairs)
    count = int(pairs.max()) + 1
    frequency = np.bincount(pairs[:, 1], minlength=count) ** 0.75
    negatives = np.zeros((len(pairs), drawn), "i4")
    W = strads.dvector(rng.uniform(-0.5 / rank, 0.5 / rank, (count, rank)).astype("f4"))
    C = strads.dvector.zeros((count, rank), "f4")
    for epoch in range(epochs):
        negatives[:] = rng.choice(count, negatives.shape, p=frequency / frequency.sum())
        loss = strads.accumulator(0.0)
        strads.async_for(range(len(pairs)), step, pairs, negatives, W, C, rate, loss)
        print(f"epoch {epoch + 1}: loss {loss.value / len(pairs):.4f}")
    W = W.to_numpy()
    vectors = W / np.linalg.norm(W, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T).reshape(10, 20, 10, 20)[:, :5, :, :5].mean((1, 3))
    print(f"mean cosine within a topic {np.diag(cosines).mean():.2f}, between topics {cosines.mean():.2f}")


if __name__ == "__main__":
    main()
