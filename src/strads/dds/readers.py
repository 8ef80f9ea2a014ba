"""Reading files into dvectors.

On several nodes each reads a part of the files and keeps its rows; the order of rows is that of the files. All nodes
must see the files under the same path. A compressed text file is read by one node, and its rows then distributed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numpy.typing import DTypeLike

from strads.dds._csv import CsvOptions, CsvPart, Header, record_dtype
from strads.dds._parquet import ParquetPart, share_row_groups
from strads.dds._parts import Paths, share_out
from strads.dds._reading import read_files
from strads.dds._text import TextPart
from strads.dds.dvector import dvector
from strads.errors import ArgumentError


def read_csv(
    path: Paths,
    schema: Mapping[str, DTypeLike],
    *,
    delimiter: str | None = None,
    header: Header = "auto",
    comment: str | None = None,
) -> dvector:
    """Read delimited text into records.

    Parameters
    ----------
    path : path, or several
        A text file, plain or compressed with gzip, bz2, zstd or lz4 (detected from the content). A folder stands for
        the files in it (except those whose names start with `.` or `_`), a pattern like `part-*.csv` for the matching
        files, sorted by name; a list for all its files.
    schema : dict of column name → dtype
        For instance `{"user": "i4", "item": "i4", "score": "f4"}`: integers, "f4", "f8" or "bool". In a file with a
        header these columns are selected by name, otherwise they are the first ones, in this order. Other columns are
        ignored.
    delimiter : str, optional
        By default detected from the first lines: comma, tab, semicolon, `::`, `|` or whitespace. `" "` means any run
        of spaces and tabs.
    header : bool or "auto", default "auto"
        Whether the first line names the columns. "auto" takes it as a header if it has a name of the schema, or no
        number where numbers are required.
    comment : str, optional
        Lines that start with it are skipped.

    Returns
    -------
    dvector of shape (rows,)
        Aligned records with the fields of the schema. Blank lines are skipped.

    Raises
    ------
    InputError
        If the file is missing (then also a FileNotFoundError), empty, corrupt, or has a malformed line: a wrong
        number of fields, an empty field, a fraction or an out-of-range number in an integer column, NaN or an
        infinite number. The message names file, line (from 1) and column.
    ArgumentError
        If the schema or an option is invalid.
    """
    record = record_dtype(schema)
    options = CsvOptions(delimiter, header, comment)
    return read_files(path, share_out, partial(CsvPart, record=record, options=options), "the file has no rows")


def read_parquet(path: Paths, schema: Mapping[str, DTypeLike] | None = None) -> dvector:
    """Read columns of a Parquet file into records.

    Parameters
    ----------
    path : path, or several
        A Parquet file; a folder, pattern or list as in `read_csv`.
    schema : dict of column name → dtype, optional
        The columns to read, as in `read_csv`. By default all numeric columns in their own dtypes.

    Returns
    -------
    dvector of shape (rows,)
        Aligned records.

    Raises
    ------
    InputError
        If the file is missing, corrupt or empty, lacks a column, or has a null, NaN, infinite number or a number
        that does not fit the schema; the message names column and row (from 0).
    ArgumentError
        If the schema is invalid.
    """
    record = None if schema is None else record_dtype(schema)
    return read_files(path, share_row_groups, partial(ParquetPart, record=record), "the file has no rows")


def read_text(path: Paths, parser: Callable[[str], Any]) -> dvector:
    """Read a UTF-8 text file with a parser for its lines.

    Parameters
    ----------
    path : path, or several
        A text file, plain or compressed with gzip, bz2, zstd or lz4 (detected from the content); a folder, pattern or
        list as in `read_csv`.
    parser : callable
        Takes a line without its line end and returns a number; a tuple of numbers (a row; always the same length); a
        list or one-dimensional array of numbers (a ragged row); a dict or named tuple of numbers (a record; always
        the same fields); or None, to skip the line.

    Returns
    -------
    dvector
        Scalars, rows, ragged rows or records. Each column has the dtype that NumPy gives to its numbers: int64,
        float64 or bool for Python numbers.

    Raises
    ------
    InputError
        If the file is missing, empty or corrupt, or for a line that is not UTF-8, for which the parser raises (its
        exception is chained), or returns a result unlike the first, NaN or an infinite number. The message names file
        and line (from 1).
    ArgumentError
        If `parser` is not callable.
    """
    if not callable(parser):
        raise ArgumentError(f"a parser is a function of one line of text, not {type(parser).__name__}")
    return read_files(path, share_out, partial(TextPart, parser=parser), "the parser returned no rows for this file")
