"""Writing a table: TSV, CSV or Parquet, to a file or to standard output."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from strads.cli.terminal import standard_output
from strads.cli.train_options import DebugOption, run_option
from strads.errors import ArgumentError, InputError
from strads.models.model_files import replacing

_DELIMITERS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
_PARQUET = ".parquet"
_ROWS = 1 << 16  # that are made text at a time


@dataclass(frozen=True, kw_only=True)
class Output:
    """Options of a command that writes a table.

    The table goes to the file `out`, or to standard output if that is None. An existing file is replaced only with
    `overwrite`; with `debug`, errors come with a traceback.

    Raises
    ------
    ArgumentError, InputError
        For an unknown file extension, a missing folder, or a file that exists already: before any work is done.
    """

    out: Annotated[
        Path | None, run_option(help="File to write: .tsv, .csv or .parquet; by default TSV on standard output.")
    ] = None
    overwrite: Annotated[bool, run_option("--overwrite", help="Replace the file.")] = False
    debug: DebugOption = False

    def __post_init__(self) -> None:
        path = self.out
        if path is None:
            return
        if path.suffix.lower() not in {*_DELIMITERS, _PARQUET}:
            raise ArgumentError(f"--out {path}: give a name that ends in .tsv, .csv or .parquet")
        if not path.parent.is_dir():
            raise InputError(f"{path.parent}: there is no such folder: make it, or choose another --out")
        if path.exists() and not self.overwrite:
            raise InputError(f"{path}: exists already: choose another --out, or give --overwrite")

    def write(self, columns: dict[str, Any], what: str) -> None:
        """Write columns with a header; a file is replaced only when the new one is complete.

        Parameters
        ----------
        columns : dict of str → array
            All of the same length.
        what : str
            What the rows are called in the message that says how many were written.
        """
        table = pa.table(columns)
        if self.out is None:
            buffer = pa.BufferOutputStream()
            _write_text(table, buffer, "\t")
            try:
                print(buffer.getvalue().to_pybytes().decode(), end="", flush=True)
            except BrokenPipeError:
                standard_output().on_broken_pipe()
            return
        suffix = self.out.suffix.lower()
        with replacing(self.out) as file:
            if suffix == _PARQUET:
                pyarrow.parquet.write_table(table, file)
            else:
                _write_text(table, file, _DELIMITERS[suffix])
        standard_output().print(f"{table.num_rows:,} {what}: {self.out}", soft_wrap=True, markup=False)


def _write_text(table: pa.Table, file: IO[bytes] | pa.BufferOutputStream, delimiter: str) -> None:
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(header.getvalue().encode())
    for batch in table.to_batches(max_chunksize=_ROWS):
        # Arrow quotes all texts, or none, and then refuses those that need it.
        try:
            text = _csv(batch, delimiter, "none")
        except pa.ArrowInvalid:
            text = _csv(batch, delimiter, "needed")
        file.write(text)


def _csv(batch: pa.RecordBatch, delimiter: str, quoting: str) -> bytes:
    buffer = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
    pyarrow.csv.write_csv(batch, buffer, options)
    return bytes(buffer.getvalue().to_pybytes())
