"""Reading files into dvectors."""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import DTypeLike

from strads.dds._csv import CsvOptions, Header, csv_records, record_dtype
from strads.dds._files import FilePath, check_file
from strads.dds._parquet import parquet_records
from strads.dds._text import text_storage
from strads.dds.dvector import dvector
from strads.errors import ArgumentError


def read_csv(
    path: FilePath,
    schema: Mapping[str, DTypeLike],
    *,
    delimiter: str | None = None,
    header: Header = "auto",
    comment: str | None = None,
) -> dvector:
    """Read delimited text into records.

    Parameters
    ----------
    path : path
        A text file, plain or compressed with gzip, bz2, zstd or lz4, which is recognised by its content.
    schema : dict of column name → dtype
        For instance `{"user": "i4", "item": "i4", "score": "f4"}`: integers, "f4", "f8" or "bool". In a file
        with a header these columns are taken by name, otherwise they are the first ones in this order. Others
        are ignored.
    delimiter : str, optional
        By default found out from the first lines: comma, tab, semicolon, `::`, `|` or whitespace. `" "` means
        any run of spaces and tabs.
    header : bool or "auto", default "auto"
        Whether the first line names the columns. "auto" takes it as a header if it has a name of the schema,
        or no number where numbers must be.
    comment : str, optional
        Lines that start with it are skipped.

    Returns
    -------
    dvector of shape (rows,)
        Aligned records with the fields of the schema. Blank lines make no row.

    Raises
    ------
    InputError
        If the file is missing (then a FileNotFoundError too), empty, damaged, or has a malformed line: a
        wrong number of fields, an empty field, a fraction or too large a number in an integer column, NaN or
        an infinite number. File, line (from 1) and column are named.
    ArgumentError
        If the schema or an option has no meaning.
    """
    record = record_dtype(schema)
    options = CsvOptions(delimiter, header, comment)
    return dvector(csv_records(check_file(path), record, options), copy=False)


def read_parquet(path: FilePath, schema: Mapping[str, DTypeLike] | None = None) -> dvector:
    """Read columns of a Parquet file into records.

    Parameters
    ----------
    path : path
        A Parquet file.
    schema : dict of column name → dtype, optional
        The columns to take, as in `read_csv`. By default all numeric columns in their own dtypes.

    Returns
    -------
    dvector of shape (rows,)
        Aligned records.

    Raises
    ------
    InputError
        If the file is missing, damaged or empty, lacks a column, or has a null, NaN, infinite number or a
        number that does not fit the schema; column and row (from 0) are named.
    ArgumentError
        If the schema has no meaning.
    """
    record = None if schema is None else record_dtype(schema)
    return dvector(parquet_records(check_file(path), record), copy=False)


def read_text(path: FilePath, parser: Callable[[str], Any]) -> dvector:
    """Read a UTF-8 text file through a parser of lines.

    Parameters
    ----------
    path : path
        A text file, plain or compressed with gzip, bz2, zstd or lz4, which is recognised by its content.
    parser : callable
        Takes a line without its end and returns a number; a tuple of numbers (always as many: a row); a list
        or one-dimensional array of numbers (a ragged row); a dict or named tuple of numbers (always the same
        fields: a record); or None, to skip the line.

    Returns
    -------
    dvector
        Scalars, rows, ragged rows or records. Each column has the dtype NumPy gives all its numbers: int64,
        float64 or bool for Python's.

    Raises
    ------
    InputError
        If the file is missing, empty or damaged, or at a line that is not UTF-8, on which the parser raises
        (its exception is chained), or for which it returns something else than for the first one, NaN or an
        infinite number. File and line (from 1) are named.
    ArgumentError
        If `parser` is not callable.
    """
    if not callable(parser):
        raise ArgumentError(f"a parser is a function of one line of text, not {type(parser).__name__}")
    return dvector(text_storage(check_file(path), parser), copy=False)
