"""Word2Vec on the IMDB reviews: `Word2Vec` against gensim, and on every backend.

d = 100, window 5, 5 negatives, the same words and passes on both sides; both read lists of words made before.

Part `speed`: words (of the text, before subsampling) per second of one pass, strads on 2 threads against gensim with 1
and 2 workers, in turn in this process, several rounds. gensim's time is that of `train`, that of strads of `fit`.
Part `quality`: Spearman's correlation with WordSim-353 after 5 passes, mean of three seeds on both sides.
Part `backends`: threads 1 × 2, threads 2 × 1, MPI 2 × 1, Ray 2 × 1 (nodes × threads), in processes of their own; the
vectors must be the same bits.

Usage, with the peer installed (pip install gensim==4.4.0):
    python benchmarks/word2vec.py [--part speed quality backends] [--sg 1 0] [--rounds 3] [--scale 1.0]
"""

import argparse
import gzip
import hashlib
import os
import re
import statistics
import tempfile
import time
from typing import Any

import numpy as np
from _jobs import BASE, VARIANTS, add_job_options, finish, run_variants, started
from _reviews import REVIEWS

import strads
from strads.models import Sentences, Word2Vec

WORDSIM = REVIEWS.parents[1] / "eval" / "wordsim353.tsv"
SEEDS = (1, 2, 3)
PASSES = 5
TARGETS = {1: 4.0, 2: 2.5}  # × gensim's words/s with so many workers
MPI_TARGET, QUALITY_TARGET = 0.85, -0.01


def sentences_of(scale: float) -> list[list[str]]:
    """The words of a share of the reviews, in lower case."""
    with gzip.open(REVIEWS, "rt", encoding="utf-8") as file:
        lines = list(file)
    step = max(1, round(1 / scale))
    return [re.findall(r"\w+", line.split("\t", 1)[1].lower()) for line in lines[::step]]


def gensim_model(sentences: list[list[str]], workers: int, passes: int, sg: int, seed: int) -> tuple[Any, float]:
    """Train gensim's model; returns it and its words per second."""
    from gensim.models import Word2Vec as Theirs

    model = Theirs(vector_size=100, window=5, negative=5, sg=sg, workers=workers, seed=seed)
    model.build_vocab(sentences)
    begin = time.perf_counter()
    model.train(sentences, total_examples=model.corpus_count, epochs=passes)
    words = passes * sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)
    return model, words / (time.perf_counter() - begin)


def our_model(sentences: Sentences, passes: int, sg: int, seed: int, **parameters: Any) -> tuple[Word2Vec, float]:
    """Train ours; returns it and its words per second, with all that `fit` does."""
    begin = time.perf_counter()
    model = Word2Vec(epochs=passes, sg=sg, random_state=seed, **parameters).fit(sentences)
    return model, model.history_[-1]["samples"] / (time.perf_counter() - begin)


def speed(sentences: list[list[str]], sg: int, rounds: int) -> None:
    """Print words per second and their ratios."""
    begin = time.perf_counter()
    encoded = Sentences.from_text(sentences)
    read = time.perf_counter() - begin
    begin = time.perf_counter()
    our_model(encoded, 1, sg, 0)
    print(
        f"sg = {sg}: first fit {time.perf_counter() - begin:.1f} s, with compiling; lists of words read in {read:.1f} s"
    )
    ratios: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        ours = our_model(encoded, 1, sg, 0)[1]
        hogwild = our_model(encoded, 1, sg, 0, deterministic=False)[1]
        for workers, found in ratios.items():
            theirs = gensim_model(sentences, workers, 1, sg, 1)[1]
            found.append(ours / theirs)
            print(f"  strads {ours / 1e6:.2f} (Hogwild {hogwild / 1e6:.2f}), gensim with {workers} workers "
                  f"{theirs / 1e6:.2f} M words/s", flush=True)  # fmt: skip
    for workers, found in ratios.items():
        print(f"  {statistics.median(found):.1f} × gensim with {workers} workers (target ≥ {TARGETS[workers]})")


def quality(sentences: list[list[str]], sg: int) -> None:
    """Print correlations with WordSim-353."""
    encoded = Sentences.from_text(sentences)
    ours, theirs = [], []
    for seed in SEEDS:
        ours.append(our_model(encoded, PASSES, sg, seed)[0].evaluate_word_pairs(WORDSIM).spearman)
        model = gensim_model(sentences, 1, PASSES, sg, seed)[0]
        theirs.append(float(model.wv.evaluate_word_pairs(str(WORDSIM), case_insensitive=False)[1].statistic))
        print(f"  seed {seed}: strads {ours[-1]:.4f}, gensim {theirs[-1]:.4f}", flush=True)
    difference = np.mean(ours) - np.mean(theirs)
    print(f"sg = {sg}: Spearman {np.mean(ours):.4f}, gensim {np.mean(theirs):.4f}: "
          f"{difference:+.4f} (target ≥ {QUALITY_TARGET})")  # fmt: skip


def child(options: argparse.Namespace) -> None:
    """Train on one backend in this process (of a job); the driver writes the result."""
    with started(options):
        arrays = np.load(options.data)
        words = [f"w{number}" for number in range(len(arrays["counts"]))]
        sentences = Sentences(arrays["words"], arrays["offsets"], words, arrays["counts"])
        model = Word2Vec(epochs=4, sg=options.sg[0]).fit(sentences)
    seconds = np.diff([record["seconds"] for record in model.history_])
    found = {
        "seconds": seconds.tolist(),
        "digest": hashlib.sha256(model.vectors_.tobytes()).hexdigest(),
        "nodes": model.history_[-1]["nodes"],
        "samples": model.history_[0]["samples"],
    }
    finish(options, found)


def backends(sentences: list[list[str]], sg: int, rounds: int) -> None:
    """Run all variants and print their ratios to one process with two threads."""
    with tempfile.TemporaryDirectory() as folder:
        data, encoded = os.path.join(folder, "text.npz"), Sentences.from_text(sentences)
        np.savez(data, words=encoded.words, offsets=encoded.offsets, counts=encoded.counts)
        found = run_variants(__file__, list(VARIANTS), rounds, ["--data", data, "--sg", sg])
    medians = {name: statistics.median(s for run in runs for s in run["seconds"]) for name, runs in found.items()}
    for name, runs in found.items():
        last = runs[-1]
        target = f" (target ≥ {MPI_TARGET})" if name.startswith("mpi 2") else ""
        sent = max(node["bytes_sent"] for node in last["nodes"])
        computing = max(node["compute_seconds"] for node in last["nodes"])
        print(
            f"  {name:14} {last['samples'] / medians[name] / 1e6:6.2f} M words/s  "
            f"{medians[BASE] / medians[name]:.2f} × {BASE}{target}; SHA-256 {last['digest'][:12]}; "
            f"a node sends {sent / 1e6:.0f} MB, computes {computing:.2f} of {medians[name]:.2f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", default=["speed", "quality", "backends"])
    parser.add_argument("--sg", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the reviews")
    add_job_options(parser)
    options = parser.parse_args()
    if options.variant:
        child(options)
        return
    sentences = sentences_of(options.scale)
    for sg in options.sg:
        if "backends" in options.part:
            backends(sentences, sg, options.rounds)
        with strads.init("threads", threads=2):
            if "speed" in options.part:
                speed(sentences, sg, options.rounds)
            if "quality" in options.part:
                quality(sentences, sg)


if __name__ == "__main__":
    main()
