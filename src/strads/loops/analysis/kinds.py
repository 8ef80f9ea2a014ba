"""What the analysis has to know of the arguments before it starts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TableKind:
    """What the analysis has to know of an argument that is a table."""

    depth: int  # integer indices that lead to a value (ragged rows: 2) or to a record
    record: bool = False
    relaxed: bool = False
    readonly: bool = False
    floating: bool = False  # its values are floats
    float_fields: frozenset[str] = frozenset()  # the fields of its records that are floats
    keyed: bool = False  # a map: its rows are chosen by keys
