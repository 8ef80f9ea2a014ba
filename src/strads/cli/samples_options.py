"""Options for how samples are read, and which of them the model is tested on."""

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from strads.cli.train_options import data_option, share


def _names(value: str | None) -> str | None:
    if value is not None and not all(column_names(value)):
        raise typer.BadParameter(f"{value!r}: give names of columns, such as id,date")
    return value


def column_names(value: str | None) -> tuple[str, ...]:
    """Return the names of columns in the value of an option; those with commas are in double quotes, as in a CSV."""
    if value is None:
        return ()
    return tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), [""]))


SamplesOption = Annotated[
    Path,
    data_option(
        help="Samples: LIBSVM, MatrixMarket, npz (X and y, or scipy.sparse), or CSV with a header; text may be gzip."
    ),
]
LabelsOption = Annotated[Path | None, data_option(help="Targets, one per line or .npy, if the samples have none.")]
TargetOption = Annotated[str | None, data_option(metavar="COLUMN", help="Column of the CSV to predict.")]


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """How a file of samples is read; `drop` and `categorical` are texts for `column_names`."""

    labels: LabelsOption = None
    target: TargetOption = None
    drop: Annotated[
        str | None, data_option(metavar="COLUMN,…", callback=_names, help="Columns of the CSV to leave out.")
    ] = None
    categorical: Annotated[
        str | None,
        data_option(
            metavar="COLUMN,…", callback=_names, help="Columns of the CSV that hold categories: each becomes a feature."
        ),
    ] = None
    names: Annotated[Path | None, data_option(help="Names of the features, one per line.")] = None


@dataclass(frozen=True, kw_only=True)
class SampleOptions(DesignOptions):
    """How samples are read, and which ones the model is tested on."""

    test: Annotated[
        Path | None, data_option(help="Samples to test on; of a path, the model that is best on them is kept.")
    ] = None
    test_labels: Annotated[
        Path | None,
        data_option(help="Targets of the samples to test on, if they are in a file of their own."),
    ] = None
    holdout: Annotated[
        float, data_option(callback=share, help="Share of the samples to hold out and test on, in place of --test.")
    ] = 0.0

    def recorded(self) -> dict[str, Any]:
        """The options, for the run's record."""
        names = {name: list(column_names(getattr(self, name))) for name in ("drop", "categorical")}
        return asdict(self) | names
