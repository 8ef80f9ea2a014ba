"""Latent Dirichlet allocation by collapsed Gibbs sampling, a token at a time (Griffiths and Steyvers, PNAS 2004)."""

from typing import Any

import numpy as np

import strads

TOPICS = 32


def body(k, tokens, topics, uniform, doc_topic, word_topic, totals, alpha, beta, beta_sum):
    """Draw a new topic for one token."""
    t = tokens[k]
    doc, word = doc_topic[t.doc], word_topic[t.word]
    old = topics[k]
    doc[old] -= 1
    word[old] -= 1
    totals[old] -= 1
    cumulative = np.empty(len(doc))
    mass = 0.0
    for z in range(len(doc)):
        mass += (doc[z] + alpha) * (word[z] + beta) / (totals[z] + beta_sum)
        cumulative[z] = mass
    threshold = uniform[k] * mass
    new = 0
    while cumulative[new] < threshold:
        new += 1
    topics[k] = new
    doc[new] += 1
    word[new] += 1
    totals[new] += 1


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Documents of about 150 words with planted topics; words are as frequent as by Zipf's law."""
    rng = np.random.default_rng(seed)
    n, words = int(4_000_000 * scale), int(60_000 * scale)
    docs = n // 150
    tokens = np.empty(n, [("doc", "i4"), ("word", "i4")])
    tokens["doc"] = np.sort(rng.integers(0, docs, n))
    planted = rng.integers(0, TOPICS, (docs, 3))[tokens["doc"], rng.integers(0, 3, n)]
    rank = (words ** rng.random(n)).astype(int) - 1
    tokens["word"] = rng.permutation(words)[rank // TOPICS * TOPICS + np.minimum(planted, (words - 1) % TOPICS)]
    topics = rng.integers(0, TOPICS, n).astype("i4")
    doc_topic, word_topic = np.zeros((docs, TOPICS), "i4"), np.zeros((words, TOPICS), "i4")
    np.add.at(doc_topic, (tokens["doc"], topics), 1)
    np.add.at(word_topic, (tokens["word"], topics), 1)
    totals = strads.relaxed(strads.dvector(np.bincount(topics, minlength=TOPICS).astype("i4")))
    tables = [strads.dvector(a, copy=False) for a in (tokens, topics, rng.random(n), doc_topic, word_topic)]
    return n, (*tables, totals, 0.1, 0.01, 0.01 * words)


def next_epoch(epoch: int, tokens: Any, topics: Any, uniform: strads.dvector, *_: Any) -> None:
    """Draw new uniform numbers."""
    uniform[:] = np.random.default_rng(1000 + epoch).random(len(uniform))


def objective(tokens, topics, uniform, doc_topic, word_topic, totals, alpha, beta, beta_sum) -> float:
    """Perplexity of the tokens under the present counts."""
    doc, word = doc_topic.to_numpy() + alpha, (word_topic.to_numpy() + beta) / (word_topic.to_numpy().sum(0) + beta_sum)
    t = tokens.to_numpy()[:500_000]
    likelihood = np.einsum("nz,nz->n", doc[t["doc"]], word[t["word"]]) / doc.sum(1)[t["doc"]]
    return float(np.exp(-np.mean(np.log(likelihood))))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        next_epoch(epoch, *arguments)
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: perplexity {objective(*arguments):.1f}")
