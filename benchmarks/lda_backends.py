"""The same LDA on every backend: threads 1 × 2, threads 2 × 1, MPI 2 × 1, Ray 2 × 1 (nodes × threads), IMDB reviews.

Each variant runs in processes of its own, one after the other, several rounds; a variant's figure is the median of its
iterations after the first five. The models are the same bits. Usage:

    python benchmarks/lda_backends.py [--topics 100 1000] [--iterations 15] [--rounds 2] [--only VARIANT …]
"""

import argparse
import os
import statistics
import tempfile

import numpy as np
from _jobs import BASE, VARIANTS, add_job_options, finish, run_variants, started
from _reviews import imdb_corpus
from lda import model_of

from strads.models import Corpus

SKIPPED = 5
TARGETS = {"mpi 2 x 1": 0.85}


def child(options: argparse.Namespace) -> None:
    """Run one variant in this process (of a job); the driver writes the result."""
    with started(options):
        arrays = np.load(options.data)
        corpus = Corpus(arrays["offsets"], arrays["words"], arrays["counts"], int(arrays["n_words"]))
        model = model_of(options.k, options.iterations, evaluate_every=options.iterations).fit(corpus)
    seconds = np.diff([0.0, *(record["seconds"] for record in model.history_)])
    finish(
        options,
        {
            "seconds": seconds[SKIPPED:].tolist(),
            "log_likelihood": model.history_[-1]["log_likelihood"],
            "tokens": corpus.n_tokens,
            "nodes": model.history_[-1]["nodes"],
        },
    )


def compare(options: argparse.Namespace, data: str, topics: int) -> None:
    """Run all variants and print their ratios to one process with two threads."""
    of_job = ["--data", data, "--k", topics, "--iterations", options.iterations]
    found = run_variants(__file__, options.only, options.rounds, of_job)
    print(f"\nK = {topics}; median of {options.rounds * (options.iterations - SKIPPED)} iterations")
    medians = {name: statistics.median(s for run in runs for s in run["seconds"]) for name, runs in found.items()}
    for name, runs in found.items():
        last = runs[-1]
        target = f" (target ≥ {TARGETS[name]})" if name in TARGETS else ""
        same = last["log_likelihood"] == found[BASE][-1]["log_likelihood"]
        sent = max(node["bytes_sent"] for node in last["nodes"])
        computing = max(node["compute_seconds"] for node in last["nodes"])
        print(
            f"  {name:14} {last['tokens'] / medians[name] / 1e6:6.1f} M tokens/s  {medians[name]:.3f} s  "
            f"{medians[BASE] / medians[name]:.2f} × {BASE}{target}; same log-likelihood: {same}; "
            f"a node sends {sent / 1e6:.1f} MB, computes {computing:.3f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    add_job_options(parser)
    parser.add_argument("--k", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        child(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus, data = imdb_corpus(), os.path.join(folder, "corpus.npz")
        np.savez(data, offsets=corpus.offsets, words=corpus.words, counts=corpus.counts, n_words=corpus.n_words)
        for topics in options.topics:
            compare(options, data, topics)


if __name__ == "__main__":
    main()
