"""What the analysis has to know of the arguments before it starts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A field of a record: a number, or (with `depth` > 0) an array of numbers inside the record."""

    name: str
    depth: int = 0
    floating: bool = False


@dataclass(frozen=True)
class TableKind:
    """What the analysis has to know of an argument that is a table."""

    depth: int  # integer indices that lead to a value (ragged rows: 2) or to a record
    fields: tuple[Field, ...] = ()  # of records
    relaxed: bool = False
    readonly: bool = False
    floating: bool = False  # its values are floats
    keyed: bool = False  # a map: its rows are chosen by keys
    ragged: bool = False  # its rows have lengths of their own

    def field(self, name: str) -> Field | None:
        """Return a field of the records."""
        return next((field for field in self.fields if field.name == name), None)
