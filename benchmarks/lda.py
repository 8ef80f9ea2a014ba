"""LDA on the IMDB reviews: `LatentDirichletAllocation` against tomotopy, gensim and scikit-learn, 2 threads each.

Part `tomotopy`: seconds to the log-likelihood per token, ln p(w, z | α, β) / N, that tomotopy has after 50 iterations,
with the same α = 0.1 and β = 0.01, by one formula from the counts of both. Neither side's time has the conversion of
the corpus, compiling, or the evaluation in it; the first topics (tomotopy: uniform, strads: drawn one after the other)
are in that of strads only. Both sides run in turn in this process.

Part `perplexity`: document completion on held-out reviews, K = 100, by the same estimator for all, over seconds.

Usage, with the peers installed (pip install tomotopy==0.14.0 gensim==4.4.0):
    python benchmarks/lda.py [--topics 100 1000] [--part tomotopy perplexity] [--passes 2]
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np
from _lda_peers import gensim_lda, sklearn_lda, tomotopy_lda
from _reviews import imdb_corpus
from _topic_quality import Trained, completion_perplexity

import strads
from strads.models import Corpus, LatentDirichletAllocation

ALPHA, BETA, ITERATIONS = 0.1, 0.01, 50
TARGETS = {100: 1.0, 1000: 0.33}


def model_of(topics: int, iterations: int, evaluate_every: int = 1, seed: int = 0) -> LatentDirichletAllocation:
    return LatentDirichletAllocation(
        topics,
        doc_topic_prior=ALPHA,
        topic_word_prior=BETA,
        max_iter=iterations,
        evaluate_every=evaluate_every,
        random_state=seed,
    )


def reach(corpus: Corpus, topics: int, goal: float) -> LatentDirichletAllocation:
    """Train until the log-likelihood per token is at least `goal`."""
    model = model_of(topics, 10 * ITERATIONS)
    return model.fit(corpus, on_iteration=lambda record: record["objective"] >= goal)


def against_tomotopy(corpus: Corpus, topics: int, rounds: int) -> None:
    """Print seconds to tomotopy's log-likelihood, and their ratio."""
    ratios = []
    for seed in range(rounds):
        for iteration, seconds, counts in tomotopy_lda(
            corpus, topics, ALPHA, BETA, ITERATIONS, every=10, seed=seed + 1
        ):
            if iteration in (10, ITERATIONS):
                rate = corpus.n_tokens * iteration / seconds / 1e6
                print(f"  tomotopy  iteration {iteration:3}: {seconds:7.2f} s  {rate:5.1f} M tokens/s  "
                      f"log-likelihood {counts.log_likelihood():.4f}", flush=True)  # fmt: skip
        begin = time.perf_counter()
        model = reach(corpus, topics, counts.log_likelihood())
        whole = time.perf_counter() - begin
        history = model.history_
        for record in (history[min(9, len(history) - 1)], history[-1]):
            rate = record["samples"] / (record["seconds"] - model.start_seconds_) / 1e6
            print(f"  strads    iteration {record['iteration']:3}: {record['seconds']:7.2f} s  {rate:5.1f} M tokens/s  "
                  f"log-likelihood {record['objective']:.4f}", flush=True)  # fmt: skip
        ratios.append(history[-1]["seconds"] / seconds)
        print(f"  first topics {model.start_seconds_:.2f} s; the whole fit with evaluations {whole:.2f} s; "
              f"ratio {ratios[-1]:.2f}", flush=True)  # fmt: skip
    print(f"K = {topics}: {np.median(ratios):.2f} × tomotopy's time (target ≤ {TARGETS.get(topics, 1.0)})\n")


def strads_lda(corpus: Corpus, topics: int, stops: list[int]) -> Iterator[tuple[int, float, Trained]]:
    """Train anew to each number of iterations; yields it, the seconds, and topics."""
    for iterations in stops:
        model = model_of(topics, iterations, evaluate_every=0).fit(corpus)
        phi = model.components_ / model.components_.sum(1, keepdims=True)
        yield iterations, model.history_[-1]["seconds"], Trained(phi, model.doc_topic_prior_)


def perplexities(corpus: Corpus, topics: int, passes: int) -> None:
    """Print held-out perplexity over seconds for each library."""
    train, held_out = corpus.held_out(0.05, seed=0)
    observed, scored = held_out.split_tokens(0.5, seed=0)
    runs = {
        "strads": strads_lda(train, topics, [10, 50, 200]),
        "scikit-learn": sklearn_lda(train, topics, ALPHA, BETA, passes),
        "gensim": gensim_lda(train, topics, ALPHA, BETA, passes),
    }
    print(f"perplexity of {scored.n_tokens:,} unseen tokens, K = {topics}")
    for name, run in runs.items():
        for iteration, seconds, trained in run:
            found = completion_perplexity(trained, observed, scored)
            rate = train.n_tokens * iteration / seconds / 1e6
            print(
                f"  {name:13} {iteration:3} passes {seconds:8.1f} s  {rate:6.3f} M tokens/s  {found:8.1f}", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--part", nargs="+", default=["tomotopy", "perplexity"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--passes", type=int, default=2, help="of gensim and scikit-learn over the corpus")
    options = parser.parse_args()
    strads.init("threads", threads=2)
    corpus = imdb_corpus()
    print(corpus)
    few = corpus.take(np.arange(200))
    for topics in options.topics:
        model_of(topics, 2).fit(few)  # compiles
        if "tomotopy" in options.part:
            against_tomotopy(corpus, topics, options.rounds)
    if "perplexity" in options.part:
        perplexities(corpus, 100, options.passes)


if __name__ == "__main__":
    main()
