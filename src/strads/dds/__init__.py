"""Distributed data structures: tables of rows, records and ragged sequences, file readers, and access hints."""

from strads.dds._hash_index import NOT_FOUND, HashIndex, find_number
from strads.dds._keyed import KeyedTable
from strads.dds.dmap import dmap
from strads.dds.dmultimap import dmultimap
from strads.dds.dvector import dvector, from_arrow, from_numpy
from strads.dds.hints import (
    Accumulator,
    Readonly,
    Relaxed,
    Snapshot,
    accumulator,
    at_start,
    readonly,
    relaxed,
    snapshot,
)
from strads.dds.ragged import RaggedArray
from strads.dds.readers import read_csv, read_parquet, read_text

__all__ = [
    "NOT_FOUND",
    "Accumulator",
    "HashIndex",
    "KeyedTable",
    "RaggedArray",
    "Readonly",
    "Relaxed",
    "Snapshot",
    "accumulator",
    "at_start",
    "dmap",
    "dmultimap",
    "dvector",
    "find_number",
    "from_arrow",
    "from_numpy",
    "read_csv",
    "read_parquet",
    "read_text",
    "readonly",
    "relaxed",
    "snapshot",
]
