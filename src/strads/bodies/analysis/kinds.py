"""What the analysis needs to know about the arguments."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A field of a record: a number, or an array of numbers inside the record."""

    name: str  # in the record dtype
    shape: tuple[int, ...] = ()  # of the array; (): a number
    floating: bool = False  # its values are floats
    integer: bool = False  # its values are signed integers, or unsigned ones of at most 32 bits
    unsigned: bool = False  # they are unsigned


@dataclass(frozen=True)
class TableKind:
    """What the analysis needs to know about an argument that is a table."""

    depth: int  # number of integer indices that lead to a value (ragged rows: 2) or to a record
    fields: tuple[Field, ...] = ()  # fields of the records
    relaxed: bool = False  # conflicts between tasks do not count: each lane writes to a replica
    readonly: bool = False  # declared as only read: the body must not write it
    floating: bool = False  # its values are floats
    integer: bool = False  # they are signed integers, or unsigned ones of at most 32 bits
    keyed: bool = False  # a map: its rows are selected by keys
    ragged: bool = False  # its rows have different lengths
    unsigned: bool = False  # its values are unsigned integers
    has_elements: bool = False  # whether its elements can be told apart, not only its rows

    def field(self, name: str) -> Field | None:
        """Return a field of the records."""
        return next((field for field in self.fields if field.name == name), None)

    def holds_integers(self, field: str | None) -> bool:
        """Whether its values, or those of a field of its records, are signed integers, or unsigned ones of few bits."""
        found = None if field is None else self.field(field)
        return self.integer if field is None else found is not None and found.integer

    def is_unsigned(self, field: str | None) -> bool:
        """Whether its values, or those of a field of its records, are unsigned integers."""
        found = None if field is None else self.field(field)
        return self.unsigned if field is None else found is None or found.unsigned
