"""One training of matrix factorization: read, hold out, fit, keep records, tell the result."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from strads import dvector
from strads.cli import cluster_options, interrupts
from strads.cli.environment import backends, machine, versions
from strads.cli.failure import RunFailedError, describe
from strads.cli.interrupts import Interrupts
from strads.cli.ratings_file import Ratings, read_ratings
from strads.cli.run_directory import RunDirectory
from strads.cli.snapshots import Snapshots
from strads.cli.summary import print_summary
from strads.cli.terminal import last_words
from strads.cluster import Runtime
from strads.errors import InputError
from strads.progress import EpochProgress, format_rate, samples_per_second

if TYPE_CHECKING:
    from strads.models import MatrixFactorization

EpochRecord = dict[str, Any]
MEASURES = {"rmse": "RMSE", "validation_rmse": "held-out"}


@dataclass
class MfRun:
    """What was asked for on the command line; `execute` does it."""

    data: Path
    out: Path
    columns: tuple[str, ...] | None
    delimiter: str | None
    holdout: float
    overwrite: bool
    where: dict[str, Any]
    parameters: dict[str, Any]
    _directory: RunDirectory = field(init=False)
    _model: "MatrixFactorization" = field(init=False)
    _snapshots: Snapshots = field(init=False)

    def execute(self, console: Console, runtime: Runtime) -> int:
        """Train where the runtime says, and return the exit code: 0, or 130 after an interrupt.

        Raises
        ------
        InputError
            For data or a directory that cannot be used; nothing has been written then.
        RunFailedError
            If training fails; the directory keeps the metrics until then.
        """
        with Interrupts() as signals, RunDirectory(self.out, overwrite=self.overwrite) as self._directory:
            try:
                ratings = read_ratings(self.data, self.columns, self.delimiter)
                train, held_out = split(ratings.records, self.holdout, self.parameters["random_state"])
            except KeyboardInterrupt:
                console.print("interrupted before training began: nothing was written")
                return interrupts.EXIT_CODE
            # Only now: wrong data is told of before the estimators are loaded.
            from strads.models import MatrixFactorization

            self._model = MatrixFactorization(**self.parameters)
            self._snapshots = Snapshots(self._model, self._directory.model)
            self._announce(console, ratings, held_out, runtime)
            try:
                with signals.shielded():
                    self._directory.begin(self._record(ratings, held_out, runtime))
                signals.check()
                self._fit(train, held_out, console, signals)
            except KeyboardInterrupt:
                with signals.shielded():
                    self._end_early(signals.received or "SIGINT")
                with last_words(console) if _mpiexec_ends(runtime, signals) else nullcontext(console) as shown:
                    self._tell_early_end(shown, signals.received or "SIGINT")
                return interrupts.EXIT_CODE
            self._summarize(console)
        return 0

    def _fit(self, train: dvector, held_out: dvector | None, console: Console, signals: Interrupts) -> None:
        def on_epoch(record: EpochRecord) -> None:
            with signals.shielded():  # no file is left half written
                if record["iteration"] >= 1:
                    self._directory.append(record)
                self._snapshots.take_if_due()
            progress.update(record)
            signals.check()

        # At once: the time for the model may not be enough.
        signals.on_first = lambda signal: self._directory.finish("interrupted", {"signal": signal, **self._result()})
        try:
            with EpochProgress(self._model.max_iter, MEASURES, unit="ratings", console=console) as progress:
                self._model.fit(train, validation=held_out, on_epoch=on_epoch)
            with signals.shielded():
                self._snapshots.take(int(self._last_record().get("iteration", 0)))
                self._directory.finish("finished", self._result())
        except Exception as error:
            if signals.received is not None:  # nodes that are being ended fail
                raise KeyboardInterrupt from error
            reason, snapshot = describe(error), self._snapshots.epoch
            self._directory.finish("failed", {"error": reason, **self._result()})
            kept = f"epochs until then: {self._directory.path}/metrics.jsonl"
            if snapshot is not None:
                kept += f"; model of epoch {snapshot}: {self._directory.model}"
            raise RunFailedError(f"{reason} ({kept})") from error
        finally:
            signals.on_first = lambda signal: None

    def _end_early(self, signal: str) -> None:
        """Save what was learnt; `mpiexec` leaves a quarter of a second for it."""
        if self._is_trained:
            self._directory.complete(self._model.history_)
            self._snapshots.take(int(self._last_record().get("iteration", 0)))
        self._directory.finish("interrupted", {"signal": signal, **self._result()})

    def _tell_early_end(self, console: Console, signal: str) -> None:
        epochs = len(getattr(self._model, "history_", []))
        console.print(f"interrupted ({signal}) after {epochs} of {self._model.max_iter} epochs")
        if self._is_trained and not epochs:
            console.print("the model may have learnt little or nothing: no epoch was completed")
        if self._snapshots.epoch is not None:
            if not self._is_trained:
                console.print(
                    f"the model is that of epoch {self._snapshots.epoch}: later ones were lost with the nodes"
                )
            print_summary(console, self._where_it_is())

    @property
    def _is_trained(self) -> bool:
        return hasattr(self._model, "user_factors_")

    def _result(self) -> dict[str, Any]:
        history = getattr(self._model, "history_", [])
        last = self._last_record()
        return {
            "epochs": len(history),
            "model_epoch": self._snapshots.epoch,
            "training_seconds": last.get("seconds"),
            "rmse": last.get("rmse"),
            "validation_rmse": last.get("validation_rmse"),
            "ratings_per_second": samples_per_second(history),
        }

    def _last_record(self) -> EpochRecord:
        """The record of the epoch that the model comes from."""
        history = getattr(self._model, "history_", [])
        if not history:
            return {}
        if self._model.early_stopping:
            return min(history, key=lambda record: record["validation_rmse"])
        last: EpochRecord = history[-1]
        return last

    def _summarize(self, console: Console) -> None:
        history, kept = self._model.history_, self._last_record()
        rows = []
        if "validation_rmse" in kept:
            best = f", epoch {kept['iteration']:.0f}" if self._model.early_stopping else ""
            rows.append(("held-out RMSE", f"{kept['validation_rmse']:.4f}{best}"))
        rows += [
            ("training RMSE", f"{kept['rmse']:.4f}"),
            ("throughput", format_rate(samples_per_second(history), "ratings")),
            ("training", f"{history[-1]['seconds']:.1f} s for {len(history)} epochs, compiling included"),
        ]
        console.print()
        print_summary(console, rows + self._where_it_is())

    def _where_it_is(self) -> list[tuple[str, str]]:
        model = str(self._directory.model)
        return [("model", model), ("load it", f'strads.models.MatrixFactorization.load("{model}")')]

    def _announce(self, console: Console, ratings: Ratings, held_out: dvector | None, runtime: Runtime) -> None:
        held = f"; {len(held_out):,} held out" if held_out is not None else ""
        console.print(
            f"{self.data}\n{len(ratings.records):,} ratings of {ratings.distinct('item'):,} items "
            f"by {ratings.distinct('user'):,} users{held}",
            soft_wrap=True,
            markup=False,
        )
        if ratings.columns not in (("1", "2", "3"), ("user", "item", "score")):
            user, item, score = ratings.columns
            console.print(f"columns: {user} is the user, {item} the item, {score} the score", markup=False)
        if not runtime.is_local:
            hosts = ", ".join(sorted(set(runtime.cluster.hosts)))
            console.print(f"{cluster_options.describe(runtime)} ({runtime.cluster.backend}) on {hosts}", soft_wrap=True)

    def _record(self, ratings: Ratings, held_out: dvector | None, runtime: Runtime) -> dict[str, Any]:
        records = ratings.records
        arguments = {
            "data": str(self.data),
            "out": str(self.out),
            "columns": self.columns,
            "delimiter": self.delimiter,
            "holdout": self.holdout,
            "overwrite": self.overwrite,
            **self.where,
        }
        return {
            "command": "train mf",
            "model": type(self._model).__name__,
            "arguments": arguments | self.parameters,
            "seed": self.parameters["random_state"],
            "data": {
                "file": str(self.data.resolve()),
                "bytes": self.data.stat().st_size,
                "columns": ratings.columns,
                "ratings": len(records),
                "held_out": 0 if held_out is None else len(held_out),
                "users": ratings.distinct("user"),
                "items": ratings.distinct("item"),
                "largest_user_id": int(records["user"].max()),
                "largest_item_id": int(records["item"].max()),
            },
            "versions": versions() | (backends() if runtime.cluster.backend != "threads" else {}),
            "machine": machine() | {"threads": runtime.threads},
            "cluster": cluster_options.record(runtime),
        }


def _mpiexec_ends(runtime: Runtime, signals: Interrupts) -> bool:
    """Whether it is `mpiexec` that has interrupted the run: on Ctrl-C it ends its processes by SIGTERM."""
    return runtime.cluster.backend == "mpi" and not runtime.is_local and signals.received == "SIGTERM"


def split(records: NDArray[np.void], share: float, seed: int) -> tuple[dvector, dvector | None]:
    """Ratings to train on and a random share to measure on, None for a share of 0.

    Raises
    ------
    InputError
        If there are too few ratings to hold one out.
    """
    if share == 0:
        return dvector(records), None
    if len(records) < 2:
        raise InputError("a single rating leaves none to hold out: give more ratings, or --holdout 0")
    count = min(max(1, round(share * len(records))), len(records) - 1)
    held = np.zeros(len(records), bool)
    held[np.random.default_rng(seed).choice(len(records), count, replace=False)] = True
    return dvector(records[~held], copy=False), dvector(records[held], copy=False)
