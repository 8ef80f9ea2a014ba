"""`strads demo mf`: train on generated ratings, again on one thread, and compare."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import strads
from strads import cluster
from strads.cli.cluster_options import count_of
from strads.cli.comparison import Demo, sameness
from strads.cli.planted_ratings import ITEMS, NOISE, RANK, USERS, planted_ratings
from strads.cli.terminal import print_summary
from strads.models import MatrixFactorization
from strads.models.held_out import held_out
from strads.progress import format_rate, samples_per_second

_EPOCHS = 20

_NEXT = """\
What to do next
  strads demo lda                                topics of Python's own documentation
  strads train mf --data ratings.csv --out run   a model of your own ratings
  strads train mf --help                         which data, which options
  import strads; help(strads.async_for)          a parallel loop of your own"""


@dataclass
class RatingsDemo(Demo):
    """A demonstration on generated ratings, a tenth of which are held out."""

    _train: NDArray[np.void] = field(init=False)
    _held_out: NDArray[np.void] = field(init=False)

    def show(self) -> None:
        """Run the demo and report the results."""
        self._generate()
        place, threads, other = self.place, self.threads, self.other
        parallel = self._fit(f"Training on {place}")
        with strads.init("threads", threads=other):
            less = count_of(other, "thread")
            single = self._fit(f"The same on {less}, to compare", "from the same start, same order")
        self.say()
        pair = f"{place} and {less}"
        print_summary(
            self.console,
            [
                ("held-out RMSE", _quality(parallel.history_[-1]["validation_rmse"])),
                ("throughput", f"{_throughput(parallel)} on {place}"),
                ("speed-up", _speed_up(parallel, single, place, threads)),
                ("same result?", sameness(_parameters(parallel), _parameters(single), pair, "parameters")),
            ],
        )
        self.say()
        self.say(_NEXT)

    def _generate(self) -> None:
        hidden = f"{RANK} hidden factors and biases"
        records = planted_ratings(self.seed)
        ratings = f"{len(records):,} ratings"
        held = held_out(len(records), 0.1, self.seed)
        self._train, self._held_out = records[~held], records[held]
        self.say(
            f"{ratings} of {ITEMS:,} items by {USERS:,} users, generated from\n"
            f"{hidden}, plus noise of σ = {NOISE}. A tenth is held out,\n"
            "so that the model never sees it."
        )

    def _fit(self, title: str, beginning: str | None = None) -> MatrixFactorization:
        model = MatrixFactorization(
            RANK,
            max_iter=_EPOCHS,
            learning_rate=0.1,
            regularization=0.003,
            remember_ratings=False,
            random_state=self.seed,
        )
        with self.training(model, title, beginning) as progress:
            model.fit(self._train, validation=self._held_out, on_iteration=progress.update)
        return model


def _quality(rmse: float) -> str:
    return (
        f"{rmse:.4f}, {rmse / NOISE - 1:.1%} above the noise of {NOISE}. Even the hidden factors\n"
        f"themselves miss by {NOISE}, so no model can be better than that."
    )


def _speed_up(parallel: MatrixFactorization, single: MatrixFactorization, place: str, threads: int) -> str:
    if threads == 1:
        cores = cluster.available_cores()
        reason = "this machine has one core" if cores == 1 else "one thread was asked for"
        return f"none to measure: {reason}"
    ratio = samples_per_second(parallel.history_) / samples_per_second(single.history_)
    return f"{ratio:.2f}× on {place} ({_throughput(single)} on 1 thread)"


def _throughput(model: MatrixFactorization) -> str:
    return format_rate(samples_per_second(model.history_), "ratings")


def _parameters(model: MatrixFactorization) -> list[NDArray[np.float32]]:
    return [model.user_factors_, model.item_factors_, model.user_biases_, model.item_biases_]
