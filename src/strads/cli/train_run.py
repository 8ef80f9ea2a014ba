"""One training run of any model: read, fit, keep records and snapshots, report the outcome."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

import typer
from rich.console import Console

from strads import models
from strads.checkpoints import current_session
from strads.cli import cluster_options
from strads.cli.environment import backends, machine, versions
from strads.cli.failure import INTERRUPTED, RunFailedError, describe
from strads.cli.interrupts import Interrupts
from strads.cli.narrow import NARROW
from strads.cli.run_directory import MODEL, RunDirectory
from strads.cli.snapshots import Snapshots
from strads.cli.terminal import OutputGoneError, last_words, print_summary, standard_output
from strads.cli.train_options import Common
from strads.cluster import Runtime
from strads.progress import EpochProgress, Shown, format_figure, format_rate, samples_per_second

Record = dict[str, Any]


@dataclass(kw_only=True)
class TrainRun(ABC):
    """A command of `strads train`, whose fields are its options and whose docstring is its help.

    `execute` performs it. Subclasses define what is specific to their model.
    """

    data: Path  # the data file
    parameters: Any  # options that are parameters of the estimator, by its names for them
    common: Common  # the output directory, and where it runs

    estimator: ClassVar[str]  # its class in `strads.models`
    texts: ClassVar[tuple[str, ...]] = ()  # names of additional files that are saved with the model
    saves_while_training: ClassVar[bool] = True  # whether the model can be saved between iterations
    # Whether an interrupt takes effect only after the current iteration, as it would leave no valid model before.
    ends_iterations: ClassVar[bool] = True

    model: Any = field(init=False)  # the estimator to train, an `IterativeEstimator`
    _directory: RunDirectory = field(init=False)
    _snapshots: Snapshots = field(init=False)
    _unmeasured: str | None = field(init=False, default=None)

    @property
    def shown(self) -> Shown:
        """What the progress shows of a record."""
        return self.model.shown

    @abstractmethod
    def read(self) -> None:
        """Read the data and hold some out; invalid data and parameters are rejected before anything is written."""

    def model_parameters(self) -> Record:
        """Parameters that the estimator is made with."""
        return self.recorded_parameters()

    def recorded_parameters(self) -> Record:
        """Parameters of the estimator, for the run's record."""
        return asdict(self.parameters) | {"random_state": self.common.seed}

    @abstractmethod
    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train; `on_record` is called with the record of each iteration."""

    @abstractmethod
    def announcement(self) -> list[str]:
        """Lines that describe the training data."""

    def arguments(self) -> Record:
        """Options of this model's command that are not parameters of its estimator, for the run's record."""
        return {}

    @abstractmethod
    def about_data(self) -> Record:
        """Description of the data, for the run's record."""

    def figures(self, last: Mapping[str, Any]) -> Record:
        """Results for the run's record, if known; `last` is the record that the model comes from."""
        return {name: last.get(name) for name in self.shown.measures}

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Labels and values of the results, as shown to the user."""
        return [(label, format_figure(last[name])) for name, label in self.shown.measures.items() if name in last]

    def prepare(self, console: Console) -> None:
        """Do whatever has to precede training and may take long; `console` shows its progress."""
        return

    def complete_model(self) -> None:
        """Add to the trained model what only the command knows, before it is saved."""
        return

    def measure(self) -> None:
        """Evaluate the trained model on held-out data, if that is not done during training."""
        return

    @property
    def history(self) -> list[Record]:
        """The records so far."""
        return getattr(self.model, "history_", [])

    @property
    def planned(self) -> int | None:
        """Expected number of records; None if unknown."""
        return self.model.max_iter if self.shown.has_plan else None

    def kept_record(self, history: list[Record]) -> Mapping[str, Any]:
        """The record of the iteration that the model comes from."""
        return history[-1] if history else {}

    def texts_of_model(self) -> Mapping[str, str]:
        """The contents of `texts`."""
        return {}

    def execute(self, console: Console, runtime: Runtime) -> int:
        """Train on the given runtime, and return the exit code: 0, or 130 after an interrupt.

        Raises
        ------
        InputError
            For data or a directory that cannot be used; nothing has been written.
        RunFailedError
            If training fails; the directory keeps the metrics until then.
        """
        overwrite = self.common.overwrite or self.common.resume
        directory = RunDirectory(self.common.out, overwrite=overwrite, texts=self.texts)
        with Interrupts() as signals, directory as self._directory:
            console.print(f"reading {self.data}", soft_wrap=True, markup=False)
            try:
                self.read()
                self.model = getattr(models, self.estimator)(**self.model_parameters())
                self._announce(console, runtime)
                self.prepare(console)
            except KeyboardInterrupt:
                console.print("interrupted before training began: nothing was written")
                return INTERRUPTED
            self._snapshots = Snapshots(self.model, self._directory.model)
            try:
                with signals.shielded():
                    self._directory.begin(self._record(runtime), continues=self.common.resume)
                signals.check()
                self._train(console, signals)
            except KeyboardInterrupt as reason:
                name = signals.received or (reason.signal if isinstance(reason, OutputGoneError) else "SIGINT")
                with signals.shielded():
                    self._end_early(name)
                with last_words(console) if _mpiexec_ends(runtime, signals) else nullcontext(console) as shown:
                    self._tell_early_end(shown, name)
                return INTERRUPTED
            self._summarize(console)
        return 0

    def _train(self, console: Console, signals: Interrupts) -> None:
        def on_record(record: Record) -> None:
            with signals.shielded():  # leaves no partially written file
                self._directory.append(record)
                if self.saves_while_training and not _is_repeating():
                    self._snapshots.take_if_due()
            progress.update(record)
            signals.check()

        # Immediately: there may not be enough time to save the model.
        signals.on_first = lambda signal: self._directory.finish("interrupted", {"signal": signal, **self._result()})
        # An epoch of a program with checkpoints is ended, too: they hold the state after whole epochs only.
        ends_iterations = self.ends_iterations or current_session() is not None
        deferred = signals.deferred() if ends_iterations else nullcontext()
        try:
            with EpochProgress(self.planned, self.shown, console=console) as progress, deferred:
                self.fit(on_record)
            with signals.shielded():
                self._save()
            self._measure_if_possible(signals)
            with signals.shielded():
                note = {} if self._unmeasured is None else {"not_measured": self._unmeasured}
                self._directory.complete(self.history)
                self._directory.finish("finished", self._result() | note)
        except Exception as error:
            if signals.received is not None:  # nodes that are being terminated fail
                raise KeyboardInterrupt from error
            raise self._failure(error) from error
        finally:
            signals.on_first = lambda signal: None

    def _failure(self, error: Exception) -> RunFailedError:
        reason, snapshot = describe(error), self._snapshots.epoch
        self._directory.finish("failed", {"error": reason, **self._result()})
        kept = f"{self.shown.period}s until then: {self._directory.path}/metrics.jsonl"
        if snapshot is not None:
            kept += f"; model of {self.shown.period} {snapshot}: {self._directory.model}"
        return RunFailedError(f"{reason} ({kept})")

    def _save(self) -> None:
        epoch = int(self._last().get("iteration", 0))
        self.complete_model()
        try:
            self._snapshots.take(epoch)
        except OSError as error:
            raise self._saved_elsewhere(error) from error
        for name, text in self.texts_of_model().items():
            self._directory.write(name, text)

    def _saved_elsewhere(self, error: OSError) -> RunFailedError:
        """Save the model to the system's folder for temporary files, as its own cannot be written to."""
        try:
            path = Path(tempfile.mkdtemp(prefix="strads-")) / MODEL
            self.model.save(path)
        except OSError:
            return RunFailedError(f"the model cannot be saved: {describe(error)}")
        return RunFailedError(f"{describe(error)}: the model is saved to {path} instead")

    def _measure_if_possible(self, signals: Interrupts) -> None:
        """Evaluate the trained model; if that fails, the model is no worse."""
        try:
            self.measure()
        except Exception as error:
            signals.check()
            self._unmeasured = describe(error)

    def _end_early(self, signal: str) -> None:
        """Save the results so far; `mpiexec` allows a quarter of a second for it."""
        try:
            if self._is_trained:
                self._directory.complete(self.history)
                self._save()
        finally:
            self._directory.finish("interrupted", {"signal": signal, **self._result()})

    def _tell_early_end(self, console: Console, signal: str) -> None:
        done = len(self.history)
        of_all = "" if self.planned is None else f" of {self.planned}"
        console.print(f"interrupted ({signal}) after {done}{of_all} {self.shown.period}s")
        if self._is_trained and not done:
            console.print(f"the model may have learnt little or nothing: no {self.shown.period} was completed")
        if self._snapshots.epoch is None:
            if done:
                console.print("no model was saved: the training is lost")
            return
        if not self._is_trained:
            console.print(
                f"the model is that of {self.shown.period} {self._snapshots.epoch}: later ones were lost with the nodes"
            )
        print_summary(console, self._where_it_is())

    @property
    def _is_trained(self) -> bool:
        """Whether the trained parameters are in this process, so that they can be saved."""
        return self.model.__sklearn_is_fitted__()

    def _last(self) -> Mapping[str, Any]:
        return self.kept_record(self.history)

    def _result(self) -> Record:
        last = self._last()
        return {
            f"{self.shown.period}s": len(self.history),
            f"model_{self.shown.period}": self._snapshots.epoch,
            "training_seconds": last.get("seconds"),
            **self.figures(last),
            f"{self.shown.unit}_per_second": samples_per_second(self.history),
        }

    def _summarize(self, console: Console) -> None:
        history = self.history
        seconds = history[-1]["seconds"]
        separator = ", " if console.width >= NARROW else ",\n"
        note = [("note", f"held-out data could not be evaluated: {self._unmeasured}")] if self._unmeasured else []
        rows = [
            *self.results(self._last()),
            *note,
            ("throughput", format_rate(samples_per_second(history), self.shown.unit)),
            ("training", f"{seconds:.1f} s for {len(history)} {self.shown.period}s{separator}compiling included"),
        ]
        console.print()
        print_summary(console, rows + self._where_it_is())

    def _where_it_is(self) -> list[tuple[str, str]]:
        model = str(self._directory.model)
        paths = [path for path in (self._directory.path / name for name in self.texts) if path.exists()]
        texts = [(path.stem, str(path)) for path in paths]  # a snapshot alone has none
        return [*texts, ("model", model), ("load it", f'strads.models.{type(self.model).__name__}.load("{model}")')]

    def _announce(self, console: Console, runtime: Runtime) -> None:
        for line in self.announcement():
            console.print(line, soft_wrap=True, markup=False)
        if not runtime.is_local:
            hosts = ", ".join(sorted(set(runtime.cluster.hosts)))
            console.print(f"{cluster_options.describe(runtime)} ({runtime.cluster.backend}) on {hosts}", soft_wrap=True)

    def _record(self, runtime: Runtime) -> Record:
        common = asdict(self.common)
        for name in ("seed", "debug", "quiet"):  # the seed has its own entry
            del common[name]
        arguments = {"data": self.data, **self.arguments(), **common}
        return {
            "command": f"train {type(self).__name__.removesuffix('Run').lower()}",
            "model": type(self.model).__name__,
            "arguments": arguments | self.recorded_parameters(),
            "seed": self.common.seed,
            "data": {"file": self.data.resolve(), "bytes": self.data.stat().st_size, **self.about_data()},
            "versions": versions() | (backends() if runtime.cluster.backend != "threads" else {}),
            "machine": machine() | {"threads": runtime.threads},
            "cluster": cluster_options.record(runtime),
        }


def _is_repeating() -> bool:
    """Whether the records come from a checkpoint: the model is then that of a later moment."""
    session = current_session()
    return session is not None and session.is_skipping


def _mpiexec_ends(runtime: Runtime, signals: Interrupts) -> bool:
    """Whether `mpiexec` has interrupted the run: on Ctrl-C it terminates its processes by SIGTERM."""
    return runtime.cluster.backend == "mpi" and not runtime.is_local and signals.received == "SIGTERM"


def training(kind: type[TrainRun]) -> Callable[..., None]:
    """Return the command that makes a run of its options, and performs it."""

    @wraps(kind, updated=())
    def train(**given: Any) -> None:
        run = kind(**given)
        with run.common.start() as runtime:
            code = run.execute(standard_output(quiet=run.common.quiet), runtime)
        raise typer.Exit(code)

    return train
