"""Common base of the runs that train on samples: reading them, holding some out, and the table of coefficients."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strads.cli.design_file import Samples, read_samples
from strads.cli.run_directory import COEFFICIENTS
from strads.cli.samples_options import SampleOptions, SamplesOption
from strads.cli.targets import SCORE_NAMES, scores
from strads.cli.train_options import model_option, not_negative
from strads.cli.train_run import Record, TrainRun
from strads.errors import ArgumentError, InputError

InterceptOption = Annotated[bool, model_option("--intercept/--no-intercept", help="Fit an intercept.")]
BalancedOption = Annotated[
    bool, model_option("--balanced", help="Let all classes count the same, whatever their sizes.")
]
ToleranceOption = Annotated[
    float,
    model_option(callback=not_negative, help="Stop at this duality gap, as a share of the objective without features."),
]
IterationsOption = Annotated[int, model_option(min=1, help="Iterations, at most.")]


@dataclass(kw_only=True)
class SamplesRun(TrainRun):
    """Common base of the runs of `strads train lasso`, `logistic` and `mlr`; saved only when training ends."""

    data: SamplesOption
    options: SampleOptions

    texts: ClassVar[tuple[str, ...]] = (COEFFICIENTS,)
    saves_while_training: ClassVar[bool] = False

    _samples: Samples = field(init=False)
    _y: NDArray[Any] = field(init=False)
    _held_out: Samples | None = field(init=False, default=None)
    _test_y: NDArray[Any] = field(init=False)
    _scores: Record = field(init=False, default_factory=dict)

    @abstractmethod
    def targets(self, path: Path, samples: Samples) -> NDArray[Any]:
        """Return the targets in the estimator's format; called for the samples of `data` first."""

    def read(self) -> None:
        """Read the samples to train on, and those to test on."""
        options = self.options
        if options.test is None and options.test_labels is not None:
            raise InputError(f"{options.test_labels}: give the samples that these labels are of as --test")
        if options.test is not None and options.holdout:
            raise ArgumentError("--test and --holdout both say which samples to measure on: give one of them")
        self._samples = read_samples(self.data, options)
        if options.holdout:
            self._samples, self._held_out = _divided(self.data, self._samples, options.holdout, self.common.seed)
        self._y = self.targets(self.data, self._samples)
        if options.test is not None:
            of_test = replace(options, labels=options.test_labels)
            self._held_out = read_samples(options.test, of_test, like=self._samples.features)
        if self._held_out is not None:
            self._test_y = self.targets(options.test or self.data, self._held_out)

    def announcement(self) -> list[str]:
        """The amount of data."""
        note = "" if self._held_out is None else self._held_out.note
        return [self._samples.describe(self._held_out), *([note] if note else [])]

    def complete_model(self) -> None:
        """Give the model the names of its columns, by which `strads predict` finds them in other files."""
        features = self._samples.features
        if not isinstance(features.names, range) or features.names[0] != 1:
            self.model.feature_names_in_ = np.array([str(name) for name in features.lasting], object)

    def measured(self, model: Any) -> Record:
        """Return the scores of a model on the held-out samples."""
        return {} if self._held_out is None else scores(model, self._held_out.X, self._test_y)

    def measure(self) -> None:
        """Predict the held-out samples."""
        self._scores = self.measured(self.model)

    def score_rows(self) -> list[tuple[str, str]]:
        """Labels and values of the scores, as shown to the user."""
        return [(f"held-out {SCORE_NAMES[name]}", f"{value:.4f}") for name, value in self._scores.items()]

    def not_reached(self, what: str) -> tuple[str, str]:
        """Label and text of a note that the tolerance was not reached."""
        tol, limit = self.parameters.tol, self.parameters.max_iter
        return "note", f"{what} did not reach --tol {tol:g} within --max-iter {limit}"

    def arguments(self) -> Record:
        """How the files are read."""
        return self.options.recorded()

    def about_data(self) -> Record:
        """The kind of file, and the numbers of samples, features and stored entries."""
        rows, columns = self._samples.X.shape
        return {
            "kind": self._samples.kind,
            "samples": rows,
            "features": columns,
            "entries": self._samples.stored,
            "test_samples": 0 if self._held_out is None else self._held_out.X.shape[0],
        }

    def texts_of_model(self) -> Mapping[str, str]:
        """The intercept and the nonzero coefficients, the largest first; of each class, if there are several."""
        names = self._samples.names
        coef, intercept = np.atleast_2d(self.model.coef_), np.ravel(self.model.intercept_)
        classes = self._classes()
        lines = ["\t".join([*(["class"] if classes else []), "feature", "coefficient"])]
        for row, weights in enumerate(coef):
            begin = f"{classes[row]}\t" if classes else ""
            lines.append(f"{begin}(intercept)\t{float(intercept[row])!r}")
            lines += [f"{begin}{names[place]}\t{float(weights[place])!r}" for place in largest_first(weights)]
        return {COEFFICIENTS: "\n".join(lines) + "\n"}

    def _classes(self) -> list[Any]:
        """Return the class that each row of coefficients belongs to; an empty list if there are no classes."""
        classes = getattr(self.model, "classes_", np.empty(0)).tolist()
        return classes[-len(np.atleast_2d(self.model.coef_)) :] if classes else []


def largest_first(coef: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions of the nonzero coefficients, by decreasing magnitude."""
    places = np.flatnonzero(coef)
    return np.asarray(places[np.argsort(-np.abs(coef[places]), kind="stable")])


def _divided(path: Path, samples: Samples, part: float, seed: int) -> tuple[Samples, Samples]:
    """Split samples at random: return those to train on, and the share `part` that is held out."""
    count = samples.X.shape[0]
    held = round(part * count)
    if not 0 < held < count:
        raise InputError(f"{path}: --holdout {part:g} of {count:,} samples are {held:,}: some are needed for each part")
    order = np.random.default_rng(seed).permutation(count)
    return samples.take(np.sort(order[held:])), samples.take(np.sort(order[:held]))
