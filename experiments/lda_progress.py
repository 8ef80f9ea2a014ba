"""Progress per sample of LDA, rotation against BSP copies (thesis fig. 3.6, 4.3), and s-error (supplement fig. 2).

Log-likelihood per token versus iterations for 1, 8, 64 logical nodes, all from uniform topics, IMDB reviews, K = 100.
With one node the sampler is sequential. "behind sequential" is the range over all iterations of how far a curve is
behind it at equal tokens, in percent (negative: ahead); the first of --nodes has to be 1.

Usage:
    python experiments/lda_progress.py [--nodes 1 8 64] [--topics 100] [--iterations 100]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from _data_parallel_lda import copied_topics, log_likelihood

import strads
from strads.models import Corpus
from strads.models.topics.priors import Priors
from strads.models.topics.training import TopicTraining

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from _reviews import REVIEWS, imdb_corpus

Curve = list[tuple[float, float]]  # log-likelihood per token and s-error of each iteration


def rotation(corpus: Corpus, priors: Priors, nodes: int, iterations: int) -> Curve:
    """Sample with one worker on each of so many logical nodes."""
    options = {"sampler": "auto", "start": "random", "workers": nodes, "synchronizations": None, "seed": 1}
    with (
        strads.init("threads", nodes=nodes, threads=1),
        TopicTraining(corpus, priors, **options, threads=None) as training,
    ):
        curve = []
        for _ in range(iterations):
            training.iterate()
            curve.append((training.log_likelihood() / corpus.n_tokens, training.s_error))
        return curve


def copies(corpus: Corpus, priors: Priors, workers: int, iterations: int, times: int) -> Curve:
    """Sample with so many workers, each with a copy, brought together so many times in an iteration."""
    with (
        strads.init("threads", threads=2),
        copied_topics(corpus, priors, workers, times=times, blocks=20, seed=1) as engine,
    ):
        curve = []
        for _ in range(iterations):
            engine.iterate()
            curve.append((log_likelihood(engine) / corpus.n_tokens, float("nan")))
        return curve


def main() -> None:
    """Print a table of curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=100)
    options = parser.parse_args()
    if not REVIEWS.is_file():
        parser.error(f"{REVIEWS}: no such file; it has the labelled IMDB reviews (Maas et al. 2011), one a line")
    corpus, priors = imdb_corpus(), Priors(np.full(options.topics, 0.1), 0.01)
    shown = [i - 1 for i in (1, 2, 5, 10, 20, 50, 100, 200, 500) if i <= options.iterations]
    print(
        f"{'':28}" + "".join(f"{f'iter. {i + 1}':>10}" for i in shown) + "   behind sequential   s-error, most and last"
    )
    sequential: Curve = []
    for nodes in options.nodes:
        runs = {"rotation": lambda n=nodes: rotation(corpus, priors, n, options.iterations)}
        if nodes > 1:
            for times in (1, 10):
                name = f"copies, {times} a pass"
                runs[name] = lambda n=nodes, t=times: copies(corpus, priors, n, options.iterations, t)
        for name, run in runs.items():
            curve = run()
            sequential = sequential or curve
            behind = [100 * (s[0] - c[0]) / -s[0] for s, c in zip(sequential, curve, strict=True)]
            errors = [error for _, error in curve]
            print(
                f"{name:18} {nodes:3} nodes "
                + "".join(f"{curve[i][0]:10.4f}" for i in shown)
                + f"   {min(behind):+6.2f} … {max(behind):+5.2f} %   {max(errors):.4f} {errors[-1]:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
